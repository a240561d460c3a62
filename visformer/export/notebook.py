"""The explorer, also at every moment of a training, and the whole model as the output of a notebook cell."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any, Literal
from urllib.parse import urlencode

from visformer.errors import N_, TraceError
from visformer.export.attention import selected
from visformer.export.drawables import Options, drawable_of
from visformer.i18n import languages, translations
from visformer.pictures.attention import History
from visformer.pictures.compare import mapped
from visformer.pictures.map import WholeModel
from visformer.pictures.registry.setting import Setting, Source
from visformer.pictures.sides import Sides
from visformer.system import limits
from visformer.trace import Trace
from visformer.trace.overview import PatternOnDemand
from visformer.web.selection import START_VIEW, Selection


@dataclass(frozen=True)
class Explorer:
    """What a notebook shows if it is the last line of a cell.

    Args:
        html: an iframe with the script and the numbers; it needs no network.
        drawn: what it shows, which :func:`visformer.export.save` writes to a file.
    """

    html: str
    drawn: Trace | WholeModel | History | Sides = field(repr=False)

    def __repr__(self) -> str:
        return f"Explorer({len(self.html):,} bytes)"

    def _repr_html_(self) -> str:
        return self.html


def explorer(
    trace: Trace,
    *,
    stack: str | None = None,
    layer: int | None = None,
    head: int | None = None,
    view: str = START_VIEW,
    query: int | None = None,
    key: int | None = None,
    cells: Iterable[tuple[int, int]] = (),
    heads: Iterable[tuple[int, int]] = (),
    combine: Literal["one", "mean", "max"] = "one",
    order: str = "place",
    limit: str = "",
    merging: bool = False,
    hiding: bool = False,
    renormalising: bool = False,
    without: Iterable[str] = (),
    rows: Literal["input", "prediction", "both"] = "input",
    lang: str = "en",
) -> Explorer:
    """Show the explorer in a notebook, starting with a selection; the names are those of links, places count from 0.

    Args:
        trace: holds attention patterns or maps.
        stack: as for :func:`visformer.export.save`, such as "decoder.cross_attn"; None: with ``layer`` or ``head`` the
            first in the Trace, otherwise the pages' first head.
        layer: the layer of the head; None: the first in the Trace.
        head: the head; None: the first.
        view: how the head is drawn: "tokens", shaded text, "heatmap", "arcs" or, with all heads larger, "layer".
        query: the row of a locked cell; without ``key``, the whole row.
        key: the column of a locked cell.
        cells: cells locked besides, as pairs (query, key).
        heads: other heads drawn together with this one, as pairs (layer, head), with ``view`` "arcs" or a ``combine``.
        combine: "mean" or "max" of the heads, or of the whole layer, instead of one head.
        order: of the heads: "place", "similarity", or the name of a score such as "entropy".
        limit: which weights are drawn: "" all, "weight-0.05" those at least so large, "mass-0.9" the largest that sum
            to so much in each row.
        merging: whether sub-words are merged into words.
        hiding: whether special tokens are hidden.
        renormalising: whether rows are then rescaled to sum to 1.
        without: of a chat, the roles whose tokens are hidden, such as "system"; "template" is what its template writes.
        rows: what names the rows of a decoder: the token that they read as input, the one that they predict, or both.
        lang: the language of its words: "en", "zh" or another that visformer has.

    Returns:
        What the end of a cell displays.

    Raises:
        TraceError: the Trace has no such place, or there is no such view or order; the message says what there is. Or
            tokens of a long text should be hidden, which takes a server.
        BudgetError: there are more weights than can be shown.
    """
    place = selected(trace, stack=stack, layer=layer, head=head, query=query, key=key)
    here: dict[str, Any] = {"stack": place.stack, "layer": place.layer, "head": place.head}
    locked = [selected(trace, **here, query=row, key=column) for row, column in cells]
    others = [selected(trace, stack=place.stack, layer=one, head=other) for one, other in heads]
    if len(others) >= limits.MOST_HEADS:
        raise TraceError(
            N_("heads has {n} heads; up to {most} can be shown."), n=len(others), most=limits.MOST_HEADS - 1
        )
    _require_language(lang)
    texts = {"view": view, "combine": combine, "order": order, "limit": limit, "rows": rows}
    texts["without"] = ".".join([without] if isinstance(without, str) else without)
    how, wrong = Selection.from_link({field: text for field, text in texts.items() if text})
    if not wrong:
        _, wrong = replace(place, order=how.order).fitting(trace)
    for name, reason in wrong.items():
        raise TraceError(N_("{name} is {given!r}: {reason}"), name=name, given=texts[name], reason=reason)
    if hiding or without:
        _require_whole(trace, place.stack)
    chosen = replace(
        how,
        stack=place.stack,
        layer=place.layer,
        head=place.head,
        query=query,
        key=key,
        cells=".".join(f"{one.query}-{one.key}" for one in locked),
        heads=".".join(f"{other.layer}-{other.head}" for other in others),
        merging=merging,
        hiding=hiding,
        renormalising=renormalising,
    )
    return _shown(trace, lang, chosen.start())


def live(drawn: WholeModel | History, *, lang: str = "en") -> Explorer:
    """Show in a notebook what a browser draws: the whole model, or the explorer at every moment of a training.

    Raises:
        TraceError: there is no attention.
        BudgetError: there are more weights than can be shown.
    """
    _require_language(lang)
    return _shown(drawn, lang)


def compare(
    a: Any,
    b: Any,
    text: Any = None,
    *,
    target: Any = None,
    titles: tuple[str, str] | None = None,
    lang: str = "en",
) -> Explorer:
    """Show two passes as linked explorers in a notebook: of two texts, of a model before and after, or of two models.

    Args:
        a: a Trace, or a model to run on ``text``.
        b: another one.
        text: for models: the text, or its token ids.
        target: for models: as for ``model.trace``.
        titles: what each is; None: the models' names or, of one model, the texts.
        lang: the language of its words: "en", "zh" or another that visformer has.

    Returns:
        What the end of a cell displays; :func:`visformer.export.save` writes it to an .html file.

    Raises:
        TraceError: they have no attention in common or, of two models, no token; or a model was given no text.
    """
    _require_language(lang)
    first, second = (_traced(each, text, target) for each in (a, b))
    names = [str(trace.meta.get("model") or "") for trace in (first, second)]
    of_two = names[0] != names[1]
    said = names if of_two else [str(trace.meta.get("source") or "") for trace in (first, second)]
    sides = Sides(first, second, titles or (said[0] or "A", said[1] or "B"), matched=of_two)
    return _shown(mapped(Setting(Source(gettext=translations(lang).gettext)), sides), lang)


def _traced(given: Any, text: Any, target: Any) -> Trace:
    if isinstance(given, Trace):
        return given
    if text is None:
        raise TraceError(N_("A model is compared on a text: pass it after the two, or two Traces in their place."))
    trace: Trace = given.trace(text, target)
    return trace


def link(
    trace: Trace,
    *,
    base: str = "http://localhost:8501",
    page: str = "attention",
    stack: str | None = None,
    layer: int | None = None,
    head: int | None = None,
    view: str = "",
) -> str:
    """Return the address under which a running app shows what a Trace shows: its model, text, target and head.

    Args:
        trace: of a model that the app offers by this name.
        base: where the app is.
        page: which page, see docs/links.md.
        stack: as for :func:`explorer`; None, with layer and head: the app chooses the head.
        layer: from 0.
        head: from 0.
        view: as for :func:`explorer`; "": the app chooses it.

    Returns:
        A link.

    Raises:
        TraceError: the Trace has no such place, or it is not of a text.
    """
    meta = trace.meta
    if not meta.get("source"):
        raise TraceError(N_("A link holds the text of a Trace, and this one has none."))
    second = meta.get("target") if meta.get("forced") else meta.get("pair")
    query = {"model": meta.get("model"), "text": meta["source"], "target": second, "view": view}
    if any(place is not None for place in (stack, layer, head)):
        query |= selected(trace, stack=stack, layer=layer, head=head).link()
        query |= {"view": view} if view else {}
    return f"{base.rstrip('/')}/{page}?{urlencode({name: str(text) for name, text in query.items() if text})}"


def _shown(drawn: Trace | WholeModel | History | Sides, lang: str, start: Mapping[str, Any] | None = None) -> Explorer:
    """Return the output of a cell that shows this."""
    options = Options(start=start, gettext=translations(lang).gettext, lang=lang)
    return Explorer(drawable_of(drawn).frame(options), drawn)


def _require_whole(trace: Trace, stack: str) -> None:
    """Refuse a long text, of which a page without a server has the parts of all its tokens only."""
    pattern = next(iter(trace.layers(stack).values()))
    if isinstance(pattern, PatternOnDemand):
        raise TraceError(
            N_(
                "Of {n} tokens none can be hidden here, where no server computes what is left: open vf.link(trace) in "
                "the app."
            ),
            n=pattern.shape[-1],
        )


def _require_language(lang: str) -> None:
    if lang not in languages():
        raise TraceError(N_("lang is {lang!r}; it can be {languages}."), lang=lang, languages=", ".join(languages()))
