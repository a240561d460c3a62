"""Runs of trainings: few at a time, in turn, until they are over or nobody watches; a killed process ends them."""

from functools import partial
from types import SimpleNamespace

import pytest

from tests.waiting import until
from visformer.adapters.learning import training
from visformer.adapters.learning.recipe import Recipe
from visformer.app.serving import training_process, trainings
from visformer.app.serving.trainings import TrainingRuns
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
    own = TrainingRuns(lambda: here)
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


@pytest.fixture
def full(started):
    """All places are taken from one network, by runs that nobody else watches."""

    def take(*, watchers=1):
        runs = [
            started.start(f"tab {i}", [Recipe("sort")], session="", address="one", watchers=watchers, speed=20)
            for i in range(limits.TRAININGS)
        ]
        for run in runs:
            until(lambda run=run: run.state == "playing")
        return runs

    return take


def test_whoever_has_several_makes_room_for_a_newcomer_and_can_go_on_later(started, full):
    first, *others = full()
    new = started.start("visitor", [Recipe("sort")], session="", address="another", speed=20)
    assert (first.state, str(first.problem)[:30]) == ("paused", "This training has made room fo")
    assert all(run.is_active for run in (new, *others))
    with pytest.raises(BusyError, match="4 models are being trained"):
        started.play(first)
    for _ in range(20):  # as often as he tries, others keep a place
        with pytest.raises(BusyError):
            started.start("one more tab", [Recipe("sort")], session="", address="one")
    assert new.is_active
    started._end(new)
    started.play(first)
    assert first.problem is None and first.is_active


def test_a_room_goes_before_single_visitors_of_the_same_network_and_is_not_paused_for_them(started, full):
    first, *_ = full()
    room = started.start("room", [Recipe("sort")], session="", address="one", watchers=30, speed=20)
    assert first.state == "paused" and room.is_active
    with pytest.raises(BusyError):
        started.play(first)
    assert room.is_active


def test_several_rooms_of_one_network_make_room_for_another_one(started, full):
    full(watchers=100)
    assert started.start("room", [Recipe("sort")], session="", address="another", watchers=30, speed=20).is_active


def test_visitors_with_one_run_each_are_not_paused_for_another(started):
    runs = [
        started.start(f"visitor {i}", [Recipe("sort")], session="", address=f"{i}", speed=20)
        for i in range(limits.TRAININGS)
    ]
    with pytest.raises(BusyError):
        started.start("one more", [Recipe("sort")], session="", address="more")
    assert all(run.is_active for run in runs)


def test_only_so_many_are_kept(started):
    for number in range(limits.TRAININGS_KEPT + 3):
        run = started.start(f"visitor {number}", [Recipe("sort")], session="", speed=20)
        until(lambda run=run: run.state == "playing")
        started.pause(run)
    assert len(started._runs) <= limits.TRAININGS_KEPT + 1
    assert started.last("visitor 0") is None
    assert started.last(f"visitor {limits.TRAININGS_KEPT}") is not None


def test_a_run_that_nobody_watches_pauses(started, monkeypatch):
    monkeypatch.setattr(trainings, "_PATIENCE", 0.05)
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
    until(lambda: run.name not in training_process._TRAININGS)


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


def test_a_run_whose_visitor_has_left_belongs_to_the_browser_that_knows_its_name(started):
    """After a reload the visitor is a new session; a room outlives the session of its presenter."""
    there = {"me"}
    run = started.start("me", [Recipe("sort")], session="me", speed=20)
    takes = partial(started.adopt, session="you", is_there=lambda name: name in there)
    takes("you", run.name)
    assert started.last("you") is None, "its visitor is there"
    there.clear()
    for name in ("", "me", run.name[:-1]):
        takes("you", name)
        assert started.last("you") is None, "somebody else's browser does not know its name"
    takes("you", run.name)
    assert started.last("you") is run and run.session == "you"
    started.share("you", "room")
    takes("other", run.name)
    assert started.last("other") is None, "it is the room's"
