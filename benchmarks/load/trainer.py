"""A visitor who watches trainings, one after another, while others work."""

import asyncio
import json
from collections import Counter

from streamlit.proto.ForwardMsg_pb2 import ForwardMsg
from streamlit.proto.WidgetStates_pb2 import WidgetState

from benchmarks.load.visitor import Visitor


class Trainer(Visitor):
    """Does what the buttons of the page Learning do, and asks for what is new as often as a browser."""

    _again: tuple[str, float] | None = None  # the fragment to rerun, and after how many seconds

    def _resolved(self, message: ForwardMsg) -> ForwardMsg:
        message = super()._resolved(message)
        if message.WhichOneof("type") == "auto_rerun":
            self._again = message.auto_rerun.fragment_id, message.auto_rerun.interval
        elif message.script_finished == ForwardMsg.FINISHED_EARLY_FOR_RERUN:
            self._again = None  # all of the page is drawn anew
        return message

    async def act(self, what: str) -> None:
        """Press a button: "start", "seed" and so on."""
        aggregator = f"$$STREAMLIT_INTERNAL_KEY_{self._widget('picture_learning')}__events"
        value = json.dumps([{"event": "act", "value": {"what": what}}])
        await self._run(WidgetState(id=aggregator, json_trigger_value=value))

    async def watch(self) -> bool:
        """See what is new when it is time; return whether the training goes on."""
        if self._again is None:
            return False
        name, interval = self._again
        await asyncio.sleep(interval)
        await self._run(fragment=name)
        return True


async def watch_trainings(address: str, everybody: asyncio.Barrier, over: asyncio.Event) -> Counter[str]:
    """Watch one training after another until the others are done; returns the numbers of trainings and redraws."""
    done: Counter[str] = Counter()
    trainer = Trainer(address)
    await trainer.open(page="learning")
    await everybody.wait()
    await trainer.act("start")
    while not over.is_set():
        if await trainer.watch():
            done["redraws"] += 1
        else:  # it has ended by itself
            done["trainings"] += 1
            await trainer.act("seed")
    await trainer.close()
    return done
