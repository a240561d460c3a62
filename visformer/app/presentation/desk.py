"""The presenter's own window, on a second screen or a tablet: notes, this step and the next, the time, and the room.

The presenter's session tells here what it shows, and the window, a page without Streamlit, asks for it every second
with the key of the room. Nothing of it is on the projector.
"""

from dataclasses import asdict, dataclass, field
from typing import Any

from starlette.requests import Request
from starlette.responses import HTMLResponse, JSONResponse, Response
from starlette.routing import Route

from visformer.app.presentation import following
from visformer.app.presentation.rooms import ROOMS
from visformer.app.session import boxes
from visformer.app.session.page import all_pages, current_page
from visformer.app.session.run import Run
from visformer.errors import N_
from visformer.pictures.registry.picture import pages
from visformer.web.bundle import script, stylesheet

KEY = "x-visformer-room"
"""The header with the room's key, which no log has."""

_WORDS = {
    "title": N_("Presenter's window"),
    "next": N_("Next"),
    "over": N_("This is the last step."),
    "note": N_("Your note for this step, kept in this browser"),
    "time": N_("Time since the room was opened; a click starts it again"),
    "followers": N_("{n} follow"),
    "answered": N_("{n} of {all} phones have answered."),
    "away": N_("The presentation is not connected: this is what it showed last."),
    "closed": N_("This room is closed. Open this window from the presentation again."),
}


@dataclass(frozen=True)
class Told:
    """What the presenter's session shows, in the presenter's language.

    Args:
        title: of the page's view, or of the lesson's step.
        place: which step it is, such as "3/12".
        says: what to look for, or what the step says.
        task: what the step lets one try.
        note: the lesson's, unless the browser keeps the presenter's own under ``keeps``.
        keeps: names the step.
        next: the title of the next step; "" at the end.
        next_note: the lesson's note for it.
        asked: the question to the room; "": there is none.
    """

    title: str
    place: str = ""
    says: str = ""
    task: str = ""
    note: str = ""
    keeps: str = ""
    next: str = ""
    next_note: str = ""
    asked: str = ""
    lang: str = "en"
    words: dict[str, str] = field(default_factory=dict)


def tell(run: Run, *, asked: str = "", follows: str = "") -> None:
    """Tell the window what a run shows, or which question it asks the room, and what follows that."""
    if not following.presented():
        return
    _, steps, page = boxes.gettext(), run.steps, current_page()
    names = [*pages()]
    at = names.index(page) + 1
    after = steps.following or (all_pages()[names[at]].title if at < len(names) and not steps.is_guided else "")
    title = steps.title or " · ".join(filter(None, (all_pages()[page].title, steps.option)))
    about: dict[str, Any] = {"place": steps.place, "says": run.caption, "task": steps.task, "note": steps.note}
    told = Told(title, **about, keeps=f"{page} {steps.place}", next=after, next_note=steps.next_note)
    if asked:
        told = Told(_(N_("Guess first")), asked=asked, next=follows)
    words = {name: _(word) for name, word in _WORDS.items()}
    following.tell({**asdict(told), "lang": boxes.language(), "words": words})


async def _page(_request: Request) -> Response:
    style = stylesheet("presentation/desk.css")
    return HTMLResponse(
        "<!doctype html><html><head><meta charset='utf-8'><meta name='viewport' content='width=device-width'>"
        f"<title>Visformer</title><style>{style}</style></head><body><main></main>"
        "<script type='module' src='presenter/desk.js'></script></body></html>"
    )


async def _script(_request: Request) -> Response:
    return Response(script("openDesk()", openDesk="presentation/desk.js"), media_type="text/javascript")


async def _now(request: Request) -> Response:
    """Return what the window shows now; 404 without the key of a room that is open."""
    found = ROOMS.desk(request.headers.get(KEY, ""))
    if found is None:
        return Response(status_code=404)
    guess = found.guess
    shown: dict[str, Any] = {**found.told, "seconds": found.seconds, "followers": found.followers}
    shown |= {"away": not found.is_presented, "options": guess.tally() if guess is not None else []}
    shown["answered"] = guess.count() if guess is not None else 0
    return JSONResponse(shown, headers={"cache-control": "no-store"})


ROUTES = [Route("/presenter", _page), Route("/presenter/desk.js", _script), Route("/presenter/now", _now)]
"""The window, its script, and what it shows."""
