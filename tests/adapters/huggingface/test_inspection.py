"""What is found by inspection, compared with transformers, with listed places and with arithmetic."""

import json

import numpy as np
import pytest
import torch

import visformer as vf
from scripts import model_table
from tests.adapters.huggingface.any_model import HEADS, classes, tiny
from tests.adapters.huggingface.hub import IS_OLD, TEXT, one_of_each, target_of, tiny_model, tiny_module, tokenizer
from tests.adapters.huggingface.listed import FAMILIES, values
from visformer.adapters.huggingface.model import HubModel
from visformer.edits import Silence
from visformer.errors import EditError, MissingTensor, TextError, VisformerError
from visformer.trace import Trace, TracedTensor

TWELVE = {
    "qwen3_next": "gates, and layers without attention",
    "olmo3": "norms of what is added, windows",
    "glm4_moe": "experts",
    "gemma3n_text": "a stream of several copies, keys that layers share",
    "gemma4_text": "values that are normalised",
    "llama4_text": "chunks, experts",
    "ministral3": "queries that are scaled by their position",
    "seed_oss": "the usual blocks",
    "granitemoe": "what is added is scaled",
    "exaone4": "norms after each sublayer",
    "smollm3": "layers without positions",
    "t5gemma": "both stacks",
}
"""Model type to what is unusual about it."""

NEW = ("gemma4_text", "ministral3", "t5gemma")
"""Those that transformers 4.57 lacks, or has no small sizes for."""
CLASSES = dict(classes())
LESS = {"modernbert": ("encoder.0.norm_self",)}  # an identity stands there, since the embeddings are normalised
"""Family to the places that are listed and have no such value."""
RUN = json.loads(model_table.RUN.read_text(encoding="utf-8"))


def inspected(model_type: str, **changes: object) -> HubModel:
    """Wrap a tiny model of a type."""
    return vf.wrap(tiny(model_type, CLASSES[model_type], **changes), tokenizer())


@pytest.mark.parametrize("model_type", [each for each in TWELVE if not (IS_OLD and each in NEW)])
def test_a_current_model_gives_all_of_its_attention_and_logits(model_type):
    model, twin = inspected(model_type), tiny(model_type, CLASSES[model_type])
    assert not model._patterns_only
    target = target_of(model)
    trace = model.trace(TEXT, target, record="*")
    ids = {side: torch.tensor([each]) for side, each in trace.meta["ids"].items()}
    two = {"decoder_input_ids": ids["tgt"]} if "src" in ids else {}
    with torch.no_grad():
        theirs = twin(ids["src" if two else "tgt"], **two, output_attentions=True, use_cache=False)
    returned = [theirs[field] for field in ("encoder_attentions", "decoder_attentions", "cross_attentions")
                if field in theirs] or [[each for each in theirs.attentions if each is not None]]  # fmt: skip
    if not two:  # a hybrid model returns the states of its other layers, too
        n = ids["tgt"].shape[1]
        returned = [[each for each in returned[0] if each.shape[-2:] == (n, n)]]
    kinds = ("encoder.*.self_attn", "decoder.*.self_attn", "decoder.*.cross_attn") if two else ("decoder.*.self_attn",)
    for kind, patterns in zip(kinds, returned, strict=True):
        paths = paths_of(trace, kind)
        assert len(paths) == len(patterns) > 0
        for path, pattern in zip(paths, patterns, strict=True):
            np.testing.assert_allclose(trace[f"{path}.pattern"], pattern[0], atol=1e-5)
            check_attention(trace, path)
    np.testing.assert_allclose(trace["logits"], theirs.logits[0], atol=1e-4)
    silent = model.trace(TEXT, target, record=("*.heads", "logits"), edits=[Silence("*_attn", range(4))])
    assert np.abs(silent["logits"].value - trace["logits"].value).max() > 1e-3
    assert not any(silent[name].value.any() for name in silent.names() if name.endswith(".heads"))


def paths_of(trace: Trace, kind: str) -> list[str]:
    """Return the paths of all attentions of a kind, in the order of layers."""
    part, _, attention = kind.split(".")
    names = [name for name in trace.names() if name.startswith(part) and name.endswith(f"{attention}.pattern")]
    return [name.removesuffix(".pattern") for name in sorted(names, key=lambda name: int(name.split(".")[1]))]


def check_attention(trace: Trace, path: str) -> None:
    """Check scores, pattern and heads by q, k and v."""
    scores, mask, pattern, heads = (trace[f"{path}.{name}"].value for name in ("scores", "mask", "pattern", "heads"))
    each = np.exp(np.where(mask, scores, -np.inf) - np.where(mask, scores, -np.inf).max(axis=-1, keepdims=True))
    np.testing.assert_allclose(pattern, each / each.sum(axis=-1, keepdims=True), atol=1e-5)
    v = trace[f"{path}.v"].value
    np.testing.assert_allclose(heads, pattern @ v.repeat(len(pattern) // len(v), axis=0), atol=1e-4)
    q, k = (trace[f"{path}.{name}"].value for name in "qk")
    products = q @ k.repeat(len(q) // len(k), axis=0).swapaxes(-1, -2)
    if np.abs(scores).max() > 0:  # one factor for all
        factor = (products * scores).sum() / (products**2).sum()
        np.testing.assert_allclose(products * factor, scores, atol=1e-3 * np.abs(scores).max())


@pytest.mark.parametrize("model_type", ["seed_oss", "olmo3", "qwen3_next"])
def test_silence_of_all_heads_of_a_layer_is_what_zeros_at_its_output_projection_are(model_type):
    model, twin = inspected(model_type), tiny(model_type, CLASSES[model_type])
    path = paths_of(model.trace(TEXT), "decoder.*.self_attn")[0]
    silent = model.trace(TEXT, record="logits", edits=[Silence(path, range(4))])
    block = twin.model.layers[int(path.split(".")[1])]
    block.self_attn.o_proj.register_forward_pre_hook(lambda module, args: (args[0] * 0,))
    with torch.no_grad():
        logits = twin(torch.tensor([silent.meta["ids"]["tgt"]])).logits[0]
    np.testing.assert_allclose(silent["logits"], logits, atol=1e-4)


@pytest.mark.parametrize("model_type", ["seed_oss", "gemma3n_text", "qwen3_next", *["t5gemma"] * (not IS_OLD)])
def test_an_overview_of_a_model_has_the_weights_of_its_patterns(model_type):
    model = inspected(model_type)
    whole, rows = (model.trace(TEXT, target_of(model), record=record) for record in ("*.pattern", "overview"))
    assert whole.names() == rows.names()
    for name in whole.names():
        np.testing.assert_allclose(rows[name].head(1), whole[name].value[1], atol=1e-5)


STREAMS = {"seed_oss": "pre", "olmo3": "output", "glm4_moe": "pre", "exaone4": "output"}


@pytest.mark.parametrize(("model_type", "norm"), STREAMS.items())
def test_the_stream_of_a_model_adds_up(model_type, norm):
    model = inspected(model_type)
    trace = model.trace(TEXT, target_of(model), record="*")
    assert model.info.blocks.decoder.norm == norm
    for layer in range(2):
        at = {name: trace[f"decoder.{layer}.{name}"].value for name in ("resid_pre", "resid_self", "resid_post")}
        attention, ffn = ("norm_self", "norm_ffn") if norm == "output" else ("self_attn.out", "ffn.out")
        np.testing.assert_allclose(
            at["resid_pre"] + trace[f"decoder.{layer}.{attention}"].value, at["resid_self"], atol=1e-4
        )
        np.testing.assert_allclose(
            at["resid_self"] + trace[f"decoder.{layer}.{ffn}"].value, at["resid_post"], atol=1e-4
        )
    np.testing.assert_array_equal(trace["decoder.0.resid_post"].value, trace["decoder.1.resid_pre"].value)


def test_weights_that_are_found_are_those_that_compute():
    model = inspected("seed_oss")
    trace = model.trace(TEXT, record=("*", "*.w_*", "output.w", "*.gamma"))
    path = "decoder.1.self_attn"
    normed, w = trace["decoder.1.norm_self"].value, {each: trace.params[f"{path}.w_{each}"].value for each in "qkvo"}
    v = trace[f"{path}.v"].value
    bias = model.module.model.layers[1].self_attn.v_proj.bias
    made = normed @ w["v"] + (0 if bias is None else bias.detach().numpy())
    np.testing.assert_allclose(made.reshape(len(made), *v.shape[::2]).swapaxes(0, 1), v, atol=1e-4)
    heads = trace[f"{path}.heads"].value.swapaxes(0, 1).reshape(len(made), -1)
    np.testing.assert_allclose(heads @ w["o"], trace[f"{path}.out"], atol=1e-4)
    np.testing.assert_allclose(trace["decoder.out"].value @ trace.params["output.w"].value, trace["logits"], atol=1e-4)
    layer = model.module.model.layers[1].self_attn
    np.testing.assert_array_equal(w["q"], layer.q_proj.weight.detach().numpy().T)
    np.testing.assert_array_equal(w["k"], layer.k_proj.weight.detach().numpy().T)


def test_a_sum_that_the_model_does_not_continue_from_cannot_be_edited():
    model = inspected("seed_oss")
    assert "decoder.0.resid_self" in model._fixed and "decoder.0.resid_post" not in model._fixed
    with pytest.raises(EditError, match="shows but does not use further on"):
        model.trace(TEXT, edits=[lambda name, x: x + 1 if name.endswith("resid_self") else x])
    plain, moved = (model.trace(TEXT, record="logits", edits=edits)["logits"].value for edits in (
        (), [lambda name, x: x + 1 if name == "decoder.0.resid_post" else x]))  # fmt: skip
    assert np.abs(plain - moved).max() > 1e-3


def test_what_a_gate_or_a_latent_vector_hides_is_not_named_and_the_reason_is():
    with pytest.raises(MissingTensor, match="no module of this model was seen to make it"):
        inspected("qwen3_next").trace(TEXT, record="*.w_o")
    with pytest.raises(MissingTensor, match="no module of this model was seen to read or return it"):
        inspected("gemma3n_text").trace(TEXT, record="*")["decoder.0.resid_self"]


@pytest.mark.parametrize("family", one_of_each(FAMILIES))
def test_each_value_is_what_the_module_at_its_listed_place_computes(family):
    model, twin = tiny_model(family), tiny_module(family)
    trace = model.trace(TEXT, target_of(model), record="*")
    ids = {side: torch.tensor([each]) for side, each in trace.meta["ids"].items()}
    first, *second = (ids[side] for side in ("src", "tgt") if side in ids)
    wanted = values(twin, input_ids=first, **({"decoder_input_ids": second[0]} if second else {}))
    for name, value in wanted.items():
        if IS_OLD and family.startswith("gemma") and name == "tgt.embed":
            continue  # it is scaled after the module
        if name in trace:
            np.testing.assert_allclose(trace[name], value.reshape(trace[name].shape), atol=1e-5, err_msg=name)
        else:
            assert name in LESS.get(family, ()), name


@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16])
@pytest.mark.parametrize("family", ["llama", "gemma2", "bert", "t5"])
def test_in_half_precision_as_much_is_found(family, dtype):
    whole, half = tiny_model(family), vf.wrap(tiny_module(family).to(dtype), tokenizer())
    assert {*half.names()} == {*whole.names()} and {*half._weights} == {*whole._weights}
    assert half.info.blocks == whole.info.blocks


def test_only_the_encoder_of_blenderbot_small_scales_its_embeddings():
    model, module = tiny_model("blenderbot-small"), tiny_module("blenderbot-small")
    trace = model.trace(TEXT, target_of(model), record=("src.embed", "tgt.embed"))
    rows = {side: module.model.shared.weight.detach().numpy()[ids] for side, ids in trace.meta["ids"].items()}
    scale = module.model.encoder.embed_scale
    assert scale == 4
    np.testing.assert_allclose(trace["src.embed"], rows["src"] * scale, rtol=1e-6)
    read = []
    module.model.decoder.layernorm_embedding.register_forward_pre_hook(lambda _, given: read.append(given[0]))
    with torch.no_grad():
        src, tgt = (torch.tensor([trace.meta["ids"][side]]) for side in ("src", "tgt"))
        module(src, decoder_input_ids=tgt)
    np.testing.assert_array_equal(trace["tgt.embed"], read[0][0])


# Bodies and heads -----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("family", "body", "kind"),
    [("gpt2", "transformer", "encoder"), ("llama", "model", "encoder"), ("t5", "encoder", "encoder"),
     ("bart", "model", "encoder-decoder"), ("lfm2", "model", "encoder")],
)  # fmt: skip
def test_a_body_without_a_head_is_traced_and_has_no_logits(family, body, kind):
    model = vf.wrap(getattr(tiny_module(family), body), tokenizer())
    trace = model.trace(TEXT, record="*")
    assert model.info.kind == kind and not model._patterns_only
    with torch.no_grad():
        theirs = getattr(tiny_module(family), body)(torch.tensor([trace.meta["ids"]["src"]]), output_attentions=True)
    last = [name for name in trace.names() if name.endswith("self_attn.pattern")][-1]
    patterns = theirs.get("attentions") or theirs.decoder_attentions
    np.testing.assert_allclose(trace[last], [each for each in patterns if each is not None][-1][0], atol=1e-5)
    with pytest.raises(MissingTensor, match="no head"):
        trace["logits"]
    with pytest.raises(VisformerError):
        model.generate(TEXT)


@pytest.mark.filterwarnings("ignore:.position_ids. have no functionality in BLOOM:FutureWarning")  # 4.57 gives them
@pytest.mark.parametrize("auto", ["SequenceClassification", "TokenClassification", "QuestionAnswering"])
@pytest.mark.parametrize("family", ["gpt2", "qwen2", "bart", "t5", "bloom"])
def test_a_head_of_any_family_gives_its_labels(family, auto):
    import transformers

    config = type(tiny_module(family).config).from_dict({**tiny_module(family).config.to_dict(), "num_labels": 2})
    torch.manual_seed(0)
    try:
        twin = getattr(transformers, f"AutoModelFor{auto}").from_config(config, attn_implementation="eager").eval()
    except ValueError:
        assert (family, auto) == ("bart", "TokenClassification")  # there is no such class
        return
    model = vf.wrap(twin, tokenizer())
    trace = model.trace(TEXT, record="*")
    with torch.no_grad():
        theirs = twin(torch.tensor([trace.meta["ids"]["src"]]))
    logits = theirs.logits if "logits" in theirs else torch.stack([theirs.start_logits, theirs.end_logits], dim=-1)
    np.testing.assert_allclose(trace["logits"], logits[0], atol=1e-5)
    assert trace["logits"].axes[-1].name == "label"
    span = auto == "QuestionAnswering"
    assert trace.meta["labels"] == (["start", "end"] if span else [f"LABEL_{i}" for i in range(twin.config.num_labels)])
    silent = model.trace(TEXT, record="logits", edits=[Silence("*_attn", range(4))])
    assert np.abs(silent["logits"].value - trace["logits"].value).max() > 1e-6


def test_an_encoder_that_is_made_a_decoder_is_one_and_its_head_is_no_matrix():
    from transformers import BertLMHeadModel

    config = type(tiny_module("bert").config).from_dict({**tiny_module("bert").config.to_dict(), "is_decoder": True})
    model = vf.wrap(BertLMHeadModel(config).eval(), tokenizer())
    assert model.info.kind == "decoder" and model.info.blocks.decoder.norm == "post"
    trace = model.trace(TEXT, record=("*", "*.w_q"))
    assert not np.triu(trace["decoder.0.self_attn.pattern"].value, 1).any()
    with pytest.raises(MissingTensor):
        model.trace(TEXT, record="output.w")


# What tokenizers return -----------------------------------------------------------------------------------------------


def test_what_a_tokenizer_returns_is_read_as_its_text():
    model, ids = tiny_model("gpt2"), tiny_model("gpt2").trace(TEXT).meta["ids"]
    tok = tokenizer()
    padded = tok(TEXT, padding="max_length", max_length=20)
    for given in (tok(TEXT), tok(TEXT, return_tensors="pt"), tok(TEXT, return_tensors="pt")["input_ids"], padded):
        assert model.trace(given).meta["ids"] == ids
    for several in ([TEXT, "I saw"], tok([TEXT, "I saw"])):
        with pytest.raises(TextError, match=r"A list of 2 is not one text.*trace_many"):
            model.trace(several)


def test_a_pair_that_a_tokenizer_has_joined_keeps_its_segments():
    model = tiny_model("bert")
    joined = tokenizer()(TEXT, "I saw you", return_token_type_ids=True)
    wanted, got = (model.trace(*given, **more, record="encoder.out") for given, more in (
        ((TEXT,), {"pair": "I saw you"}), ((joined,), {})))  # fmt: skip
    np.testing.assert_array_equal(got["encoder.out"].value, wanted["encoder.out"].value)
    assert got.meta["segments"] == wanted.meta["segments"]
    with pytest.raises(TextError, match="first text, and then 1 for a second"):
        model.trace({"input_ids": [1, 5, 6], "token_type_ids": [0, 1, 0]})


def test_messages_are_written_with_the_chat_template(monkeypatch):
    model, messages = tiny_model("gpt2"), [{"role": "user", "content": "I saw"}]
    with pytest.raises(TextError, match="chat template"):
        model.trace(messages)
    template = "{% for each in messages %}<s> {{ each.content }} {% endfor %}"
    monkeypatch.setattr(model.tokenizer, "chat_template", template)
    ids = model.tokenizer.apply_chat_template(messages, return_dict=True)
    assert model.trace(messages).meta["ids"]["tgt"] == model.trace(ids).meta["ids"]["tgt"] == ids["input_ids"]


# All of them ----------------------------------------------------------------------------------------------------------


@pytest.mark.full
@pytest.mark.parametrize("model_type", [each for each, row in RUN.items() if row.get("gives")])
def test_any_class_gives_values_that_agree_or_patterns_with_a_reason(model_type):
    model = inspected(model_type)
    trace = model.trace(TEXT, target_of(model), record="*")
    twin = tiny(model_type, CLASSES[model_type])
    ids = {side: torch.tensor([each]) for side, each in trace.meta["ids"].items()}
    first = next(iter(ids.values()))
    with torch.no_grad():
        two = {"decoder_input_ids": ids["tgt"], "use_cache": False} if "src" in ids and "tgt" in ids else {}
        theirs = twin(first, **two)  # with a cache, FSMT forgets its mask
    alike(trace["logits"], theirs.logits[0])
    if model._patterns_only:
        path = next(name.removesuffix(".pattern") for name in trace.names() if name.endswith(".pattern"))
        with pytest.raises(MissingTensor, match=r"only its patterns are shown|own attention code"):
            trace[f"{path}.q"]
        return
    names = [name for name in trace.names() if name.endswith("heads")]
    silent = model.trace(TEXT, target_of(model), record="logits", edits=[Silence("*_attn", 0)])
    assert names and np.abs(silent["logits"].value - trace["logits"].value).max() > 0


@pytest.mark.full
@pytest.mark.parametrize("model_type", [each for each, row in RUN.items() if not row.get("gives", True)])
def test_a_class_that_is_said_to_be_refused_is(model_type):
    with pytest.raises(VisformerError) as error:
        inspected(model_type)
    assert error.value.message_id == RUN[model_type]["why"]


NO_CROSS = ("T5GemmaForSequenceClassification", "T5GemmaForTokenClassification")
"""Classes of two stacks that return no patterns of the attention between them."""


@pytest.mark.full
@pytest.mark.parametrize("name", NO_CROSS)
def test_a_classifier_that_keeps_its_cross_attention_to_itself_is_refused(name):
    with pytest.raises(VisformerError, match="returns no attention weights"):
        vf.wrap(tiny("t5gemma", name), tokenizer())


def with_heads() -> list[tuple[str, str]]:
    """Each other class with a head whose family is shown."""
    pairs = [pair for kind in HEADS for pair in classes((kind,)) if RUN.get(pair[0], {}).get("gives")]
    return [pair for pair in pairs if pair[1] not in NO_CROSS]


@pytest.mark.full
@pytest.mark.parametrize(("model_type", "name"), with_heads())
def test_any_head_gives_the_logits_of_transformers(model_type, name):
    trace = vf.wrap(tiny(model_type, name), tokenizer()).trace(TEXT, record="logits")
    with torch.no_grad():
        theirs = tiny(model_type, name)(torch.tensor([trace.meta["ids"]["src"]]))
    if "start_logits" in theirs:
        logits = torch.stack([theirs.start_logits, theirs.end_logits], dim=-1)[0]
    else:
        logits = theirs.logits[0]
    alike(trace["logits"], logits)


def alike(ours: TracedTensor, theirs: torch.Tensor) -> None:
    """Compare, up to rounding of the largest: untrained weights make numbers of any size."""
    np.testing.assert_allclose(ours, theirs, rtol=0, atol=max(1e-4, 2e-5 * float(theirs.abs().max())))
