"""Saved files, states and a lesson, show what they showed when they were recorded.

After an intended change, record again: see ``tests/golden/record.py``.
"""

import pytest

from tests.app.pages.seen import SAVING, open_file, open_link, saved, seen
from tests.golden.compare import SAVED, assert_alike, read
from tests.golden.record import LESSON, STEPS, of_state, of_step, states


@pytest.fixture
def _lesson_is_offered(monkeypatch):
    monkeypatch.setenv("VISFORMER_LESSONS", str(SAVED))


@pytest.mark.parametrize("expected", read("states.json"), ids=lambda one: one["file"])
def test_a_state_shows_what_it_showed(expected):
    assert_alike(expected, of_state(expected["file"]))


@pytest.mark.parametrize("name", states())
def test_a_state_is_saved_again_unchanged(name):
    app = open_file(open_link("/"), name, *SAVING)
    assert saved(app) == (SAVED / name).read_text(encoding="utf-8")


@pytest.mark.usefixtures("_lesson_is_offered")
@pytest.mark.parametrize("number", [1, *(pytest.param(each, marks=pytest.mark.full) for each in range(2, STEPS + 1))])
def test_a_step_of_a_lesson_shows_what_it_showed(number):
    assert_alike(read("lesson.json")[number - 1], of_step(number))


def test_a_lesson_opened_as_a_file_shows_its_first_step():
    app = open_file(open_link("/"), f"{LESSON}.yaml", "Lessons")
    expected, found = read("lesson.json")[0], seen(app)
    for one in (expected, found):  # a file has no name, and is too long to be in an address
        address, _along, _link = (one.pop(name, {}) for name in ("address", "along", "link"))
        one["address"] = {name: value for name, value in address.items() if name not in ("lesson", "step")}
        one["offers"] = [text.partition(" → ")[0] for text in one["offers"]]
    assert_alike(expected, found)


@pytest.mark.usefixtures("_lesson_is_offered")
def test_every_saved_file_is_tested():
    assert [one["file"] for one in read("states.json")] == states()
    assert len(read("lesson.json")) == STEPS
    after_the_last = seen(open_link(f"/?lesson={LESSON}&step={STEPS + 1}"))
    assert after_the_last["remarks"] == [f"step={STEPS + 1}: the steps of this lesson are 1 to {STEPS}."]
