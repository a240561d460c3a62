"""Pictures for notebooks and papers, as plotly figures: ``vf.figures.stream(trace, stack="decoder.self_attn")``.

Every registered picture is available as a function, its name spelled with underscores; see :func:`draw`. Functions are
imported on first use, because plotly is large.
"""

import importlib
import inspect
from collections.abc import Callable
from functools import cache, partial
from typing import TYPE_CHECKING, Any

from visformer.system.arguments import checked, public

_PLACES = {
    "decoding": "beam_tree candidate_bars",
    "panels": "attention_head attention_heads matrix",
    "positions": "position_waves rotation_circle",
}

__all__ = [
    "attention_head",
    "attention_heads",
    "beam_tree",
    "candidate_bars",
    "draw",
    "matrix",
    "position_waves",
    "rotation_circle",
]

if TYPE_CHECKING:
    from plotly.graph_objects import Figure

    from visformer.adapters.base import TracedModel
    from visformer.adapters.requests import Text
    from visformer.export.notebook import Explorer
    from visformer.pictures.charts.decoding import beam_tree, candidate_bars
    from visformer.pictures.charts.panels import attention_head, attention_heads, matrix
    from visformer.pictures.charts.positions import position_waves, rotation_circle
    from visformer.pictures.registry.setting import Source
    from visformer.pictures.style import Theme
    from visformer.trace import Trace


@checked
def draw(
    picture: str,
    source: "Trace | TracedModel | None" = None,
    text: "Text | None" = None,
    *,
    target: "Text | None" = None,
    theme: "Theme" = "light",
    lang: str = "en",
    **options: Any,
) -> "Figure | Explorer":
    """Draw one of the app's pictures by name.

    Args:
        picture: name such as "stream"; ``visformer export --help`` lists all, with their options.
        source: a Trace with the tensors that the picture shows, or a model to run on ``text``; None for formulas.
        text: the sentence, or its token ids.
        target: as for ``model.trace``; None: the model's own output.
        theme: "light" or "dark".
        lang: language of the text in the figure.
        options: such as ``stack="decoder.self_attn"``; layers, heads and tokens count from 0.

    Returns:
        The figure, with hover; ``show()`` or the end of a cell draws it. Of "map" and "history" what the end of a cell
        draws, live. :func:`visformer.export.save` writes both to a file.

    Raises:
        VisformerError: the name or an option is unknown, or the source cannot provide what the picture needs.
    """
    from visformer.i18n import translations
    from visformer.panel import one_by_one
    from visformer.pictures.charts.panels import matrix
    from visformer.pictures.registry.picture import is_figure
    from visformer.pictures.registry.picture import picture as registered

    words: dict[str, Any] = {"theme": theme, "gettext": translations(lang).gettext}
    declared = registered(picture)
    drawn = declared.make(source_of(source, text, target, **words), options)
    if declared.live:
        from visformer.export.notebook import live

        return live(drawn, lang=lang)  # type: ignore[arg-type]
    if is_figure(drawn):
        return drawn
    figure = matrix(*one_by_one(drawn), theme=theme)
    figure.panels = drawn  # some are one below the other
    return figure


def source_of(
    source: Any,
    text: "Text | None" = None,
    target: "Text | None" = None,
    *,
    pair: "Text | None" = None,
    to: str | None = None,
    **look: Any,
) -> "Source":
    """Make the Source of a picture from a Trace, or from a model and the arguments of its ``trace``; None for formulas.

    ``look``: theme and gettext.
    """
    from visformer.pictures.registry.setting import PATTERNS, Source
    from visformer.trace import Trace
    from visformer.trace.stacks import STACKS

    if source is None:
        return Source(**look)
    if isinstance(source, Trace):
        held = tuple(stack.name for stack in STACKS if stack.in_trace(source))
        return Source(record=lambda _: source, stacks=held or Source.stacks, **look)

    from visformer.adapters.checkpoints import OF_TEXT, figures_of
    from visformer.adapters.load import load

    @cache
    def record(needs: tuple[str, ...]) -> Trace:
        trace: Trace = source.trace(text, target, pair=pair, to=to, record=source.available(needs))
        return trace

    def measure(analysis: Callable[..., Any], **settings: Any) -> Any:
        return analysis(source, text, target, to=to, **settings)

    def read(
        other: "Text",
        written: "Text | None" = None,
        *,
        model: str | None = None,
        moment: int | None = None,
        edits: Any = (),
        record: tuple[str, ...] = PATTERNS,
    ) -> Trace:
        name = model if model is not None else _name_of(source) if moment is not None else None
        used = source if name is None else load(name, moment=moment)
        second: dict[str, Any] = {"pair" if used.info.kind == "encoder" else "target": written}
        second["to"] = to if model is None else None
        trace: Trace = used.trace(other, edits=edits, record=used.available(record), **second)
        return trace

    return Source(
        record=record,
        speak=cache(partial(source.translate, text, to=to)),
        read=cache(read),
        measure=measure,
        models=OF_TEXT,
        moments=lambda: figures_of(_name_of(source)),
        stacks=tuple(stack.name for stack in STACKS if stack.of_kind(source.info.kind)),
        d_model=source.info.d_model,
        **look,
    )


def _name_of(model: Any) -> str:
    """Return the name under which a model can be loaded again."""
    from visformer.adapters.checkpoints import BUNDLED, model_of

    name: str = model_of(model.info.name)[0]
    return name if name in BUNDLED else str(model.info.source)


@cache
def _of_picture(name: str) -> "Callable[..., Figure | Explorer]":
    """Return the function that draws a picture, with the picture's options in its signature and its description."""
    from visformer.pictures.registry.picture import picture as registered

    def figure(*args: Any, **options: Any) -> "Figure | Explorer":
        return draw(name, *args, **options)

    declared, common = registered(name), inspect.signature(draw)
    options = [option for option in declared.options if not option.page_only]
    defaults = {option.name: None if callable(option.default) else option.default for option in options}
    own = [inspect.Parameter(each, inspect.Parameter.KEYWORD_ONLY, default=value) for each, value in defaults.items()]
    parameters = [each for each in common.parameters.values() if each.name not in ("picture", "options")]
    said = "".join(f"    {option.name}: {option.help or option.label}\n" for option in options)
    figure.__name__ = figure.__qualname__ = name.replace("-", "_")
    figure.__module__ = __name__
    figure.__doc__ = f"{declared.title or name}. {declared.look_for}\n\nOptions; None: the picture chooses.\n\n{said}"
    figure.__signature__ = common.replace(parameters=[*parameters, *own])  # type: ignore[attr-defined]
    return figure


def __getattr__(name: str) -> Any:
    for place, names in _PLACES.items():
        if name in names.split():
            return public(getattr(importlib.import_module(f"visformer.pictures.charts.{place}"), name), __name__)
    if not name.startswith("_"):
        from visformer.pictures.registry.picture import pictures

        if (picture := name.replace("_", "-")) in pictures():
            return _of_picture(picture)
    raise AttributeError(f"module 'visformer.figures' has no attribute {name!r}")


def __dir__() -> list[str]:
    from visformer.pictures.registry.picture import pictures

    return sorted([*__all__, *(name.replace("-", "_") for name in pictures())])
