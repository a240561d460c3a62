"""What a picture is drawn from: a source (a sentence and its model, a saved Trace, or neither), and its options."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from visformer.errors import N_, VisformerError
from visformer.i18n import Gettext

if TYPE_CHECKING:  # numpy
    from visformer.trace import Trace

PATTERNS = ("*.pattern",)


def _needs_model(*_: Any, **__: Any) -> Any:
    raise VisformerError(N_("This picture needs a model: give a sentence, not a saved trace."))


@dataclass(frozen=True, kw_only=True)
class Source:
    """Where numbers come from. A formula needs none of it.

    Args:
        record: globs to a Trace of the sentence.
        speak: settings to what the model says, see ``translate``.
        read: another sentence to its Trace, with patterns.
        untrained: "post" or "pre", and globs, to a Trace of the pair by a model that has learned nothing; None:
            there is no such model.
        stacks: the attentions that the model has, such as "decoder.cross_attn".
        d_model: of the model.
        tokens: what stands at the first positions.
        theme: of a figure.
        gettext: translates what a figure or a title with numbers in it says.
    """

    record: Callable[[tuple[str, ...]], "Trace"] = _needs_model
    speak: Callable[..., Any] = _needs_model
    read: Callable[[str], "Trace"] = _needs_model
    untrained: Callable[[str, tuple[str, ...]], "Trace"] | None = _needs_model
    stacks: tuple[str, ...] = ("encoder.self_attn", "decoder.self_attn", "decoder.cross_attn")
    d_model: int = 64
    tokens: tuple[str, ...] = ()
    theme: Any = "light"
    gettext: Gettext = str


class Setting(dict[str, Any]):
    """The values of a picture's options, all counted from 0, and its source."""

    def __init__(self, source: Source, needs: tuple[str, ...] = (), values: Mapping[str, Any] | None = None) -> None:
        super().__init__(values or {})
        self.source, self.gettext, self._needs = source, source.gettext, needs

    @property
    def part(self) -> Any:
        """One of "encoder" and "decoder"."""
        return self["stack"].split(".")[0]

    @property
    def kind(self) -> Any:
        """One of "self_attn" and "cross_attn"."""
        return self["stack"].split(".")[1]

    @property
    def side(self) -> Any:
        """Whose tokens the stack reads: "src" or "tgt"."""
        return "src" if self.part == "encoder" else "tgt"

    @property
    def path(self) -> str:
        """The attention, such as "decoder.0.cross_attn"."""
        return f"{self.part}.{self['layer']}.{self.kind}"

    @property
    def needs(self) -> tuple[str, ...]:
        """Globs over the tensors that the picture shows: ``{path}`` and so on in its declaration are these."""
        if "stack" not in self:
            return self._needs
        place = {"part": self.part, "kind": self.kind, "path": self.path if "layer" in self else ""}
        return tuple(name.format(**{**self, **place}) for name in self._needs)

    @property
    def trace(self) -> "Trace":
        """The sentence's, with what the picture needs."""
        return self.source.record(self.needs)

    @property
    def patterns(self) -> "Trace":
        """The sentence's, with the patterns alone: they tell how many layers, heads and tokens there are."""
        return self.source.record(PATTERNS)
