"""The pictures of the pages by name, for those who are on no page: a sentence in, panels or a figure out."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from visformer.errors import N_, VisformerError
from visformer.panel import Panel
from visformer.pictures import block, decoding, embedding, head, lab, masks, positions
from visformer.pictures.examples import WORKED
from visformer.pictures.examples.worked import SLICED, compute
from visformer.trace import Trace


class Outside(VisformerError):
    """A place beyond the last one; ``params``: its name, the place from 0, and the count of places."""


def _needs_model(*_: Any, **__: Any) -> Any:
    raise VisformerError(N_("This picture needs a model: give a sentence, not a saved trace."))


@dataclass(frozen=True, kw_only=True)
class Asked:
    """What a picture is made of, all counted from 0. With neither model nor Trace there are the pictures of formulas.

    Args:
        trace: globs to a Trace of the sentence.
        speak: settings to what the model says, see ``translate``.
        read: another sentence to its Trace, with patterns.
        untrained: "post" or "pre", and globs, to a Trace of the pair by a model that has learned nothing.
        d_model: of the model.
        order: how the model knows the order of tokens, a key of POSITIONS in
            :mod:`visformer.adapters.huggingface.families`.
        part: "encoder" or "decoder".
        kind: "self_attn" or "cross_attn".
        layer: which.
        head: which.
        query: the token that reads.
        step: of decoding; None: the first, or of what grows the last.
        beams: hypotheses kept.
        positions: how many.
        pos: where a rotation starts.
        offset: how many positions further it takes.
        i: of the dimensions 2i and 2i + 1, which it turns.
        example: name of a worked example; "": the first.
        sample: of a worked example, the sentence.
        theme: of a figure.
        gettext: translates what a figure or a title with numbers in it says.
    """

    trace: Callable[[tuple[str, ...]], Trace] = _needs_model
    speak: Callable[..., Any] = _needs_model
    read: Callable[[str], Trace] = _needs_model
    untrained: Callable[[str, tuple[str, ...]], Trace] = _needs_model
    d_model: int = 64
    order: str = "sinusoidal"
    part: Any = "encoder"
    kind: str = "self_attn"
    layer: int = 0
    head: int = 0
    query: int = 0
    step: int | None = None
    beams: int = 4
    positions: int = 24
    pos: int = 3
    offset: int = 5
    i: int = 1
    example: str = ""
    sample: int = 0
    theme: Any = "light"
    gettext: Callable[[str], str] = str

    @property
    def path(self) -> str:
        """Of the attention."""
        return f"{self.part}.{self.layer}.{self.kind}"

    @property
    def side(self) -> Any:
        """Whose tokens the stack reads."""
        return "src" if self.part == "encoder" else "tgt"

    def within(self, name: str, count: int, *, first: int = 0) -> int:
        """A place of which there are ``count``; ``first`` where none was asked for.

        Raises:
            Outside: it lies beyond.
        """
        asked = getattr(self, name)
        place: int = first if asked is None else asked
        if place >= count:
            said = N_("There is no {name} {place}: there are {count}, counted from 0.")
            raise Outside(said, name=name, place=place, count=count)
        return place


def draw(name: str, asked: Asked) -> Any:
    """Panels, or a figure, as :func:`visformer.export.save` takes them.

    Args:
        name: of PICTURES.
        asked: of what.

    Raises:
        MissingTensor: the model has no such tensor; the message says why.
        Outside: a place that there is not.
        VisformerError: a name that there is not, or something that there is no model for.
    """
    if name not in PICTURES:
        raise VisformerError(N_("There is no picture {name!r}: {names}."), name=name, names=", ".join(PICTURES))
    try:
        return PICTURES[name](asked)
    except IndexError as error:
        raise VisformerError(
            N_("This place is outside the picture {name}: {reason}"), name=name, reason=error
        ) from error


def _steps(asked: Asked) -> Any:
    place = head.Place(asked.path, asked.head, asked.query)
    return [*head.steps(asked.trace(place.record), place)]


def _joined(asked: Asked) -> Any:
    place = head.Place(asked.path, asked.head, asked.query)
    return head.joined(asked.trace((*place.record, f"{place.path}.w_*", f"{place.path}.b_*")), place)


def _added(asked: Asked) -> Any:
    sublayer = "cross" if asked.kind == "cross_attn" else "self"
    return [block.added(asked.trace(block.RECORD), asked.part, asked.layer, sublayer)]


def _ffn(asked: Asked) -> Any:
    return [block.added(asked.trace(block.RECORD), asked.part, asked.layer, "ffn")]


def _masked(asked: Asked) -> Any:
    record = tuple(f"{asked.path}.{name}" for name in ("scores", "mask", "pattern"))
    return masks.before_and_after(asked.trace(record), asked.path, asked.head)


def _batch(asked: Asked) -> Any:
    return masks.batch([asked.trace(("*.pattern",)), asked.read(masks.SHORT)])


def _revealed(asked: Asked) -> Any:
    trace = asked.trace(("*.pattern",))
    side = _written(trace)
    tokens = trace.tokens[side]
    step = asked.within("step", len(tokens), first=len(tokens) - 1)
    return [masks.revealed(tokens, step + 1, causal=side == "tgt")]


def _written(trace: Trace) -> str:
    """The side that a decoder writes; an encoder only reads."""
    return "tgt" if "tgt" in trace.tokens else "src"


def _growing(asked: Asked) -> Any:
    trace = asked.trace(("*.pattern",))
    if "tgt" not in trace.tokens:
        raise VisformerError(
            N_("This model is an encoder: it reads a text and writes none, so it takes no steps of decoding.")
        )
    layers = trace.layers("decoder", decoding.kind(trace))
    rows = layers[0].value.shape[1]
    layer, step = asked.within("layer", len(layers)), asked.within("step", rows, first=rows - 1)
    return [decoding.growing(trace, layer, step)]


def _norms(asked: Asked) -> Any:
    untrained = {norm: asked.untrained(norm, block.RECORD) for norm in block.UNTRAINED}
    shown = block.norms(asked.trace(block.RECORD), asked.part, untrained)
    return block.noted(shown, asked.gettext("strongest colour: {limit:.1f}"))


def _of_model(asked: Asked) -> Any:
    trace = asked.trace(embedding.RECORD)
    return positions.of_model(trace, "src" if "src" in trace.tokens else "tgt")


def _learned(asked: Asked) -> Any:
    n, d_model = asked.positions, asked.d_model
    return [positions.encoding(n, d_model), positions.learned(n, d_model, max_len=min(n, 16))]


def _turn(asked: Asked) -> dict[str, int]:
    """Of a rotation."""
    i = asked.within("i", asked.d_model // 2)
    return {"position": asked.pos, "offset": asked.offset, "pair": i, "d_model": asked.d_model}


def _circle(asked: Asked) -> Any:
    from visformer.figures import rotation_circle

    return rotation_circle(**_turn(asked), theme=asked.theme)


def _lab(asked: Asked) -> Any:
    names = [example.name for example in WORKED]
    if (name := asked.example or names[0]) not in names:
        raise VisformerError(N_("There is no example {name!r}: {names}."), name=name, names=", ".join(names))
    example = WORKED[names.index(name)]
    results = compute(example, example.inputs)
    sizes = example.choices({**example.inputs, **results})
    at = {axis: asked.within(axis, sizes.get(axis, 1)) for axis in SLICED}
    shown = lab.drawn(lab.View(example, example.inputs, at), results, gettext=asked.gettext)
    return [shown] if example.tokens else shown


def _candidates(asked: Asked) -> Any:
    from visformer.figures import candidate_bars

    gettext, steps = asked.gettext, asked.speak().steps
    at = asked.within("step", len(steps))
    names = gettext("model"), gettext("drawn from"), gettext("all others")
    words: dict[str, Any] = {"names": names, "title": gettext("step {step}: what might come next")}
    return candidate_bars(steps[at].candidates, steps[at].chosen.id, step=at, **words, theme=asked.theme)


def _beams(asked: Asked) -> Any:
    from visformer.figures import beam_tree

    title, beams = asked.gettext("beam search: {size} hypotheses kept"), asked.speak(beam_size=asked.beams).beams
    return beam_tree(beams, unit=asked.gettext("nats"), title=title, theme=asked.theme)


def _waves(asked: Asked) -> Any:
    from visformer.figures import position_waves

    some = sorted({i + j for i in (0, asked.d_model // 16 * 2, asked.d_model // 8 * 2) for j in (0, 1)})
    axes = asked.gettext("pos, from 0"), asked.gettext("PE(pos, dimension)")
    title = asked.gettext("positional encoding, d_model {d_model}")
    return position_waves(asked.positions, asked.d_model, some, axes=axes, title=title, theme=asked.theme)


def _similarity(asked: Asked) -> Any:
    shown = block.similarities(asked.trace(block.RECORD), asked.part, asked.gettext("after layer {layer}"))
    return _told(shown, asked)


def _told(shown: list[Panel], asked: Asked) -> list[Panel]:
    return block.told_ends(shown, asked.gettext)


def _sureness(asked: Asked) -> Any:
    steps, title = asked.speak().steps, asked.gettext("how sure of each step (least: {step}, {token})")
    return [decoding.sureness(steps, asked.within("step", len(steps)), title=title)]


PICTURES: Mapping[str, Callable[[Asked], Any]] = {
    "embedding": lambda asked: [embedding.sums(asked.trace(embedding.RECORD), asked.side)],
    "positions": lambda asked: [positions.encoding(asked.positions, asked.d_model)],
    "position-angles": lambda asked: positions.outer_product(asked.positions, asked.d_model),
    "position-similarity": lambda asked: [positions.similarity(asked.positions, asked.d_model)],
    "position-rotation": lambda asked: positions.rotation(**_turn(asked)),
    "position-circle": _circle,
    "position-learned": _learned,
    "position-model": _of_model,
    "waves": _waves,
    "mask": _masked,
    "mask-batch": _batch,
    "mask-steps": _revealed,
    "query": _steps,
    "all-heads": _joined,
    "stream": lambda asked: _told([block.stream(asked.trace(block.RECORD), asked.part)], asked),
    "sublayer": _added,
    "feed-forward": _ffn,
    "zeros": lambda asked: _told([block.silent_share(asked.trace(block.RECORD), asked.part)], asked),
    "similarity": _similarity,
    "norms": _norms,
    "sureness": _sureness,
    "candidates": _candidates,
    "growing": _growing,
    "beams": _beams,
    "lab": _lab,
}
