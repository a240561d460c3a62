"""The explorer as a self-contained HTML page, with script, styles and numbers, for saved files and notebooks.

Numbers and tokens are the same bytes as in the app, in base64. The only text of a sentence in the markup is the title,
which is escaped. The page's Content-Security-Policy forbids loading anything.
"""

import base64
import hashlib
from collections.abc import Callable, Iterator, Mapping
from html import escape
from itertools import accumulate
from typing import Any

from visformer.errors import N_, TraceError
from visformer.pictures.sides import Sides
from visformer.pictures.style import BACKGROUND, FONTS, LINE, PRIMARY, SURFACE, TEXT, Theme
from visformer.system import limits
from visformer.trace import Trace
from visformer.trace.stacks import STACKS
from visformer.web.bundle import script, stylesheet
from visformer.web.chunks import CODE_BYTES, FLOAT_BYTES, RESIDENT_BYTES, Focus, focus_from
from visformer.web.map import pack_map
from visformer.web.pair import common, pack_pair, pack_rests
from visformer.web.payload import pack, pack_rest

FRAME_HEIGHT = 720
"""Height of a notebook cell's iframe, in pixels."""


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
        start: the initial selection, see :meth:`visformer.web.selection.Selection.start`.
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
    focus = focus_from(start)
    exact, n_heads = held(trace, focus, limit)
    limit = max(limit, RESIDENT_BYTES)
    messages = {
        "picture": pack(trace, gettext=gettext, lang=lang, focus=focus, start=start),
        "weights": pack_rest(trace, focus=focus, wanted=exact),
    }
    note = ""
    if len(exact) < n_heads:
        sentence = gettext(
            N_("{held} of {all} heads have exact numbers here (up to {limit:.1f} MB); the others are coarse.")
        )
        note = f"<p>{escape(sentence.format(held=len(exact), all=n_heads, limit=limit / 1e6))}</p>\n"
    above = heading_of(trace) if heading else ""
    body = f'{above}{note}<div class="vf-host"></div>'
    return document(title_of(trace), lang, body, messages, about=trace.about)


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
    style, title = stylesheet("explorer/pair.css"), " | ".join(sides.titles)
    body = '<div class="vf-host"></div>'
    return document(title, lang, body, messages, host="saved/pair.js", style=style, about=sides.first.about)


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


def model_frame(trace: Trace, **look: Any) -> str:
    """Render :func:`model_page` as the output of a notebook cell."""
    return framed(trace, model_page(trace, heading=False, **look))


def framed(trace: Trace, inside: str) -> str:
    """Return a page as the output of a notebook cell."""
    return (
        f'<iframe srcdoc="{escape(inside)}" style="width: 100%; height: {FRAME_HEIGHT}px; border: 0" '
        f'title="{escape(title_of(trace))}"></iframe>'
    )


def model_page(trace: Trace, *, lang: str = "en", heading: bool = True, **look: Any) -> str:
    """Render the whole model, which plays, as a standalone HTML page.

    Args:
        trace: see :func:`visformer.web.map.pack_map`.
        lang: the language of the page.
        heading: whether to show the sentence and its target at the top.
        look: further arguments of :func:`visformer.web.map.pack_map`.

    Returns:
        HTML that loads nothing else.

    Raises:
        TraceError: no attention was recorded.
        BudgetError: there are more weights than can be shown at all.
    """
    require_attention(trace)
    above = heading_of(trace) if heading else ""
    messages: Mapping[str, bytes | None] = {"model": pack_map(trace, lang=lang, **look)}
    style, body = stylesheet("map/map.css"), f'{above}<div class="vf-host"></div>'
    return document(title_of(trace), lang, body, messages, host="saved/map.js", style=style, about=trace.about)


def _nearest(trace: Trace, focus: Focus | None) -> Iterator[tuple[str, int]]:
    """Yield each head as "stack/layer/head" with its size in bytes, those of the layers nearest to the focus first."""
    stacks = [stack for stack in STACKS if stack.in_trace(trace)]
    centre = focus or Focus(stacks[0].name, 0, 0)
    for stack in sorted(stacks, key=lambda stack: stack.name != centre.stack):
        layers = stack.layers(trace)
        for layer in sorted(layers, key=lambda layer: abs(layer - centre.layer)):
            for head, pattern in enumerate(layers[layer].value):
                each = FLOAT_BYTES if layers[layer].name.endswith(".map") else CODE_BYTES
                yield f"{stack.name}/{layer}/{head}", each * pattern.size


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
    host: str = "saved/page.js",
    style: str = "",
    about: str = "",
) -> str:
    """Render a self-contained HTML document.

    Args:
        title: any text.
        lang: the language of the page.
        body: HTML.
        messages: the views' messages, by the element id under which the script looks them up.
        host: the script, see :func:`visformer.web.bundle.script`.
        style: CSS in addition to that of the views and of every page.
        about: the model and the text that the numbers come from.
    """
    code, style = script(host), stylesheet() + _style() + style
    policy = f"default-src 'none'; script-src {_hash(code)}; style-src {_hash(style)}; img-src data: blob:"
    data = "\n".join(
        f'<script type="text/plain" id="{name}">{base64.b64encode(message).decode()}</script>'
        for name, message in messages.items()
        if message
    )
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
{data}
<script type="module">{code}</script>
</body>
</html>
"""
    return page.encode("ascii", "xmlcharrefreplace").decode()  # the same in a page of any encoding


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
