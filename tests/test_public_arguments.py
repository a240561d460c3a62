"""Whatever any public function is given, it works or says what was wrong: no bare TypeError, KeyError and the like.

The functions are found. ``RIGHT`` has a right value for each argument that one of them needs; one argument at a time is
then replaced by each of ``ODD``.
"""

import inspect
import warnings
from collections.abc import Callable, Iterator
from functools import cache, partial
from itertools import islice
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

import visformer as vf
from tests.support import tiny_config, tiny_gpt, tiny_tokenizer, tiny_translator
from visformer.adapters.own import LanguageModel, Translator
from visformer.errors import CheckpointError, VisformerError
from visformer.model.decoding import Step
from visformer.panel import traced
from visformer.pictures.attention import History
from visformer.pictures.registry.picture import pictures
from visformer.pictures.sides import Sides
from visformer.system.memory import is_shortage

TEXT, TARGET = "I went to school", "我去学校"
PATH = "decoder.0.cross_attn"
LONGEST = 4_000
"""Characters of a message."""

Call = Callable[..., Any]


@pytest.fixture(autouse=True)
def confined(request, tmp_path, monkeypatch):
    """Some odd values are names of files, or of models on the hub."""
    monkeypatch.chdir(tmp_path)
    if "[load]" in request.node.name or "picture" in request.node.name:
        monkeypatch.setattr("visformer.adapters.huggingface.load.load_hub", nothing)


def nothing(name, **how):
    raise CheckpointError("The hub has no {name!r}.", name=name)


# What is public -------------------------------------------------------------------------------------------------------


def is_ours(value: Any) -> bool:
    return getattr(value, "__module__", "").partition(".")[0] == "visformer"


def names_of(module: Any) -> list[str]:
    """Return what a module offers."""
    own = [name for name, value in vars(module).items() if getattr(value, "__module__", "") == module.__name__]
    return getattr(module, "__all__", None) or [name for name in own if not name.startswith("_")]


def methods_of(cls: type) -> list[str]:
    """Return the public methods of a class that are ours and take something."""
    ours = [base for base in cls.__mro__ if is_ours(base)]
    named = dict.fromkeys(name for base in ours for name in vars(base) if not name.startswith("_"))
    return [name for name in named if inspect.isroutine(getattr(cls, name)) and takes_something(getattr(cls, name))]


def takes_something(call: Call) -> bool:
    return bool({*inspect.signature(call).parameters} - {"self"})


def found(module: Any, address: str = "") -> Iterator[tuple[str, Callable[[], Call]]]:
    """Yield the address of everything public that can be called, and what returns it."""
    for name in names_of(module):
        value, at = getattr(module, name), f"{address}{name}"
        if inspect.ismodule(value) and value is not vf.errors:
            yield from found(value, f"{at}.")
        elif isinstance(value, type) and is_ours(value):
            yield at, partial(getattr, module, name)
            yield from of_class(value, at)
        elif inspect.isfunction(value) and takes_something(value):
            yield at, partial(getattr, module, name)


def of_class(cls: type, at: str) -> Iterator[tuple[str, Callable[[], Call]]]:
    for name in methods_of(cls):
        yield f"{at}.{name}", lambda name=name: getattr(instance(at), name)


# Right values ---------------------------------------------------------------------------------------------------------


@cache
def translator() -> Any:
    return tiny_translator(norm="pre")


@cache
def gpt() -> Any:
    return tiny_gpt()


@cache
def bundled() -> Any:
    return vf.load("mini-gpt")


@cache
def trace() -> vf.Trace:
    return translator().trace(TEXT, TARGET, record="*")


@cache
def bare_trace() -> vf.Trace:
    """A Trace of attention from elsewhere, which lacks what a model's has."""
    return vf.Trace.from_attention(["a", "b"], np.full((1, 1, 2, 2), 0.5))


@cache
def atlas() -> Any:
    return vf.analysis.atlas.Atlas.bundled("mini-gpt")


@cache
def pair() -> Any:
    return vf.analysis.patching_pairs("mini-gpt")[0]


@cache
def panel() -> Any:
    return traced(trace(), f"{PATH}.pattern", 0, title="weights", scale="weight")


@cache
def aligned() -> Any:
    links = frozenset({(0, 0), (1, 1), (3, 2)})
    return vf.analysis.Aligned(("I", "went", "to", "school"), ("我", "去", "学校"), TEXT, TARGET, links, links)


@cache
def effects() -> Any:
    return vf.analysis.head_effects(translator(), [(TEXT, TARGET)] * 2)


@cache
def head_history() -> Any:
    return vf.analysis.head_history([gpt()], each=1)


@cache
def figure() -> Any:
    return vf.figures.position_waves(4, 8, [0, 1])


@cache
def decoding() -> Any:
    return translator().translate(TEXT, beam_size=2, max_new_tokens=3)


def partners() -> Any:
    return vf.analysis.Partners((2, 2), ((0, 0), (1, 1)))


def floats(*shape: int) -> Any:
    return np.full(shape, 1 / shape[-1])


def ids() -> torch.Tensor:
    return torch.tensor([[5, 6, 7]])


def texts() -> str:
    Path("texts.txt").write_text(f"{TEXT}\n{TEXT}\n", encoding="utf-8")
    return "texts.txt"


def saved() -> str:
    trace().save("saved.safetensors")
    return "saved.safetensors"


def encoded(model: Any) -> Any:
    return next(model.forced([TEXT], [TARGET]))


OBJECTS: dict[str, Callable[[], Any]] = {
    "GPT": lambda: gpt().module,
    "LanguageModel": gpt,
    "Step": lambda: decoding().steps[0],
    "Trace": trace,
    "TracedTensor": lambda: trace()[f"{PATH}.pattern"],
    "Transformer": lambda: translator().module,
    "Translator": translator,
    "analysis.Aligned": aligned,
    "analysis.atlas.Atlas": atlas,
}
"""Objects whose methods are called; those of other classes are made of the right values of their arguments."""


@cache
def instance(at: str) -> Any:
    if at in OBJECTS:
        return OBJECTS[at]()
    make = CALLS[at]()
    return make(**right(at, make))


RIGHT: dict[str, Callable[[], Any]] = {
    # of any function
    "answer": lambda: 7,
    "atlas": atlas, "other": atlas,
    "candidates": lambda: decoding().steps[0].candidates,
    "chosen": lambda: np.array([[True, False], [False, True]]),
    "clean": lambda: "I like you", "corrupt": lambda: "I like me",
    "config": tiny_config,
    "cross": lambda: False,
    "d_ff": lambda: 12, "d_model": lambda: 8,
    "data": texts,
    "dimensions": lambda: [0, 1],
    "figure": figure,
    "first": trace, "second": trace,
    "function": lambda: lambda name, tensor: tensor,
    "head": lambda: 0, "layer": lambda: 0,
    "history": lambda: History((trace(),), ({"step": 1.0},), ("decoder.cross_attn", 0, 0)),
    "ids": ids, "src_ids": ids, "tgt_ids": ids,
    "memory": lambda: torch.zeros(1, 3, 16),
    "method": lambda: "raw",
    "model": translator,
    "models": lambda: [gpt()],
    "module": lambda: translator().module, "tokenizer": tiny_tokenizer,
    "n": lambda: 4, "n_heads": lambda: 4, "n_positions": lambda: 4,
    "name": lambda: f"{PATH}.pattern",
    "offset": lambda: 1, "pair": lambda: 0, "position": lambda: 1,
    "pairs": lambda: [aligned(), aligned()],
    "panel": panel, "panels": panel, "shown": panel,
    "path": lambda: PATH,
    "place": lambda: 0,
    "query": lambda: 0,
    "row": lambda: 0, "word": lambda: 0,
    "sentences": lambda: [(TEXT, TARGET), (TEXT, TARGET)],
    "shape": lambda: (1, 2, 4, 4),
    "side": lambda: "tgt",
    "sides": lambda: Sides(trace(), trace(), ("A", "B")),
    "source": lambda: TEXT, "text": lambda: TEXT, "texts": lambda: [TEXT, TEXT],
    "stack": lambda: "decoder.self_attn",
    "statistic": lambda: "previous",
    "steps": lambda: decoding().beams,
    "table": effects,
    "there": lambda: ["text", "target"],
    "token": lambda: "a",
    "trace": trace, "traces": trace, "what": trace,
    "trees": lambda: [vf.analysis.Tree("I went", ("I", "went"), (1, -1), ("nsubj", "root"))] * 2,
    "value": lambda: floats(3, 4),
    "values": lambda: floats(len(trace().tokens["next"]), len(trace().tokens["src"])),
    "vocab": lambda: 10, "src_vocab": lambda: 10, "tgt_vocab": lambda: 10,
    "weights": lambda: np.array([0.25, 0.75]), "probabilities": lambda: np.array([0.25, 0.75]),
    "where": lambda: PATH,
    "x": lambda: floats(3, 4),
    "about": lambda: "words", "label": lambda: "words", "limit": lambda: "words", "unit": lambda: "nats",
    "at": lambda: "*.embed", "wanted": lambda: ["*.pattern"], "names": lambda: f"{PATH}.pattern",
    "axes": lambda: trace()[f"{PATH}.pattern"].axes,
    "best": lambda: 0.5, "covered": lambda: 0.5, "low": lambda: 0.5, "high": lambda: 0.5, "chance": lambda: 0.5,
    "b_1": lambda: np.zeros(3), "b_2": lambda: np.zeros(4), "w_1": lambda: floats(4, 3), "w_2": lambda: floats(3, 4),
    "columns": partners, "rows": partners,
    "content": lambda: vf.analysis.atlas.archive.bundled_file("mini-gpt").read_bytes(),
    "draws": lambda: floats(2, 3), "each": lambda: floats(3), "logits": lambda: floats(2, 3, 5),
    "equal": lambda: ((0, 0),), "sizes": lambda: (2, 2),
    "folder": lambda: vf.analysis.atlas.archive.bundled_file("mini-gpt"),
    "heads": lambda: (1, -1), "relations": lambda: ("nsubj", "root"),
    "how": lambda: "zero", "of": lambda: "heads", "predicts": lambda: "row",
    "key": lambda: floats(3, 4), "scores": lambda: floats(3, 4), "share": lambda: floats(3, 4),
    "bias": lambda: floats(3, 4), "residual": lambda: floats(3, 4), "y": lambda: floats(3, 4),
    "keys": lambda: ("a", "b"), "queries": lambda: ("a", "b"), "special": lambda: (False, False),
    "key_tokens": lambda: ("a", "b"), "query_tokens": lambda: ("a", "b"), "tokens": lambda: ("a", "b"),
    "layers": lambda: [floats(2, 2, 2)],
    "out": lambda: "atlas",
    "pattern": lambda: floats(5, 5), "patterns": lambda: floats(1, 1, 1, 2, 2),
    "picture": lambda: "positions",
    "places": lambda: (0, 1), "positions": lambda: [0, 1, 2],
    "prefix": lambda: "",
    "source_text": lambda: TEXT, "target_text": lambda: TARGET, "target": lambda: ("a", "b"),
    "sure": lambda: frozenset({(0, 0)}), "possible": lambda: frozenset({(0, 0)}),
    "svg": lambda: vf.export.attention_svg(trace()),
    "tensors": dict, "words": lambda: ("I", "went"),
    # of one function
    "GPT.config": lambda: gpt().module.config,
    **dict.fromkeys(("model.Encoder.forward.x", "model.EncoderLayer.forward.x"), lambda: torch.zeros(1, 3, 16)),
    **dict.fromkeys(("model.Decoder.forward.y", "model.DecoderLayer.forward.y"), lambda: torch.zeros(1, 3, 16)),
    **dict.fromkeys(("model.FeedForward.forward.x", "model.Output.forward.x"), lambda: torch.zeros(1, 3, 8)),
    **{f"model.MultiHeadAttention.forward.{name}": lambda: torch.zeros(1, 3, 8) for name in ("query", "key", "value")},
    **dict.fromkeys(
        ("LanguageModel.log_probabilities.runs", "LanguageModel.logits.runs"), lambda: [(encoded(gpt()), ())]
    ),
    "LanguageModel.token_id.text": lambda: "school", "Translator.token_id.text": lambda: "school",
    "LanguageModel.gate_gradients.runs": lambda: [(encoded(gpt()), lambda logits: logits[0, 0])],
    "LanguageModel.gate_gradients.names": lambda: ["decoder.0.self_attn.heads"],
    "LanguageModel.recorded.names": lambda: ["decoder.0.self_attn.heads"],
    "LanguageModel.recorded.texts": lambda: [encoded(gpt())],
    "LanguageModel.read_again.trace": lambda: gpt().trace(TEXT),
    **{f"{kind}.{method}.source": lambda: TEXT for kind in ("Translator", "LanguageModel")
       for method in ("trace", "translate", "generate")},
    "LanguageModel.trace.target": lambda: " school",
    "Trace.tokens": lambda: {"src": ("a", "b")},
    "Trace.special": lambda: {"src": (False, False)},
    "Trace.words": lambda: {"src": (0, 1)},
    "Trace.from_attention.tokens": lambda: ("a", "b"),
    "Trace.with_tensor.name": lambda: "mine",
    "Trace.with_tensor.array": lambda: floats(2),
    "Trace.with_tensor.axes": lambda: ["d_model"],
    "compare.a": trace,
    "compare.b": trace,
    "Trace.from_attention.patterns": lambda: floats(1, 1, 2, 2),
    "Trace.from_maps.tokens": lambda: ("a", "b"),
    "Trace.from_maps.maps": lambda: floats(1, 1, 2, 2),
    "Trace.save.path": lambda: "trace.safetensors",
    "Trace.load.path": saved,
    "TracedTensor.value": lambda: trace()[f"{PATH}.pattern"].value,
    "Transformer.from_torch.nn_transformer": lambda: torch.nn.Transformer(8, 2, 1, 1, 8, batch_first=True),
    **dict.fromkeys(
        ("Translator.log_probabilities.runs", "Translator.logits.runs"), lambda: [(encoded(translator()), ())]
    ),
    "Translator.gate_gradients.runs": lambda: [(encoded(translator()), lambda logits: logits[0, 0])],
    "Translator.gate_gradients.names": lambda: ["decoder.0.self_attn.heads"],
    "Translator.recorded.names": lambda: ["decoder.0.self_attn.heads"],
    "Translator.recorded.texts": lambda: [encoded(translator())],
    "Translator.trace.target": lambda: TARGET,
    "analysis.Aligned.source": lambda: ("a", "b"),
    "analysis.alignment.row": lambda: "prediction",
    "analysis.appears.history": head_history,
    "analysis.atlas.Atlas.about": dict,
    "analysis.atlas.Atlas.bundled.name": lambda: "mini-gpt",
    "analysis.atlas.Atlas.heads": lambda: atlas().heads,
    "analysis.atlas.Atlas.histograms": lambda: atlas().histograms,
    "analysis.atlas.Atlas.offsets": lambda: atlas().offsets,
    "analysis.atlas.Atlas.positions": lambda: atlas().positions,
    "analysis.atlas.Atlas.examples": lambda: atlas().examples,
    "analysis.atlas.Atlas.broken": lambda: atlas().broken,
    "analysis.atlas.Columns.found.path": texts,
    "analysis.atlas.Data.source": texts,
    "analysis.atlas.edges.name": lambda: "entropy",
    "analysis.attribution.target": lambda: TARGET,
    "analysis.curve_scores.pairs": lambda: [(TEXT, TARGET)],
    "analysis.deletion.target": lambda: TARGET, "analysis.insertion.target": lambda: TARGET,
    "analysis.direct_attribution.trace": lambda: gpt().trace(TEXT, record="*"),
    "analysis.guesses.Agreement.n": lambda: 2,
    "analysis.guesses.WordRow.words": lambda: vf.analysis.guesses.words_of(trace(), "src"),
    "analysis.guesses.to_ask.readers": lambda: vf.analysis.guesses.words_of(trace(), "src"),
    "analysis.guesses.to_ask.rows": lambda: [
        vf.analysis.guesses.word_row(trace(), "encoder.self_attn", word)
        for word in range(len(vf.analysis.guesses.words_of(trace(), "src")))
    ],
    "analysis.head_history.each": lambda: 1,
    "analysis.head_effects.sentences": lambda: [(TEXT, TARGET)],
    "analysis.logit_lens.trace": lambda: gpt().trace(TEXT, record="*"),
    "analysis.known_heads.each": lambda: 1,
    "analysis.known_heads.model": gpt,
    **{f"analysis.Method.{name}": lambda: "words" for name in ("title", "formula", "plain", "paper")},
    "analysis.Method.compute": lambda: vf.analysis.masking,
    "analysis.masking.target": lambda: TARGET,
    "analysis.patching.model": lambda: bundled(), "analysis.patching_pair.model": lambda: bundled(),
    "analysis.patching.clean": lambda: pair().clean, "analysis.patching.corrupt": lambda: pair().corrupt,
    "analysis.patching_pair.clean": lambda: pair().clean, "analysis.patching_pair.corrupt": lambda: pair().corrupt,
    "analysis.patching.answer": lambda: pair().answer,
    "analysis.pruning.counts": lambda: [1], "analysis.pruning.draws": lambda: 1,
    "analysis.rank_correlation.first": effects, "analysis.rank_correlation.second": effects,
    "analysis.row_distances.first": lambda: floats(2, 2), "analysis.row_distances.second": lambda: floats(2, 2),
    "analysis.shuffle_effect.draws": lambda: 2, "analysis.shuffle_effect.target": lambda: TARGET,
    "analysis.weight_effects.cells": lambda: [(0, 0)], "analysis.weight_effects.target": lambda: TARGET,
    "analysis.weights_at.rows": lambda: np.array([0, 0]),
    "analysis.weights_at.queries": lambda: np.array([0, 1]),
    "analysis.weights_at.keys": lambda: np.array([0, 1]),
    "attention.query": lambda: torch.zeros(3, 4), "attention.key": lambda: torch.zeros(3, 4),
    "attention.value": lambda: torch.zeros(3, 4),
    "edits.Patch.of.name": lambda: "decoder.0.resid_pre",
    "edits.SetHeads.values": lambda: [0.0] * 8,
    "edits.from_json.data": lambda: vf.edits.Silence(PATH, 0).to_json(),
    "export.heads_svg.layers": lambda: {0: floats(2, 3, 4)},
    "export.save.path": lambda: "picture.svg",
    "figures.candidate_bars.chosen": lambda: decoding().steps[0].chosen.id,
    "formulas.attention.query": lambda: floats(3, 4),
    "load.name": lambda: "untrained-8x1-enc1-dec1-ff8",
    "moments.name": lambda: "mini-gpt",
}  # fmt: skip
"""A right value by the name of the argument, or by the address of one function's."""


def right(at: str, call: Call) -> dict[str, Any]:
    """Return arguments with which a call works: those that it needs, and those that are only in ``RIGHT`` for it."""
    values = {}
    for name, parameter in inspect.signature(call).parameters.items():
        if f"{at}.{name}" in RIGHT:
            values[name] = RIGHT[f"{at}.{name}"]()
        elif parameter.default is parameter.empty and parameter.kind is not parameter.VAR_KEYWORD:
            assert name in RIGHT, f"RIGHT has no value of {at}.{name}: {parameter.annotation}"
            values[name] = RIGHT[name]()
    return values


# Odd values -----------------------------------------------------------------------------------------------------------

ODD: dict[str, Callable[[], Any]] = {
    "None": lambda: None,
    "'x'": lambda: "x",
    "-1": lambda: -1,
    "a pair of texts": lambda: ("a", "b"),
    "an array": lambda: np.zeros((2, 3, 5, 7), dtype=np.int16),
    "a Trace": bare_trace,
    # in make test-full
    "''": lambda: "",
    "10**15": lambda: 10**15,
    "1.5": lambda: 1.5,
    "nan": lambda: float("nan"),
    "True": lambda: True,
    "()": lambda: (),
    "[]": lambda: [],
    "{}": lambda: {},
    "an object": object,
    "bytes": lambda: b"x",
    "a tensor": lambda: torch.zeros(2, 3),
    "two Traces": lambda: [trace(), trace()],
    "a function": lambda: lambda *given: given[-1],
}
FIRST = [*ODD][:6]
ENDLESS = {"beam_size", "beams", "draws", "each", "n_decoder_layers", "n_encoder_layers"}
"""Numbers of which 10**15 is not wrong, only never done."""


NOT_OURS = {("engine", "a function"), *((name, "10**15") for name in ENDLESS)}
"""Names with odd values of which nothing has to be said: what is wrong with a function, it says itself."""


def odd_values(name: str, labels: list[str]) -> Iterator[tuple[str, Any]]:
    yield from ((label, ODD[label]()) for label in labels if (name, label) not in NOT_OURS)


def result_of(call: Call, values: dict[str, Any]) -> Any:
    """Call it, and read the first of what it yields."""
    bound = inspect.signature(call).bind_partial()
    for name, value in values.items():
        several = inspect.signature(call).parameters[name].kind is inspect.Parameter.VAR_POSITIONAL
        bound.arguments[name] = (value,) if several else value
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of NumPy, on what it was asked to compute
        result = call(*bound.args, **bound.kwargs)
        return list(islice(result, 3)) if isinstance(result, Iterator) else result


def outcome(call: Call, values: dict[str, Any]) -> str | None:
    """Return what is wrong with how a call fails; None, if it does not or says why."""
    try:
        result_of(call, values)
    except VisformerError as error:
        return f"a message of {len(str(error)):,} characters" if len(str(error)) > LONGEST else None
    except OSError:  # of a file, which it names
        return None
    except Exception as error:
        return None if is_shortage(error) else f"{type(error).__name__}: {error}"
    return None


def faults(at: str, call: Call, make: Callable[[], dict[str, Any]], labels: list[str]) -> list[str]:
    """Replace one argument at a time by odd values, and return what is wrong."""
    told = []
    for name, parameter in inspect.signature(call).parameters.items():
        if parameter.kind is parameter.VAR_KEYWORD:
            continue
        for label, value in odd_values(name, labels):
            if wrong := outcome(call, {**make(), name: value}):
                told.append(f"{at}({name}={label}): {wrong}")
    return told


CALLS = dict(found(vf))
for name, cls in (("Translator", Translator), ("LanguageModel", LanguageModel), ("Step", Step)):
    CALLS |= of_class(cls, name)
CALLS["Trace.__getitem__"] = lambda: trace().__getitem__  # that of a TracedTensor is NumPy's


def test_everything_public_is_found():
    modules = {at.rpartition(".")[0] for at in CALLS}
    assert {"", "analysis", "analysis.atlas", "analysis.guesses", "edits", "export", "figures", "formulas"} <= modules
    assert {"Trace.__getitem__", "Translator.trace_many", "LanguageModel.generate", "export.save"} <= {*CALLS}
    assert len(CALLS) > 200


@pytest.mark.parametrize("at", CALLS)
def test_the_right_arguments_are_right(at):
    call = CALLS[at]()
    result_of(call, right(at, call))


@pytest.mark.parametrize("at", CALLS)
def test_an_odd_argument_is_told_in_words(at):
    call = CALLS[at]()
    assert not faults(at, call, partial(right, at, call), FIRST)


@pytest.mark.full
@pytest.mark.parametrize("at", CALLS)
def test_any_odd_argument_is_told_in_words(at):
    call = CALLS[at]()
    assert not faults(at, call, partial(right, at, call), [*ODD][6:])


# Other ways to the same, in make test-full ----------------------------------------------------------------------------

SLOW_PICTURES = {"head-effects", "pruning", "learning"}
"""They measure or train for a second each time."""


def source_of(name: str) -> dict[str, Any]:
    """Return what a picture can be drawn from: numbers of its own, a Trace, or a model and a text."""
    for values in (
        {},
        {"source": trace()},
        {"source": translator(), "text": TEXT, "target": TARGET},
        {"source": bundled(), "text": "The old man"},
        {"source": vf.load("mini-caption"), "text": "a red circle in the middle"},
    ):
        try:
            result_of(partial(vf.figures.draw, name, **values), {})
        except VisformerError:
            continue
        return values
    raise AssertionError(f"{name} can be drawn from none of these")


@pytest.mark.full
@pytest.mark.parametrize("name", pictures())
def test_an_odd_option_of_a_picture_is_told_in_words(name):
    given, labels = source_of(name), ["'x'", "a Trace"] if name in SLOW_PICTURES else [*ODD]
    told = []
    for option in dict.fromkeys(["source", "text", "target", *pictures()[name].names]):
        for label, value in odd_values(option, labels):
            if wrong := outcome(partial(vf.figures.draw, name, **{**given, option: value}), {}):
                told.append(f"{name}({option}={label}): {wrong}")
    assert not told


@pytest.mark.full
@pytest.mark.parametrize("family", ["bert", "gpt2", "bart"])
def test_an_odd_argument_of_a_wrapped_model_is_told_in_words(family):
    from tests.adapters.huggingface.hub import tiny_model

    model = tiny_model(family)
    own = {**RIGHT, "trace": lambda: model.trace(TEXT), "names": lambda: ["decoder.0.self_attn.heads"]}
    runs = {"log_probabilities": (), "logits": (), "gate_gradients": lambda logits: logits[0, 0]}
    for method, changed in runs.items():
        own[f"{method}.runs"] = lambda changed=changed: [(encoded(model), changed)]
    own["token_id.text"] = lambda: "school"
    own["recorded.texts"] = lambda: [encoded(model)]
    told = []
    for method in methods_of(type(model)):
        if family == "bert" and (f"{method}.runs" in own or method == "recorded"):
            continue  # it predicts nothing
        call = getattr(model, method)
        needs = [each.name for each in inspect.signature(call).parameters.values() if each.default is each.empty]

        def make(method=method, needs=needs):
            return {name: own.get(f"{method}.{name}", own.get(name))() for name in needs}

        told += faults(method, call, make, [*ODD])
    assert not told
