"""A lesson as one HTML page: a table of contents, and one step at a time with its text and live pictures."""

import base64
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from html import escape
from typing import Literal

from visformer.errors import N_
from visformer.web.bundle import script, stylesheet
from visformer.web.page import document

Gettext = Callable[[str], str]


@dataclass(frozen=True)
class SlidePicture:
    """A picture of a step.

    Args:
        kind: a live view ("attention", "panels", "map"), an image, or a table.
        message: the view's message.
        rest: the explorer's second message.
        images: an SVG in light and one in dark colours.
        table: rows of text; the first is the header.
        title: shown above the picture.
    """

    kind: Literal["attention", "panels", "map", "image", "table"]
    message: bytes = b""
    rest: bytes = b""
    images: tuple[str, str] = ("", "")
    table: Sequence[Sequence[str]] = ()
    title: str = ""


@dataclass(frozen=True)
class Slide:
    """A step of the lesson; its texts are shown literally.

    Args:
        title: one line.
        say: what there is to see.
        tried: what to try; may be empty.
        parts: its pictures; without any, a note says that the step is only available in the app.
        hints: each opens with a click.
        answer: opens with a click; may be empty.
        code: lines of code below the answer; may be empty.
    """

    title: str
    say: str
    tried: str
    parts: tuple[SlidePicture, ...]
    hints: tuple[str, ...] = ()
    answer: str = ""
    code: str = ""


def slides(title: str, shown: Sequence[Slide], *, gettext: Gettext = str, lang: str = "en") -> str:
    """Render a lesson as one self-contained HTML page."""
    messages: dict[str, bytes] = {}
    contents = "\n".join(f'<li><a href="#{i}">{escape(slide.title)}</a></li>' for i, slide in enumerate(shown, 1))
    sections = "\n".join(_section(slide, i, len(shown), messages, gettext) for i, slide in enumerate(shown, 1))
    label = escape(gettext(N_("Contents")))
    body = f"""<nav aria-label="{label}"><h1>{escape(title)}</h1>
<ol>{contents}</ol></nav>
<main>{sections}</main>"""
    code, style = script("showLesson()", showLesson="saved/lesson.js"), _STYLE + stylesheet("map/map.css")
    return document(title, lang, body, messages, code=code, style=style)


def _section(slide: Slide, number: int, count: int, messages: dict[str, bytes], gettext: Gettext) -> str:
    tried = ""
    if slide.tried:  # the file has the whole explorer and the whole model, but no other controls of the app's pages
        where = N_("Try") if any(part.kind in ("attention", "map") for part in slide.parts) else N_("Try in the app")
        tried = f'<p class="try"><b>{escape(gettext(where))}</b> {escape(slide.tried)}</p>'
    parts = "\n".join(_part(part, f"step{number}-{i}", messages) for i, part in enumerate(slide.parts))
    if not slide.parts:
        live = gettext(N_("What this step shows can only be seen in the app: open the lesson there."))
        parts = f'<p class="live">{escape(live)}</p>'
    ways = [(number - 1, N_("Back"), number > 1), (number + 1, N_("Next"), number < count)]
    links = "".join(f'<a href="#{to}">{escape(gettext(word))}</a>' for to, word, there in ways if there)
    return f"""<section id="{number}" hidden>
<header><h2><span>{number} / {count}</span> {escape(slide.title)}</h2><div class="ways">{links}</div></header>
<p>{escape(slide.say)}</p>
{tried}
{_folded(slide, gettext)}
<div class="parts">{parts}</div>
</section>"""


def _folded(slide: Slide, gettext: Gettext) -> str:
    """The hints and the answer, closed."""
    details = [(gettext(N_("Hint {n}")).format(n=n), f"<p>{escape(hint)}</p>") for n, hint in enumerate(slide.hints, 1)]
    if slide.answer:
        code = f"<pre>{escape(slide.code)}</pre>" if slide.code else ""
        details.append((gettext(N_("Answer")), f"<p>{escape(slide.answer)}</p>{code}"))
    return "".join(f"<details><summary>{escape(name)}</summary>{text}</details>" for name, text in details)


def _part(part: SlidePicture, name: str, messages: dict[str, bytes]) -> str:
    title = f"<h3>{escape(part.title)}</h3>" if part.title else ""
    if part.kind == "table":
        heads, *rows = ([escape(cell) for cell in row] for row in part.table)
        top = "".join(f"<th>{head}</th>" for head in heads)
        lines = "".join(f"<tr>{''.join(f'<td>{cell}</td>' for cell in row)}</tr>" for row in rows)
        return f"<div>{title}<table><tr>{top}</tr>{lines}</table></div>"
    if part.kind == "image":
        light, dark = (f"data:image/svg+xml;base64,{base64.b64encode(svg.encode()).decode()}" for svg in part.images)
        source = f'<source media="(prefers-color-scheme: dark)" srcset="{dark}">'
        return f'<div>{title}<picture>{source}<img src="{light}" alt="{escape(part.title)}"></picture></div>'
    messages |= {name: part.message, f"{name}-rest": part.rest}
    return f'<div class="vf-host" data-message="{name}"></div>'


_STYLE = """
body:lang(en) { font-family: system-ui, sans-serif; } /* Chinese faces have wide quotation marks */
body { display: grid; grid-template-columns: 220px minmax(0, 1fr); gap: 0 36px; }
nav { position: sticky; top: 16px; align-self: start; font-size: 14px; }
nav h1 { -webkit-line-clamp: 4; font-size: 17px; }
nav ol { list-style: none; counter-reset: step; margin: 0; padding: 0; }
nav li { counter-increment: step; }
nav a { display: flex; gap: 8px; padding: 4px 8px; border-radius: 6px; color: inherit; text-decoration: none; }
nav a::before { content: counter(step); min-width: 1.3em; text-align: right; opacity: 0.6; }
nav a:hover, nav a[aria-current] { background: var(--st-secondary-background-color); }
nav a[aria-current] { font-weight: 600; }
header { display: flex; justify-content: space-between; align-items: center; gap: 16px; margin-bottom: 8px; }
h2 { font-size: 18px; font-weight: 600; margin: 0; overflow-wrap: anywhere; }
h2 span { color: var(--st-primary-color); font-weight: 400; margin-right: 6px; }
h3 { font-size: 14px; font-weight: 600; margin: 0 0 8px; }
main p { font-size: 16px; line-height: 1.5; max-width: 68em; margin: 0 0 6px; overflow-wrap: anywhere; }
.try b { color: var(--st-primary-color); margin-right: 6px; }
details { margin-bottom: 6px; }
summary { color: var(--st-primary-color); cursor: pointer; }
pre { overflow-x: auto; margin: 0 0 6px; }
.ways { display: flex; gap: 8px; flex: none; }
.ways a { padding: 5px 14px; border: 1px solid var(--st-border-color); border-radius: 6px; color: inherit;
  text-decoration: none; white-space: nowrap; }
.ways a:last-child { border-color: var(--st-primary-color); color: var(--st-primary-color); }
.parts { display: flex; flex-wrap: wrap; gap: 24px 40px; margin-top: 18px; }
.parts > * { min-width: 0; max-width: 100%; }
.parts > .vf-host { flex: 1 1 100%; }
.parts img { max-width: 100%; height: auto; }
table { border-collapse: collapse; font-size: 13px; white-space: nowrap; }
th { text-align: left; font-weight: 400; opacity: 0.7; }
th, td { padding: 5px 9px; border-bottom: 1px solid var(--st-border-color); }
.live { opacity: 0.7; }
@media (max-width: 760px) {
  body { display: flex; flex-direction: column; gap: 28px; margin: 12px; }
  main { order: -1; }
  nav { position: static; }
  td { white-space: normal; }
  .parts > div:has(img) { overflow-x: auto; }
  .parts img { max-width: none; width: 680px; } /* keeps its text legible */
}
"""
