"""Visitors who want to keep the others waiting: the dearest links, files, lessons, texts and uploads, over and over."""

import asyncio
import urllib.request
from collections import Counter
from contextlib import suppress
from http.client import HTTPException
from itertools import count
from typing import Any

from streamlit.proto.BackMsg_pb2 import BackMsg
from streamlit.proto.ForwardMsg_pb2 import ForwardMsg
from streamlit.proto.WidgetStates_pb2 import WidgetState

from benchmarks.load.visitor import Phone, Presenter, Visitor, Wrong, event
from visformer.app.lessons import lesson_file

_WORDS = "+".join(["the+old+house+of+my+friend"] * 40)
_HALF = "+".join(["the+old+house+of+my+friend"] * 20)
_ORDINARY = "+".join(["the+old+house+of+my+friend"] * 10)  # as many as do not count as long
_LARGEST = "untrained-512x16-enc6-dec6-ff2048-seed"
_SEEDS = count(1)
_STEP = "  - {title: A, say: B, link: {text: '" + "the old house " * 60 + "'}}\n"
_LESSON = f"visformer_lesson: 1\ntitle: Long\nsteps:\n{_STEP * 20}"
_BITE = b"x" * 1_000_000


class Hostile(Visitor):
    """Knows its session, its popovers and the files that are offered."""

    session = ""

    def __init__(self, address: str, of: str) -> None:
        super().__init__(address, of=of)
        self.address, self.of = address, of
        self._popovers: set[str] = set()
        self._files: dict[str, str] = {}  # label of a button to its file

    def _resolved(self, message: ForwardMsg) -> ForwardMsg:
        message = super()._resolved(message)
        kind = message.WhichOneof("type")
        if kind == "new_session":
            self.session = message.new_session.initialize.session_id
        elif kind == "delta" and message.delta.WhichOneof("type") == "add_block":
            if message.delta.add_block.WhichOneof("type") == "popover":
                self._popovers.add(message.delta.add_block.popover.id)
        elif kind == "delta" and message.delta.new_element.WhichOneof("type") == "download_button":
            button = message.delta.new_element.download_button
            self._files[button.label] = button.deferred_file_id
        return message

    async def open_popovers(self) -> None:
        await self._run(*(WidgetState(id=name, bool_value=True) for name in self._popovers if name))

    async def files(self, *labels: str, times: int = 1) -> None:
        """Ask for these files, by default for all that are offered, all at once."""
        await self.open_popovers()
        assert self._socket is not None
        for label in (labels or (*self._files,)) * times:
            message = BackMsg()
            request = message.backend_operation_request
            request.request_id, request.session_id = label, self.session
            request.deferred_file.file_id = self._files[label]
            await self._socket.send(message.SerializeToString())

    async def upload(self, files: int) -> None:
        """Upload files that nobody will read."""
        await asyncio.to_thread(self._upload, files)

    def _upload(self, files: int) -> None:
        with urllib.request.urlopen(f"{self.address}/_stcore/health", timeout=30) as answer:
            token = str(answer.headers["Set-Cookie"]).partition("=")[2].partition(";")[0]
        head = {"Cookie": f"_streamlit_xsrf={token}", "X-Xsrftoken": token}
        head["Content-Type"] = "multipart/form-data; boundary=b"
        body = b'--b\r\nContent-Disposition: form-data; name="f"; filename="f"\r\n\r\n' + _BITE + b"\r\n--b--\r\n"
        for i in range(files):
            place = f"{self.address}/_stcore/upload_file/{self.session}/{i}"
            with suppress(OSError, HTTPException):
                urllib.request.urlopen(urllib.request.Request(place, body, head, method="PUT"), timeout=30).close()


async def _masks(visitor: Hostile) -> None:
    cells = "_".join(f"b0.0.{row}.{row}-{200 + row}" for row in range(1, 13))[:190].rpartition("_")[0]
    query = f"text={_WORDS}&masks_view=edit&masks_edit_stack=encoder&masks_switched={cells}"
    await visitor.open(query, "masks")


async def _untrained(visitor: Hostile) -> None:
    await visitor.open(f"model={_LARGEST}{next(_SEEDS)}&text={_WORDS}&head_view=silence&head_scales=1.1.0", "head")


async def _beams(visitor: Hostile) -> None:
    await visitor.open(f"text={_WORDS}&decoding_view=beams&decoding_beams=8", "decoding")


async def _exports(visitor: Hostile) -> None:
    await visitor.open(f"text={'+'.join(['the+old+house'] * 50)}&try={next(_SEEDS)}")
    await visitor.files(times=3)


async def _lesson(visitor: Hostile) -> None:
    await visitor.open(f"lesson={lesson_file.pack(_LESSON.encode())}&step=1")
    await visitor.files("HTML", times=8)


async def _long(visitor: Hostile) -> None:
    await visitor.open()
    await visitor.enter("a" * 400_000)


async def _uploads(visitor: Hostile) -> None:
    await visitor.open()
    await visitor.upload(40)


async def _reload(visitor: Hostile) -> None:
    """Open a dear link again and again, as a new session each time, without waiting for what it shows."""
    for _ in range(8):
        again = Hostile(visitor.address, visitor.of)
        with suppress(TimeoutError, Wrong):
            await asyncio.wait_for(again.open(f"text={_HALF}+{next(_SEEDS)}"), 1)
        await again.close()


async def _moments(visitor: Hostile) -> None:
    await visitor.open(f"text={_ORDINARY}+{next(_SEEDS)}&compare_view=moments", "compare")


async def _models(visitor: Hostile) -> None:
    await visitor.open(f"text={_ORDINARY}+{next(_SEEDS)}&compare_view=sentences&other={_ORDINARY}", "compare")


async def _parts(visitor: Hostile) -> None:
    await visitor.open(f"text={_WORDS[:800]}+{next(_SEEDS)}&block_view=parts", "block")


async def _effects(visitor: Hostile) -> None:
    await visitor.open(f"text={_ORDINARY}+{next(_SEEDS)}&effects_view=weights", "effects")
    with suppress(KeyError):  # the bundled model measures at once
        await visitor.press("effects_measure")


async def _list(visitor: Hostile) -> None:
    await visitor.open("heads_view=ranked", "heads")
    await visitor.press("heads_rank")


async def _connections(visitor: Hostile) -> None:
    """Open a hundred websockets, say nothing, and leave."""
    silent = [Hostile(visitor.address, visitor.of) for _ in range(100)]
    await asyncio.gather(*(each.connect() for each in silent), return_exceptions=True)
    await asyncio.sleep(1)
    await asyncio.gather(*(each.close() for each in silent), return_exceptions=True)


async def _have(visitor: Hostile) -> None:
    """Ask a training for all of its moments, again and again."""
    await visitor.open(page="learning")
    for _ in range(20):
        await visitor.trigger(event(visitor._widget("picture_learning"), "have", 0))


async def _guesses(visitor: Hostile) -> None:
    """Ask a room of one's own, and answer from twenty phones."""
    presenter = Presenter(visitor.address, of=visitor.of)
    await presenter.open("text=I+went+to+Northeastern+University.")
    await presenter.invite()
    await presenter.press("guess_begin")
    await presenter.press("guess_ask")
    phones = [Phone(visitor.address, presenter.code, of=visitor.of) for _ in range(20)]
    for phone in phones:
        with suppress(Wrong):  # few answers are taken from one address
            await phone.scan()
            await phone.tap(0)
    for each in (presenter, *phones):
        await each.close()


ATTACKS: Any = (
    _masks,
    _reload,
    _untrained,
    _moments,
    _beams,
    _models,
    _exports,
    _parts,
    _lesson,
    _effects,
    _long,
    _list,
    _have,
    _uploads,
    _guesses,
    _connections,
)


async def attack(address: str, everybody: asyncio.Barrier, over: asyncio.Event, *, number: int) -> Counter[str]:
    """Let so many visitors attack until the others are done; returns what they did, and how often it was answered.

    Every second one has the address that the room has, too; the others have addresses of their own.
    """
    done: Counter[str] = Counter()
    await everybody.wait()

    async def stay(first: int) -> None:
        of = f"127.0.1.{first}" if first % 2 else ""
        for i in count(first):
            what, visitor = ATTACKS[i % len(ATTACKS)], Hostile(address, of)
            try:
                await what(visitor)
                done[what.__name__] += 1
                await asyncio.sleep(2)  # what was asked for is being made
            except (Wrong, OSError) as error:
                done[f"{what.__name__}: {error}"] += 1
            except Exception as error:
                done[f"{what.__name__}: {type(error).__name__}"] += 1
            finally:
                with suppress(Exception):
                    await visitor.close()

    attackers = [asyncio.create_task(stay(first)) for first in range(number)]
    await over.wait()
    for each in attackers:
        each.cancel()
    await asyncio.gather(*attackers, return_exceptions=True)
    return done
