"""The explorer of one sentence at every moment of a training as a self-contained HTML page, with a slider."""

from collections.abc import Callable, Mapping
from typing import Any

from visformer.adapters.checkpoints import model_of
from visformer.errors import N_, BudgetError
from visformer.pictures.attention import History, step_of, told
from visformer.pictures.style.theme import visible
from visformer.system import limits
from visformer.trace import Trace
from visformer.web.bundle import stylesheet
from visformer.web.chunks import focus_from
from visformer.web.map import predicted
from visformer.web.message import write_message
from visformer.web.page import document, framed, heading_of, held, require_attention, title_of
from visformer.web.payload import pack, pack_rest
from visformer.web.selection import Selection

_TEXT = {
    "time": N_("Step of the training"),
    "back": N_("The moment before (,)"),
    "on": N_("The next moment (.)"),
    "play": N_("Play through the training (Space)"),
    "pause": N_("Pause (Space)"),
    "predicted": N_("The next token at each place with its probability; below it, what else was likely"),
}


def history_page(
    history: History,
    *,
    gettext: Callable[[str], str] = str,
    lang: str = "en",
    start: Mapping[str, Any] | None = None,
    limit: int = limits.PAGE_BYTES,
) -> str:
    """Render the explorer at every moment of a training as a standalone HTML page.

    Args:
        history: a sentence at each moment.
        gettext: translates the words on the page.
        lang: the language of ``gettext``.
        start: the initial selection, see :meth:`visformer.web.selection.Selection.start`; None: the history's head.
        limit: what the numbers of all moments may take together, in bytes.

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
    moments = [_moment(history, at, gettext) for at in range(len(history.traces))]
    words = {name: gettext(text) for name, text in _TEXT.items()}
    messages: dict[str, bytes | None] = {"history": write_message("history", {"moments": moments, "text": words})}
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
                n=len(moments),
                size=limits.size(nbytes),
                limit=limits.size(limit),
            )
        messages |= {f"moment-{at}": first, f"moment-{at}-rest": rest}
    heading = heading_of(last, model_of(str(last.meta.get("model") or ""))[0])
    body = f'{heading}<div class="vf-history"></div><div class="vf-host"></div>'
    style, source = stylesheet("saved/history.css"), str(last.meta.get("source") or title_of(last))
    return document(source, lang, body, messages, host="saved/history.js", style=style, about=last.about)


def history_frame(history: History, **how: Any) -> str:
    """Render :func:`history_page` as the output of a notebook cell."""
    return framed(history.traces[-1], history_page(history, **how))


def _moment(history: History, at: int, gettext: Callable[[str], str]) -> dict[str, Any]:
    trace = history.traces[at]
    said = [step_of(history.figures, at, gettext), *told(history.figures[at], gettext)]
    return {"title": title_of(trace), "said": " · ".join(said), "steps": _written(trace)}


def _written(trace: Trace) -> list[dict[str, Any]]:
    """Return what each row of a decoder predicts, with the token that does follow; [] without logits."""
    steps, following = predicted(trace), trace.tokens.get("next", ())
    return [{**step, "next": visible(token)} for step, token in zip(steps, following, strict=False)]
