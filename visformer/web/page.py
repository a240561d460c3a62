"""Pictures as self-contained HTML pages, with script, styles and numbers, for saved files and notebooks.

They show the explorer, two linked ones, one at every checkpoint of a training, or the whole model. Numbers and tokens
are the same bytes as in the app, in base64. The only text of a sentence in the markup is the title, which is escaped.
The page's Content-Security-Policy forbids loading anything.
"""

import base64
import hashlib
from collections.abc import Callable, Iterator, Mapping
from html import escape
from itertools import accumulate
from typing import Any

from visformer.adapters.checkpoints import model_of
from visformer.errors import N_, BudgetError, TraceError
from visformer.pictures.attention import History, step_of, told
from visformer.pictures.sides import Sides
from visformer.pictures.style import BACKGROUND, FONTS, LINE, PRIMARY, SURFACE, TEXT, Theme, visible
from visformer.system import limits
from visformer.trace import Trace
from visformer.trace.overview import PatternOnDemand
from visformer.trace.stacks import STACKS
from visformer.web.bundle import script, stylesheet
from visformer.web.chunks import CODE_BYTES, FLOAT_BYTES, RESIDENT_BYTES, Focus, focus_from
from visformer.web.map import pack_map, predicted
from visformer.web.message import write_message
from visformer.web.pair import common, pack_pair, pack_rests
from visformer.web.payload import pack, pack_rest
from visformer.web.selection import BEGINNING, Selection
from visformer.web.tiles import levels_of

FRAME_HEIGHT = 720
"""Height of a notebook cell's iframe, in pixels."""

_HISTORY_TEXT = {
    "time": N_("Step of the training"),
    "back": N_("The moment before (,)"),
    "on": N_("The next moment (.)"),
    "play": N_("Play through the training (Space)"),
    "pause": N_("Pause (Space)"),
    "predicted": N_("The next token at each place with its probability; below it, what else was likely"),
}


def page(
    trace: Trace,
    *,
    gettext: Callable[[str], str] = str,
    lang: str = "en",
    start: Mapping[str, Any] | None = None,
    limit: int = limits.PAGE_BYTES,
    heading: bool = True,
) -> str:
    """Render the explorer as a standalone HTML page.

    Args:
        trace: holds attention patterns.
        gettext: translates the words on the page.
        lang: the language of ``gettext``.
        start: the initial selection, see :meth:`visformer.web.selection.Selection.start`; None: as on a page.
        limit: budget for exact numbers in bytes (2 per weight, 4 per number of a map), at least RESIDENT_BYTES. Beyond
            it only the heads nearest to the selected one are exact, as the page says; the thumbnails show all heads.
        heading: whether to show the sentence and its target at the top.

    Returns:
        HTML that loads nothing else.

    Raises:
        TraceError: no attention was recorded.
        BudgetError: there are more weights than can be shown at all.
    """
    require_attention(trace)
    start = start if start is not None else BEGINNING.within(trace).start()
    focus = focus_from(start)
    exact, n_heads = held(trace, focus, limit)
    limit = max(limit, RESIDENT_BYTES)
    messages = {
        "picture": pack(trace, gettext=gettext, lang=lang, focus=focus, start=start),
        "weights": pack_rest(trace, focus=focus, wanted=[*exact, *_coarse(trace, focus)]),
    }
    note = ""
    if len(exact) < n_heads:
        sentence = gettext(
            N_("{held} of {all} heads have exact numbers here (up to {limit:.1f} MB); the others are coarse.")
        )
        note = f"<p>{escape(sentence.format(held=len(exact), all=n_heads, limit=limit / 1e6))}</p>\n"
    above = heading_of(trace) if heading else ""
    body = f'{above}{note}<div class="vf-host"></div>'
    own = dict.fromkeys(("showPage", "focusPicture"), "saved/page.js")
    code = script("showPage(mountAttention)\nfocusPicture()", **own, mountAttention="explorer/explorer.js")
    return document(title_of(trace), lang, body, messages, code=code, about=trace.about)


def pair_page(
    sides: Sides,
    *,
    gettext: Callable[[str], str] = str,
    lang: str = "en",
    start: Mapping[str, Any] | None = None,
    limit: int = limits.PAGE_BYTES,
) -> str:
    """Render two linked explorers and their difference as a standalone HTML page.

    Args:
        sides: A and B.
        gettext: translates the words on the page.
        lang: the language of ``gettext``.
        start: the initial selection of A, see :meth:`visformer.web.selection.Selection.start`.
        limit: as for :func:`page`, of each of the two.

    Returns:
        HTML that loads nothing else.

    Raises:
        BudgetError: there are more weights than can be shown at all.
        TraceError: they have no attention in common or, if their heads are matched, no token.
    """
    common(sides)
    focus = focus_from(start)
    wanted = [held(trace, focus, limit)[0] for trace in (sides.first, sides.second)]
    first, second = pack_rests(sides, focus=focus, wanted=wanted)
    messages = {
        "picture": pack_pair(sides, gettext=gettext, lang=lang, start=start, focus=focus),
        "weights_a": first,
        "weights_b": second,
    }
    code, style = _code("mountPair", "explorer/pair.js"), stylesheet("explorer/pair.css")
    title, body = " | ".join(sides.titles), '<div class="vf-host"></div>'
    return document(title, lang, body, messages, code=code, style=style, about=sides.first.about)


def history_page(
    history: History,
    *,
    gettext: Callable[[str], str] = str,
    lang: str = "en",
    start: Mapping[str, Any] | None = None,
    limit: int = limits.PAGE_BYTES,
) -> str:
    """Render the explorer at every checkpoint of a training as a standalone HTML page.

    Args:
        history: a sentence at each checkpoint.
        gettext: translates the words on the page.
        lang: the language of ``gettext``.
        start: the initial selection, see :meth:`visformer.web.selection.Selection.start`; None: the history's head.
        limit: what the numbers of all checkpoints may take together, in bytes.

    Returns:
        HTML that loads nothing else.

    Raises:
        TraceError: no attention was recorded.
        BudgetError: the numbers take more.
    """
    last = history.traces[-1]
    require_attention(last)
    stack, layer, head = history.head
    start = start if start is not None else Selection(stack=stack, layer=layer, head=head).start()
    checkpoints = [_checkpoint(history, at, gettext) for at in range(len(history.traces))]
    words = {name: gettext(text) for name, text in _HISTORY_TEXT.items()}
    messages: dict[str, bytes | None] = {"history": write_message("history", {"moments": checkpoints, "text": words})}
    nbytes, focus = 0, focus_from(start)
    for at, trace in enumerate(history.traces):
        first = pack(trace, gettext=gettext, lang=lang, start=start, focus=focus)
        rest = pack_rest(trace, focus=focus, wanted=held(trace, focus, limit)[0])
        nbytes += len(first) + len(rest or b"")
        if nbytes > limit:
            raise BudgetError(
                N_(
                    "The attention at moments 0 to {moment} of {n} takes {size}, and a page holds at most {limit}: "
                    "shorten the sentence."
                ),
                moment=at,
                n=len(checkpoints),
                size=limits.size(nbytes),
                limit=limits.size(limit),
            )
        messages |= {f"moment-{at}": first, f"moment-{at}-rest": rest}
    heading = heading_of(last, model_of(str(last.meta.get("model") or ""))[0])
    body = f'{heading}<div class="vf-history"></div><div class="vf-host"></div>'
    code, style = script("showHistory()", showHistory="saved/history.js"), stylesheet("saved/history.css")
    source = str(last.meta.get("source") or title_of(last))
    return document(source, lang, body, messages, code=code, style=style, about=last.about)


def model_page(trace: Trace, *, lang: str = "en", heading: bool = True, **options: Any) -> str:
    """Render the whole model, which plays, as a standalone HTML page.

    Args:
        trace: see :func:`visformer.web.map.pack_map`.
        lang: the language of the page.
        heading: whether to show the sentence and its target at the top.
        options: further arguments of :func:`visformer.web.map.pack_map`.

    Returns:
        HTML that loads nothing else.

    Raises:
        TraceError: no attention was recorded.
        BudgetError: there are more weights than can be shown at all.
    """
    require_attention(trace)
    above = heading_of(trace) if heading else ""
    messages: Mapping[str, bytes | None] = {"model": pack_map(trace, lang=lang, **options)}
    code, style = _code("mountMap", "map/map.js"), stylesheet("map/map.css")
    body = f'{above}<div class="vf-host"></div>'
    return document(title_of(trace), lang, body, messages, code=code, style=style, about=trace.about)


def held(trace: Trace, focus: Focus | None, limit: int) -> tuple[list[str], int]:
    """Return the heads of which a page holds exact weights, those nearest to the focus, and how many there are."""
    heads = dict(_nearest(trace, focus))
    held = max(1, sum(size <= max(limit, RESIDENT_BYTES) for size in accumulate(heads.values())))
    return [*heads][:held], len(heads)


def require_attention(trace: Trace) -> None:
    """Refuse a Trace without attention.

    Raises:
        TraceError: it has none.
    """
    if not any(stack.in_trace(trace) for stack in STACKS):
        raise TraceError(N_("This trace holds no attention patterns; record them with record=('*.pattern',)."))


def frame(trace: Trace, **how: Any) -> str:
    """Render the output of a notebook cell: the page in an iframe; ``how``: further arguments of :func:`page`.

    Raises:
        VisformerError: as :func:`page`.
    """
    return framed(trace, page(trace, limit=RESIDENT_BYTES, heading=False, **how))


def model_frame(trace: Trace, **options: Any) -> str:
    """Render :func:`model_page` as the output of a notebook cell."""
    return framed(trace, model_page(trace, heading=False, **options))


def history_frame(history: History, **how: Any) -> str:
    """Render :func:`history_page` as the output of a notebook cell."""
    return framed(history.traces[-1], history_page(history, **how))


def pair_frame(sides: Sides, **how: Any) -> str:
    """Render :func:`pair_page` as the output of a notebook cell."""
    return framed(sides.first, pair_page(sides, limit=RESIDENT_BYTES, **how))


def framed(trace: Trace, inside: str) -> str:
    """Return a page as the output of a notebook cell."""
    return (
        f'<iframe srcdoc="{escape(inside)}" style="width: 100%; height: {FRAME_HEIGHT}px; border: 0" '
        f'title="{escape(title_of(trace))}"></iframe>'
    )


def _nearest(trace: Trace, focus: Focus | None) -> Iterator[tuple[str, int]]:
    """Yield each head as "stack/layer/head" with its size in bytes, those of the layers nearest to the focus first."""
    stacks = [stack for stack in STACKS if stack.in_trace(trace)]
    centre = focus or Focus(stacks[0].name, 0, 0)
    for stack in sorted(stacks, key=lambda stack: stack.name != centre.stack):
        layers = stack.layers(trace)
        if isinstance(next(iter(layers.values())), PatternOnDemand):
            continue
        for layer in sorted(layers, key=lambda layer: abs(layer - centre.layer)):
            for head, pattern in enumerate(layers[layer].value):
                each = FLOAT_BYTES if layers[layer].name.endswith(".map") else CODE_BYTES
                yield f"{stack.name}/{layer}/{head}", each * pattern.size


def _coarse(trace: Trace, focus: Focus | None) -> list[str]:
    """Return what a page holds of the head in focus of a long text, if it can be computed: no server answers a page."""
    stack = next((stack for stack in STACKS if stack.in_trace(trace) and focus and stack.name == focus.stack), None)
    pattern = stack.layers(trace).get(focus.layer) if stack and focus else None
    if not isinstance(pattern, PatternOnDemand) or pattern.rule is None or focus is None:
        return []
    last = levels_of(*pattern.shape[1:]) - 1
    return [f"{focus.stack}/{focus.layer}/{focus.head}/{part}" for part in (f"tile/{last}/0/0", "edges", "sentences")]


def _checkpoint(history: History, at: int, gettext: Callable[[str], str]) -> dict[str, Any]:
    trace = history.traces[at]
    described = [step_of(history.figures, at, gettext), *told(history.figures[at], gettext)]
    return {"title": title_of(trace), "said": " · ".join(described), "steps": _written(trace)}


def _written(trace: Trace) -> list[dict[str, Any]]:
    """Return what each row of a decoder predicts, with the token that does follow; [] without logits."""
    steps, following = predicted(trace), trace.tokens.get("next", ())
    return [{**step, "next": visible(token)} for step, token in zip(steps, following, strict=False)]


def title_of(trace: Trace) -> str:
    """Return the sentence and its target, or the tokens."""
    sentences = [str(trace.meta.get(name) or "") for name in ("source", "target")]
    tokens = trace.tokens.get("src") or trace.tokens.get("tgt") or ()
    return " → ".join(filter(None, sentences)) or " ".join(tokens)


def heading_of(trace: Trace, model: str = "") -> str:
    """Return the title and the name of the model, by default that of the Trace, as HTML."""
    model = model or str(trace.meta.get("model") or "")
    return f'<h1 dir="auto">{escape(title_of(trace))}{f" <small>{escape(model)}</small>" if model else ""}</h1>\n'


def document(
    title: str,
    lang: str,
    body: str,
    messages: Mapping[str, bytes | None],
    *,
    code: str,
    style: str = "",
    about: str = "",
    policy: str = "",
    late: Mapping[str, bytes] | None = None,
) -> str:
    """Render a self-contained HTML document.

    Args:
        title: any text.
        lang: the language of the page.
        body: HTML.
        messages: the views' messages, by the element id under which the script looks them up.
        code: a module, see :func:`visformer.web.bundle.script`.
        style: CSS in addition to that of the views and of every page.
        about: the model and the text that the numbers come from.
        policy: what the page may do besides, as directives of a Content-Security-Policy.
        late: large messages behind the script, which runs before they have been read.
    """
    style = stylesheet() + _style() + style
    own = f"default-src 'none'; script-src {_hash(code)}; style-src {_hash(style)}; img-src data: blob:"
    policy = "; ".join(filter(None, (own, policy)))
    page = f"""<!doctype html>
<html lang="{escape(lang)}">
<head>
<meta charset="utf-8">
<meta http-equiv="Content-Security-Policy" content="{policy}">
<meta name="viewport" content="width=device-width, initial-scale=1">
<link rel="icon" href="data:,">
<title>{escape(title)}</title>{f'{chr(10)}<meta name="description" content="{escape(about)}">' if about else ""}
<style>{style}</style>
</head>
<body>
{body}
{_embedded(messages)}
<script type="module"{" async" if late else ""}>{code}</script>
{_embedded(late or {})}
</body>
</html>
"""
    return page.encode("ascii", "xmlcharrefreplace").decode()  # the same in a page of any encoding


def _embedded(messages: Mapping[str, bytes | None]) -> str:
    return "\n".join(
        f'<script type="text/plain" id="{name}">{base64.b64encode(message).decode()}</script>'
        for name, message in messages.items()
        if message
    )


def _code(mount: str, file: str) -> str:
    """Return the module that draws a page's picture by the function of a file that mounts it."""
    return script(f"showPage({mount})", showPage="saved/page.js", **{mount: file})


def _hash(text: str) -> str:
    return f"'sha256-{base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()}'"


def _style() -> str:
    """Return the app's colours as CSS, light or dark as the viewer prefers or the notebook's theme requires."""
    light, dark = _colours("light"), _colours("dark")
    return f"""
:root {{ {light} }}
@media (prefers-color-scheme: dark) {{ :root:not([data-theme="light"]) {{ {dark} }} }}
:root[data-theme="dark"] {{ {dark} }}
body {{ margin: 16px 24px; background: var(--st-background-color); color: var(--st-text-color); font-family: {FONTS}; }}
h1 {{ font-size: 19px; font-weight: 600; margin: 0 0 14px; overflow-wrap: anywhere;
  display: -webkit-box; -webkit-box-orient: vertical; -webkit-line-clamp: 2; overflow: hidden; }}
h1 small {{ font-size: 13px; font-weight: 400; opacity: 0.7; margin-inline-start: 8px; }}
p {{ font-size: 13px; margin: 0 0 12px; }}
"""


def _colours(theme: Theme) -> str:
    names = {
        "color-scheme": theme,
        "--st-text-color": TEXT[theme],
        "--st-background-color": BACKGROUND[theme],
        "--st-secondary-background-color": SURFACE[theme],
        "--st-primary-color": PRIMARY[theme],
        "--st-border-color": LINE[theme],
        "--st-font": FONTS,
    }
    return " ".join(f"{name}: {value};" for name, value in names.items())
