"""What is chosen in the explorer, which is also what "Inside a head" looks at."""

from dataclasses import replace
from typing import TYPE_CHECKING, Any

from visformer.app.session.remarks import ignore
from visformer.app.session.slots import Slot, forget, widget_key
from visformer.web.selection import Selection

if TYPE_CHECKING:  # numpy
    from visformer.trace import Trace

_STACK, _LAYER, _HEAD, _QUERY = NAMES = ("head_stack", "head_layer", "head_head", "head_query")  # of its widgets
START = Slot("start", Selection())
"""What the explorer begins with on the page that is open."""

_SELECTION: Slot[Selection | None] = Slot("selection", None, resets=True)
_IS_CHECKED = Slot("compared", False, resets=True)  # whether what a link chooses was held against a Trace


def begin_anew(wanted: Selection) -> None:
    """Have the explorer begin with this; the widget of the query, which alone does not follow, with its default."""
    START.set(wanted)
    forget(_QUERY)


def chosen() -> Selection:
    """What is chosen, for a link."""
    return _SELECTION.get() or START.get()


def start(trace: "Trace | None") -> Selection:
    """What the explorer begins with; it stays while its page is open, so that the picture need not be sent again.

    What a link asks for and the Trace does not have is told, and is as at first.
    """
    first = START.get()
    if trace is not None and not _IS_CHECKED.get():
        _IS_CHECKED.set(True)
        fitting, wrong = first.fitting(trace)
        ignore(first.link(), wrong)
        START.set(first := fitting)
    return first


def selection(trace: "Trace") -> Selection:
    """What is chosen in the explorer: at first what the address asked for, as far as the Trace has it."""
    return _SELECTION.get() or _choose(start(trace), trace)


def take(value: Any, trace: "Trace") -> bool:
    """Choose what a browser sent; False: it makes no sense."""
    sent = Selection.from_browser(value)
    if sent is not None:
        _choose(sent, trace)
    return sent is not None


def _choose(value: Selection, trace: "Trace") -> Selection:
    fitting = value.within(trace)
    _SELECTION.set(fitting)
    part, kind = fitting.stack.split(".")
    layers = trace.layers(part, kind)  # type: ignore[arg-type]
    n_heads, n_queries, _keys = layers[0].value.shape
    _widget(_STACK).set(fitting.stack)
    _widget(_LAYER, len(layers)).set(fitting.layer + 1)
    _widget(_HEAD, n_heads).set(fitting.head + 1)
    if fitting.query is not None and fitting.query < n_queries:
        _widget(_QUERY, n_queries).set(fitting.query)
    return fitting


def _widget(name: str, suffix: object = "") -> Slot[Any]:
    return Slot(widget_key(name, suffix), None)


def keep_place(**place: Any) -> None:
    """What "Inside a head" looks at is what the explorer begins with, and its address names it."""
    if any(getattr(chosen(), name) != value for name, value in place.items()):
        _SELECTION.set(replace(chosen(), key=None, **place))
