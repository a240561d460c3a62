"""The arrow keys go through a whole presentation and back, and each step fits the window."""

import pytest

from tests.browser.stage import PAGES, SIZES, check_in_window, open_at, present, settled


def resize(page, size):
    page.set_viewport_size(dict(zip(("width", "height"), size, strict=True)))
    page.wait_for_timeout(600)


def press_until(page, key, last):
    """Press a key until a position is reached; on the way on check each, the first of a page in a large window, too."""
    positions = [settled(page)]
    while positions[-1] != last and positions[-1][:2] != last:
        assert len(positions) < 200, positions
        page.keyboard.press(key)
        positions.append(settled(page, after=positions[-1]))
        if key == "ArrowRight":
            check(page, positions[-1])
        if key == "ArrowRight" and positions[-1][0] != positions[-2][0]:
            resize(page, SIZES["large"])
            check(page, settled(page), alone=True)
            resize(page, SIZES["small"])
    return positions


def check(page, place, *, alone=False):
    zoom = page.evaluate("getComputedStyle(document.documentElement).getPropertyValue('--vf-zoom')")
    assert float(zoom) >= 1.6, place
    check_in_window(page, place, alone=alone)


@pytest.mark.full
def test_every_step_is_zoomed_and_in_the_window_and_going_back_reverses_the_steps(visitor):
    page = open_at(visitor, "attention")
    present(page)
    first = settled(page)
    forward = press_until(page, "ArrowRight", ("/compare", "2/4"))
    walked = PAGES[PAGES.index("attention") : PAGES.index("compare") + 1]
    assert [*dict.fromkeys(path.strip("/") for path, *_ in forward)] == walked
    assert {path for path, _step, _stack, part in forward if part} >= {"/embedding", "/head", "/lab"}
    assert press_until(page, "ArrowLeft", first) == forward[::-1]


@pytest.mark.full
def test_two_models_are_stepped_through_by_the_attention_that_both_have(visitor):
    """The other model may lack the attention that was selected: going back would show another one."""
    page = open_at(visitor, "compare", query="?v=2&compare_view=models")
    present(page)
    assert {step for _path, step, *_ in press_until(page, "ArrowRight", ("/compare", "4/4"))} == {"3/4", "4/4"}


@pytest.mark.full
def test_the_last_part_stays_selected_when_the_window_is_temporarily_large(visitor):
    page = open_at(visitor, "head")
    present(page)
    first = settled(page)
    page.keyboard.press("ArrowRight")
    last = settled(page, after=first)
    page.keyboard.press("ArrowRight")
    settled(page, after=last)
    page.keyboard.press("ArrowLeft")
    parts = []
    for size in (SIZES["small"], (3840, 2160), SIZES["small"]):
        resize(page, size)
        parts.append(settled(page)[-1])
    assert parts == ["Part 2 of 2", "", "Part 2 of 2"]
