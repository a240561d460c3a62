"""The input of a picture: a source (a sentence and a model, a saved Trace, or neither) and the option values."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from visformer.errors import N_, VisformerError
from visformer.i18n import Gettext

if TYPE_CHECKING:  # numpy, pandas
    from visformer.analysis.atlas import Atlas
    from visformer.trace import Trace

PATTERNS = ("*.pattern",)

LONG = ("overview",)
"""What is recorded for a picture that can show a long text; of an ordinary one it is :data:`PATTERNS`."""
"""The tensors that the attention page records, and that the shipped Trace holds."""


def _needs_model(*_: Any, **__: Any) -> Any:
    raise VisformerError(N_("This picture needs a model: give a sentence, not a saved trace."))


def _read_atlas(name: str) -> "Atlas":
    from visformer.analysis.atlas import Atlas, bundled_names

    return Atlas.bundled(name) if name in bundled_names() else Atlas.read(name)


@dataclass(frozen=True, kw_only=True)
class Source:
    """Where the numbers come from; pictures of formulas need none of it.

    Args:
        record: records the tensors that match some globs, and returns a Trace of the sentence.
        speak: generates text with some settings, see ``translate``.
        read: records another input, by default its patterns, and returns its Trace: ``read(text, target, model=,
            moment=, edits=, record=)``, of this model by default; target: as text or as ids, of an encoder its second
            sentence.
        models: names of the models that ``read`` knows besides this one.
        moments: returns what is known of each moment of this model's training, such as its "step"; none: not kept.
        edits: changes of the model to compare with it unchanged.
        measure: calls an analysis, a function of a module, with the model, the sentence, its target, and keywords.
        atlas: returns an atlas by its name: of a bundled one, or its path; a page has names of its own.
        atlases: the names that a page offers; none: those of the bundled ones.
        stacks: the attentions that the model has, such as "decoder.cross_attn".
        d_model: the model's width.
        tokens: the tokens at the first positions.
        theme: "light" or "dark", for figures.
        gettext: translates the text of figures, and titles that contain numbers.
    """

    record: Callable[[tuple[str, ...]], "Trace"] = _needs_model
    speak: Callable[..., Any] = _needs_model
    read: Callable[..., "Trace"] = _needs_model
    models: tuple[str, ...] = ()
    moments: Callable[[], tuple[Mapping[str, float], ...]] = tuple
    edits: tuple[Any, ...] = ()
    measure: Callable[..., Any] = _needs_model
    atlas: "Callable[[str], Atlas]" = _read_atlas
    atlases: tuple[str, ...] = ()
    stacks: tuple[str, ...] = ("encoder.self_attn", "decoder.self_attn", "decoder.cross_attn")
    d_model: int = 64
    tokens: tuple[str, ...] = ()
    theme: Any = "light"
    gettext: Gettext = str


class Setting(dict[str, Any]):
    """The values of a picture's options, with indices from 0, and its source."""

    def __init__(self, source: Source, needs: tuple[str, ...] = (), values: Mapping[str, Any] | None = None) -> None:
        super().__init__(values or {})
        self.source, self.gettext, self._needs = source, source.gettext, needs

    @property
    def part(self) -> Any:
        """The stack's part, "encoder" or "decoder"."""
        return self["stack"].split(".")[0]

    @property
    def kind(self) -> Any:
        """The stack's kind of attention, "self_attn" or "cross_attn"."""
        return self["stack"].split(".")[1]

    @property
    def side(self) -> Any:
        """The side whose tokens are the stack's queries, "src" or "tgt"."""
        return "src" if self.part == "encoder" else "tgt"

    @property
    def path(self) -> str:
        """The name of the attention, such as "decoder.0.cross_attn"."""
        return f"{self.part}.{self['layer']}.{self.kind}"

    @property
    def needs(self) -> tuple[str, ...]:
        """Globs over the tensors that the picture shows, with ``{path}`` etc. of its declaration filled in."""
        if "stack" not in self:
            return self._needs
        place = {"part": self.part, "kind": self.kind, "path": self.path if "layer" in self else ""}
        return tuple(name.format(**{**self, **place}) for name in self._needs)

    @property
    def trace(self) -> "Trace":
        """The Trace of the sentence, with the tensors that the picture needs."""
        return self.source.record(self.needs)

    @property
    def patterns(self) -> "Trace":
        """The Trace of the sentence with only its patterns, which determine the number of layers, heads and tokens."""
        return self.source.record(PATTERNS)
