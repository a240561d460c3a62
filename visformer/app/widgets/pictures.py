"""Registered pictures on a page: where their numbers come from, and how they are drawn."""

from fnmatch import fnmatchcase
from typing import TYPE_CHECKING, Any

from visformer.app.serving.workbench import PATTERNS
from visformer.app.session import boxes
from visformer.app.widgets import controls, formula_box
from visformer.pictures.picture import Picture, View
from visformer.pictures.setting import Setting, Source
from visformer.trace.stacks import STACKS

if TYPE_CHECKING:  # numpy
    from visformer.trace import Trace


def setting_of(view: View, trace: "Trace | None", recorded: tuple[str, ...] = PATTERNS, **known: Any) -> Setting:
    """What a view is drawn from; ``known``: options whose values the page knows already."""
    return Setting(source_of(trace, recorded), view.needs if isinstance(view, Picture) else (), known)


def source_of(trace: "Trace | None", recorded: tuple[str, ...] = PATTERNS) -> Source:
    """The visitor's sentence and model.

    Args:
        trace: of the sentence; None: only formulas can be shown.
        recorded: globs over what the Trace holds; what else a picture needs is computed.
    """
    common: dict[str, Any] = {"theme": formula_box.theme(), "gettext": boxes.gettext()}
    common["d_model"] = controls.width() or 32
    if trace is None:
        return Source(**common)

    def record(needs: tuple[str, ...]) -> Any:
        held = all(any(fnmatchcase(name, glob) for glob in (*PATTERNS, *recorded)) for name in needs)
        return trace if held else controls.current_trace(needs)

    def untrained(norm: str, needs: tuple[str, ...]) -> "Trace":
        return controls.bench().untrained(boxes.source(), str(trace.meta["target"]), norm=norm, record=needs)

    return Source(
        record=record,
        speak=lambda **how: controls.bench().decoded(boxes.source(), **how),
        read=lambda text: controls.bench().trace(text, None, record=PATTERNS),
        untrained=untrained,
        stacks=tuple(stack.name for stack in STACKS if stack.in_trace(trace)),
        tokens=trace.tokens["src" if "src" in trace.tokens else "tgt"],
        **common,
    )


def draw(picture: Picture, setting: Setting, **how: Any) -> None:
    """Draw it, with a way to keep it; ``how``: as of :func:`visformer.app.widgets.controls.draw`."""
    controls.draw(picture.draw(setting), **how)
