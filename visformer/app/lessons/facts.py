"""Facts of the sentence shown, which the texts of a lesson name as fields: "{query} attends to {key}".

So a text speaks of the visitor's own words and numbers. A step about a row of weights shows the row that its link names
or, in any other sentence than its own, that of the word that reads another one most.
"""

import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any

from visformer.errors import N_, Message
from visformer.pictures.registry.setting import PATTERNS
from visformer.web.selection import Selection

if TYPE_CHECKING:  # numpy
    from visformer.trace import Trace

FIELD = re.compile(r"\{([a-z_]{1,40})\}")
"""A field in a text, with the name of its fact."""

UNKNOWN = "…"
"""What stands for a fact that there is not: the sentence cannot be run, or the model lacks what it is computed from."""


@dataclass(frozen=True)
class Shown:
    """What a step shows: a Trace, and a place in it whose query is set."""

    trace: "Trace"
    place: Selection

    @cached_property
    def path(self) -> str:
        """The name of the attention."""
        part, kind = self.place.stack.split(".")
        return f"{part}.{self.place.layer}.{kind}"

    @cached_property
    def sides(self) -> tuple[str, str]:
        """The sides of queries and keys."""
        queries, keys = (axis.side or "" for axis in self.trace[f"{self.path}.pattern"].axes[1:])
        return queries, keys

    def row(self, name: str) -> Any:
        """Return the query's row of a tensor of this head, (key,)."""
        values = self.trace[f"{self.path}.{name}"].value
        return values[min(self.place.head, len(values) - 1), self.query]

    @property
    def query(self) -> int:
        """The row."""
        assert self.place.query is not None
        return self.place.query

    @cached_property
    def key(self) -> int:
        """The selected key; without one, that with the largest weight."""
        return int(self.row("pattern").argmax()) if self.place.key is None else self.place.key

    def vector(self, name: str) -> Any:
        """Return the vector of the row's word in a tensor of this layer."""
        return self.trace[f"{self.path.rpartition('.')[0]}.{name}"].value[self.query]

    def length(self, name: str) -> str:
        """Return the length of this vector."""
        import numpy as np

        return _decimals(float(np.linalg.norm(self.vector(name))))

    @cached_property
    def undivided(self) -> float:
        """The largest weight that the row would have without the division by √d_k."""
        import numpy as np

        d_k = self.trace[f"{self.path}.q"].shape[-1]
        scores = self.row("scores")[self.row("mask")].astype(np.float64) * np.sqrt(d_k)
        return float(1 / np.exp(scores - scores.max()).sum())

    @cached_property
    def steps(self) -> Any:
        """What each row of the decoder predicts."""
        from visformer.pictures.map import steps

        return steps(self.trace)

    @cached_property
    def unsure(self) -> int:
        """The step, from 0, at which the likeliest token is the least likely."""
        return min(range(len(self.steps)), key=lambda i: self.steps[i].probabilities[0])

    def token(self, side: str, at: int) -> str:
        """Return a token as it is displayed."""
        from visformer.pictures.style import visible

        return visible(self.trace.tokens[side][at])

    def candidate(self, step: int, place: int) -> str:
        """Return one of the likeliest tokens of a step, from 0."""
        from visformer.pictures.style import visible

        return visible(self.steps[step].tokens[place])

    def chance(self, step: int, place: int) -> str:
        """Return its probability."""
        from visformer.pictures.style import probability

        return probability(self.steps[step].probabilities[place])


@dataclass(frozen=True)
class Fact:
    """A fact: what it says, how it is computed, and globs over the tensors that this takes."""

    about: Message
    of: Callable[[Shown], str]
    needs: tuple[str, ...] = PATTERNS


def _decimals(value: float) -> str:
    return f"{value:.2f}"  # as in the cell of a picture


_MASK, _HIDDEN, _LOGITS = (*PATTERNS, "*.mask"), (*PATTERNS, "*.ffn.hidden"), (*PATTERNS, "logits")
_BLOCK = (*PATTERNS, "*.resid_pre", "*.self_attn.out", "*.resid_self")
_SCORES = (*_MASK, "*.q", "*.scores")
FACTS: Mapping[str, Fact] = {
    "tokens": Fact(N_("number of tokens of the sentence, with </s>"), lambda s: str(len(s.trace.tokens["src"]))),
    "translation": Fact(N_("the target: the model's own, or what was typed"), lambda s: str(s.trace.meta["target"])),
    "steps": Fact(N_("number of tokens that the decoder writes, with </s>"), lambda s: str(len(s.steps)), _LOGITS),
    "query": Fact(N_("the word whose row is selected"), lambda s: s.token(s.sides[0], s.query)),
    "key": Fact(
        N_("the selected key; without one, that of the row's largest weight"), lambda s: s.token(s.sides[1], s.key)
    ),
    "weight": Fact(N_("the weight that the row gives to this key"), lambda s: _decimals(s.row("pattern")[s.key])),
    "undivided": Fact(
        N_("the row's largest weight if its scores were not divided by √d_k"), lambda s: _decimals(s.undivided), _SCORES
    ),
    "readable": Fact(
        N_("number of keys that the mask leaves to the row"), lambda s: str(int(s.row("mask").sum())), _MASK
    ),
    "zeros": Fact(
        N_("share of zeros behind ReLU, in the layer's feed-forward network, for the row's word"),
        lambda s: f"{(s.vector('ffn.hidden') == 0).mean():.3f}",
        _HIDDEN,
    ),
    "length": Fact(
        N_("length of the vector of the row's word that enters the layer"), lambda s: s.length("resid_pre"), _BLOCK
    ),
    "added": Fact(
        N_("length of what the layer's self-attention adds to it"), lambda s: s.length("self_attn.out"), _BLOCK
    ),
    "normed": Fact(N_("length of their sum, normalised"), lambda s: s.length("resid_self"), _BLOCK),
    "first": Fact(N_("the likeliest token of step 1"), lambda s: s.candidate(0, 0), _LOGITS),
    "first_probability": Fact(N_("the probability of {first}"), lambda s: s.chance(0, 0), _LOGITS),
    "unsure_step": Fact(N_("the step, from 1, with the least confidence"), lambda s: str(s.unsure + 1), _LOGITS),
    "unsure": Fact(N_("the likeliest token of that step"), lambda s: s.candidate(s.unsure, 0), _LOGITS),
    "unsure_probability": Fact(N_("the probability of {unsure}"), lambda s: s.chance(s.unsure, 0), _LOGITS),
    "other": Fact(N_("the second likeliest token of that step"), lambda s: s.candidate(s.unsure, 1), _LOGITS),
    "other_probability": Fact(N_("the probability of {other}"), lambda s: s.chance(s.unsure, 1), _LOGITS),
}
"""Every fact that a text can name."""


def needs(names: Iterable[str]) -> tuple[str, ...]:
    """Return globs over the tensors that these facts are computed from."""
    return tuple(dict.fromkeys(glob for name in names if name in FACTS for glob in FACTS[name].needs)) or PATTERNS


def told(names: Iterable[str], trace: "Trace | None", selection: Selection, *, keeps_row: bool) -> dict[str, str]:
    """Return these facts, as far as there are such facts; arguments as for :func:`aimed`."""
    known = [name for name in names if name in FACTS]
    if trace is None:
        return dict.fromkeys(known, UNKNOWN)
    shown = Shown(trace, aimed(selection, trace, keeps_row=keeps_row, sets_row=True))
    return {name: _tell(FACTS[name], shown) for name in known}


def _tell(fact: Fact, shown: Shown) -> str:
    try:
        return fact.of(shown)
    except (LookupError, ValueError):  # of a model, or a text, without a decoder, logits, words
        return UNKNOWN


def filled(text: str, values: Mapping[str, str]) -> str:
    """Put facts into a text; what looks like a field and is none stays as it is."""
    return FIELD.sub(lambda match: values.get(match[1], match[0]), text)


def aimed(selection: Selection, trace: "Trace", *, keeps_row: bool, sets_row: bool = False) -> Selection:
    """Return the selection in this Trace.

    Args:
        selection: of a step's link.
        trace: of the sentence that is shown.
        keeps_row: whether this is the step's own sentence, whose row the link names.
        sets_row: whether the query is set even if the link has none.
    """
    fitting, _ = selection.fitting(trace)
    has_row = fitting.query is not None
    if (keeps_row and has_row) or not (sets_row or selection.query is not None or selection.key is not None):
        return fitting
    query, key = _striking(fitting, trace)
    return replace(fitting, query=query, key=None if selection.key is None else key)


def _striking(place: Selection, trace: "Trace") -> tuple[int, int]:
    """Return the cell in which a word of this head reads another one most."""
    from visformer.analysis.heads import strongest_word

    tensor = trace.layers(place.stack)[place.layer]
    pattern, (reads, read) = tensor.value[place.head], (axis.side or "" for axis in tensor.axes[1:])
    query = strongest_word(
        pattern, trace.tokens[reads], trace.tokens[read], (trace.special[reads], trace.special[read])
    )
    if query is None:
        query = int(pattern.max(axis=1).argmax())
    return query, int(pattern[query].argmax())
