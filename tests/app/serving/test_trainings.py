"""Runs of trainings: few at a time, in turn, until they are over or nobody watches; a killed process ends them."""

from functools import partial
from types import SimpleNamespace

import pytest

from tests.waiting import until
from visformer.adapters.learning import training
from visformer.adapters.learning.recipe import Recipe
from visformer.app.serving.trainings import process, runs
from visformer.app.serving.trainings.runs import Runs
from visformer.errors import BusyError, ShortageError
from visformer.system import limits


class Here:
    """The process that trains is this one."""

    pids = ()
    fails = False

    def call(self, what, *given):
        if self.fails:
            raise ShortageError("killed")
        return what(*given)


class Training:
    """A training whose steps take no time, but are counted."""

    sight = ()

    def __init__(self, recipe):
        self.recipe, self.step = recipe, 0

    @property
    def is_over(self):
        return self.step >= self.recipe.about.steps

    def advance(self):
        self.step += 1

    def moment(self):
        return SimpleNamespace(step=self.step)

    def weights(self):
        return {"output.weight": self.step}


@pytest.fixture
def started(monkeypatch):
    """Start runs, which end with the test."""
    monkeypatch.setattr(training, "Training", Training)
    here = Here()
    own = Runs(lambda: here)
    own.here = here
    yield own
    for run in list(own._runs.values()):
        own._end(run)


def test_a_run_is_found_by_its_owner_and_recipes_and_a_new_one_takes_its_place(started):
    run = started.start("me", [Recipe("sort")], session="s", speed=20)
    assert started.of("me", [Recipe("sort")]) is started.last("me") is run
    assert started.of("me", [Recipe("copy")]) is started.of("you", [Recipe("sort")]) is None
    second = started.start("me", [Recipe("sort", seed=1)], session="s", speed=20)
    assert run.state == "over"
    assert started.last("me") is second


def test_only_so_many_run_at_a_time(started):
    for number in range(limits.TRAININGS):
        started.start(f"visitor {number}", [Recipe("sort")], session="", speed=20)
    with pytest.raises(BusyError, match="4 models are being trained"):
        started.start("one more", [Recipe("sort")], session="")
    first = started.last("visitor 0")
    until(lambda: first.state == "playing")
    started.pause(first)
    started.start("one more", [Recipe("sort")], session="", speed=20)
    with pytest.raises(BusyError, match="4 models are being trained"):
        started.play(first)


def test_only_so_many_are_kept(started):
    for number in range(limits.TRAININGS_KEPT + 3):
        run = started.start(f"visitor {number}", [Recipe("sort")], session="", speed=20)
        until(lambda run=run: run.state == "playing")
        started.pause(run)
    assert len(started._runs) <= limits.TRAININGS_KEPT + 1
    assert started.last("visitor 0") is None
    assert started.last(f"visitor {limits.TRAININGS_KEPT}") is not None


def test_a_run_that_nobody_watches_pauses(started, monkeypatch):
    monkeypatch.setattr(runs, "_PATIENCE", 0.05)
    run = started.start("me", [Recipe("sort")], session="", speed=20)
    until(lambda: run.state == "paused")
    assert run.moments[0]


def test_a_run_ends_by_itself_with_its_weights(started):
    run = started.start("me", [Recipe("sort")], session="")
    until(lambda: run.state == "over")
    steps = [moment.step for moment in run.moments[0]]
    assert steps == [*range(0, 301, 4)]
    name = Recipe("sort").name
    assert started.models("me") == (name,)
    assert started.weights(name) == {"output.weight": 300}
    assert started.weights(Recipe("copy").name) is None
    until(lambda: run.name not in process._TRAININGS)


def test_a_killed_process_ends_the_run_with_a_sentence(started):
    run = started.start("me", [Recipe("sort")], session="", speed=20)
    until(lambda: run.state == "playing")
    started.here.fails = True
    until(lambda: run.state == "failed")
    assert isinstance(run.problem, ShortageError)


def test_a_run_moves_into_the_room_of_its_presenter(started):
    run = started.start("me", [Recipe("sort")], session="", speed=20)
    started.share("me", "room")
    assert started.last("room") is run
    assert started.last("me") is None


def test_a_run_whose_visitor_has_left_belongs_to_who_opens_the_same(started):
    """After a reload the visitor is a new session; a room outlives the session of its presenter."""
    sort, there = [Recipe("sort")], {"me"}
    run = started.start("me", sort, session="me", speed=20)
    takes = partial(started.adopt, session="you", is_there=lambda name: name in there)
    takes("you", sort)
    assert started.last("you") is None, "its visitor is there"
    there.clear()
    takes("you", [Recipe("copy")])
    assert started.last("you") is None, "it trains something else"
    takes("you", sort)
    assert started.last("you") is run and run.session == "you"
    started.share("you", "room")
    takes("other", sort)
    assert started.last("other") is None, "it is the room's"
