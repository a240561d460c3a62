"""A browser session without a browser: Streamlit's own messages over its websocket."""

import asyncio
import json
import time
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import parse_qs, urlsplit

from streamlit.proto.BackMsg_pb2 import BackMsg
from streamlit.proto.ForwardMsg_pb2 import ForwardMsg
from streamlit.proto.WidgetStates_pb2 import WidgetState
from websockets.asyncio.client import ClientConnection, connect

from benchmarks.load.expected import Picture
from benchmarks.messages import read_message

TIMEOUT = 60
"""Seconds until an answer counts as failed."""

TRANSLATION = "Translation: "
BUSY = "Too many sentences"
_TAKEN = "Your guess is in."


class Wrong(Exception):
    """The server's answer is wrong."""


@dataclass
class Answer:
    """The result of one run of the script.

    Args:
        picture: the last picture sent to the attention page.
        seconds: time from the request to the picture, or to the end of the run if there is none.
        texts: plain texts on the page.
        waited: whether a notice of the queue was shown.
        problem: what went wrong, if anything.
    """

    picture: Picture | None = None
    seconds: float = 0.0
    texts: list[str] = field(default_factory=list)
    waited: bool = False
    problem: str = ""

    @property
    def translation(self) -> str | None:
        """The model's translation, if the page shows one."""
        return next((t.removeprefix(TRANSLATION) for t in self.texts if t.startswith(TRANSLATION)), None)

    @property
    def rejected(self) -> bool:
        """Whether the server was too busy."""
        return any(text.startswith(BUSY) for text in self.texts)


class Visitor:
    """Types and switches pages; keeps what a browser keeps: cached messages, widget ids, the address."""

    def __init__(self, address: str, *, headers: Mapping[str, str] | None = None, of: str = "") -> None:
        """``address``: http://host:port; ``of``: the visitor's own, one of this machine."""
        self._from = of
        self._stream = address.replace("http", "ws", 1) + "/_stcore/stream"
        self._headers = dict(headers or {})
        self._socket: ClientConnection | None = None
        self._pages: dict[str, str] = {}
        self._page = ""
        self._widgets: dict[str, str] = {}  # key to id, from the last run
        self._states: dict[str, WidgetState] = {}  # id to the value of a widget
        self._cache: dict[str, tuple[ForwardMsg, int]] = {}
        self._runs = 0
        self.query = ""

    async def open(self, query: str = "", page: str = "attention") -> Answer:
        """Connect and open a page by its path."""
        await self.connect()
        self.query = query
        answer = await self._run(path=page)
        self._page = self._pages.get(page, "")
        return answer

    async def connect(self) -> None:
        """Connect, and say nothing."""
        self._socket = await connect(
            self._stream,
            subprotocols=["streamlit"],
            max_size=None,
            additional_headers=self._headers,
            open_timeout=TIMEOUT,
            local_addr=(self._from, 0) if self._from else None,
        )

    async def close(self) -> None:
        """Disconnect."""
        if self._socket is not None:
            await self._socket.close()

    async def enter(self, sentence: str) -> Answer:
        """Type a sentence and press Enter."""
        return await self._run(WidgetState(id=self._widget("source"), string_value=sentence))

    async def visit(self, page: str) -> Answer:
        """Open another page by its path; "" is the first."""
        self._page = self._pages[page]
        return await self._run()

    async def choose(self, widget: str, option: str) -> Answer:
        """Select an option of a segmented control."""
        state = WidgetState(id=self._widget(widget))
        state.string_array_value.data.append(option)
        return await self._run(state)

    async def press(self, button: str) -> Answer:
        """Press a button."""
        return await self.trigger(WidgetState(id=self._widget(button), trigger_value=True))

    async def trigger(self, widget: WidgetState) -> Answer:
        """Send a value that counts once."""
        answer = await self._run(widget)
        self._states.pop(widget.id, None)
        return answer

    def _widget(self, key: str) -> str:
        return self._widgets[key]

    async def _run(self, *changed: WidgetState, path: str = "", fragment: str = "") -> Answer:
        message = BackMsg()
        state = message.rerun_script
        state.fragment_id = fragment
        state.query_string, state.page_script_hash, state.page_name = self.query, self._page, path
        self._states.update({widget.id: widget for widget in changed})
        state.widget_states.widgets.extend(self._states.values())
        state.cached_message_hashes.extend(self._cache)
        state.context_info.locale, state.context_info.timezone = "en-US", "UTC"
        assert self._socket is not None
        begin = time.perf_counter()
        await self._socket.send(message.SerializeToString())
        if not fragment:  # all of the page is drawn anew
            self._widgets = {}
        try:
            return await asyncio.wait_for(self._answer(begin), TIMEOUT)
        except TimeoutError:
            raise Wrong(f"no answer in {TIMEOUT} s") from None

    async def _answer(self, begin: float) -> Answer:
        assert self._socket is not None
        answer, latest = Answer(), b""
        self._runs += 1
        async for data in self._socket:
            assert isinstance(data, bytes)
            message = self._resolved(ForwardMsg.FromString(data))
            kind = message.WhichOneof("type")
            if kind == "script_finished":
                if message.script_finished == ForwardMsg.FINISHED_EARLY_FOR_RERUN:
                    continue
                answer.seconds = answer.seconds or time.perf_counter() - begin
                if answer.problem:
                    raise Wrong(answer.problem)
                answer.picture = Picture.of(latest) if latest else None
                self._forget()
                return answer
            if kind == "page_not_found":
                answer.problem = "the page is not found"
            if kind == "navigation":
                self._pages = {
                    p.url_pathname if not p.is_default else "": p.page_script_hash for p in message.navigation.app_pages
                }
                self._page = message.navigation.page_script_hash
            elif kind == "page_info_changed":
                self.query = message.page_info_changed.query_string
            elif kind == "delta" and message.delta.WhichOneof("type") == "new_element":
                latest = self._seen(message.delta.new_element, answer, begin) or latest
        raise Wrong("the server closed the connection")

    def _resolved(self, message: ForwardMsg) -> ForwardMsg:
        """Replace a reference by the cached message that it names."""
        if message.WhichOneof("type") == "ref_hash":
            message = self._cache[message.ref_hash][0]
        if message.metadata.cacheable:
            self._cache[message.hash] = (message, self._runs)
        return message

    def _forget(self) -> None:
        """Forget as a browser does: messages two runs after their last use, widgets that left the page."""
        self._states = {id_: state for id_, state in self._states.items() if id_ in self._widgets.values()}
        self._cache = {name: kept for name, kept in self._cache.items() if self._runs - kept[1] < 2}

    def _seen(self, element: Any, answer: Answer, begin: float) -> bytes:
        """Record the content of an element; returns the bytes of its picture, if any."""
        kind = element.WhichOneof("type")
        shown = getattr(element, kind) if kind else None
        if kind == "exception":
            answer.problem = f"an exception reached the visitor: {shown.type}"
        if kind == "text":
            answer.texts.append(shown.body)
        elif kind == "markdown" and shown.body.startswith("In the queue"):
            answer.waited = True
        elif kind == "bidi_component" and shown.component_name == "visformer_feed":
            seconds = time.perf_counter() - begin
            header, _ = read_message(shown.bytes)
            if (header["to"], header["kind"]) == ("attention", "attention"):
                answer.seconds = seconds
                return bytes(shown.bytes)
        if shown is not None and hasattr(shown, "id"):
            self._widgets[shown.id.rsplit("-", 1)[-1]] = shown.id
            if kind == "text_input" and (shown.set_value or shown.id not in self._states):
                text = shown.value if shown.set_value else shown.default
                self._states[shown.id] = WidgetState(id=shown.id, string_value=text)
        return b""


def event(component: str, name: str, value: object) -> WidgetState:
    """Return what a browser sends for a trigger of a component; ``component``: its id."""
    sent = json.dumps([{"event": name, "value": value}])
    return WidgetState(id=f"$$STREAMLIT_INTERNAL_KEY_{component}__events", json_trigger_value=sent)


class Presenter(Visitor):
    """Lets a room follow, asks it, and reveals the answer."""

    code = ""

    async def invite(self) -> None:
        """Let the room follow; afterwards ``code`` is its code."""
        await self.trigger(event(self._widget("present"), "ask", "follow"))

    def _seen(self, element: Any, answer: Answer, begin: float) -> bytes:
        if element.WhichOneof("type") == "bidi_component" and element.bidi_component.component_name == "visformer_feed":
            header, _ = read_message(element.bidi_component.bytes)
            if header["kind"] == "presentation" and "code" in header:
                self.code = parse_qs(urlsplit(header["code"]["address"]).query)["follow"][0]
        return super()._seen(element, answer, begin)


class Phone(Visitor):
    """Follows a room and answers its question."""

    def __init__(self, address: str, code: str, **options: Any) -> None:
        super().__init__(address, **options)
        self._link = f"follow={code}"
        self._kept = self._given = ""  # the key of its answer: what its browser keeps, what the server gave last
        self._fragment = ""
        self.options: list[str] = []
        self.chosen: list[str] = []  # as the server shows it
        self.has_answered = False
        self.revealed = 0.0  # when the answer arrived

    async def scan(self) -> float:
        """Open the room's link, also again after a lost line; return the seconds until the page is there."""
        begin = time.perf_counter()
        await self.open(self._link, page="")
        if self._kept != self._given:
            await self.trigger(event(self._widget("kept_answer"), "kept", self._kept))
        return time.perf_counter() - begin

    async def tap(self, place: int) -> float:
        """Tap one more word, or the same one again; return the seconds until the server has confirmed it."""
        option, (taps,) = self.options[place], (name for name in self._widgets if name.startswith("guess_taps"))
        chosen = [each for each in self.chosen if each != option] + [option]
        state = WidgetState(id=self._widget(taps))
        state.string_array_value.data.extend(chosen)
        begin, self.has_answered, widgets = time.perf_counter(), False, self._widgets
        await self._run(state, fragment=self._fragment)
        self._widgets = {**widgets, **self._widgets}  # the rest of the page stays
        self.chosen = chosen
        if not self.has_answered:
            raise Wrong("a tap was not confirmed")
        return time.perf_counter() - begin

    async def wait(self) -> None:
        """Wait for the answer, which the server sends without being asked."""
        while not self.revealed:
            await asyncio.wait_for(self._answer(time.perf_counter()), TIMEOUT)

    def _resolved(self, message: Any) -> Any:
        message = super()._resolved(message)
        if message.WhichOneof("type") == "delta" and message.delta.new_element.WhichOneof("type") == "button_group":
            group = message.delta.new_element.button_group
            if "guess_taps" in group.id:
                self._fragment, self.options = message.delta.fragment_id, [each.content for each in group.options]
                self.chosen = [self.options[place] for place in group.default]
        return message

    def _seen(self, element: Any, answer: Answer, begin: float) -> bytes:
        kind = element.WhichOneof("type")
        if kind == "markdown" and _TAKEN in element.markdown.body:
            self.has_answered = True
        if kind == "bidi_component" and element.bidi_component.component_name == "visformer_kept_key":
            _what, self._given = json.loads(element.bidi_component.bytes)
            self._kept = self._kept or self._given
        if kind == "plotly_chart":  # the room beside the model
            self.revealed = time.perf_counter()
        return super()._seen(element, answer, begin)


def attention_text(answer: Answer) -> str:
    """Describe an answer, for error messages."""
    return json.dumps([answer.texts, answer.picture.tokens if answer.picture else None], ensure_ascii=False)
