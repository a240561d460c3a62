"""The arrow keys step through a whole presentation and back, and each step fits the window."""

import pytest

from tests.browser.stage import PAGES, SIZES, check_in_window, open_at, present, settled

pytestmark = pytest.mark.browser


def resized(page, size):
    width, height = SIZES[size]
    page.set_viewport_size({"width": width, "height": height})
    page.wait_for_timeout(400)


def walk(page, key, *, until):
    """Press a key until a step is reached; check each step, and the first of a page in a large window, too."""
    walked = [settled(page)]
    while walked[-1] != until and walked[-1][:2] != until:
        assert len(walked) < 120, walked
        page.keyboard.press(key)
        walked.append(settled(page, after=walked[-1]))
        check(page, walked[-1])
        if key == "ArrowRight" and walked[-1][0] != walked[-2][0]:
            resized(page, "large")
            check(page, settled(page), alone=True)
            resized(page, "small")
    return walked


def check(page, place, *, alone=False):
    zoom = page.evaluate("getComputedStyle(document.documentElement).getPropertyValue('--vf-zoom')")
    assert float(zoom) >= 1.6, place
    check_in_window(page, place, alone=alone)


def test_text_is_large_at_every_step_and_going_back_reverses_the_steps(visitor):
    page = open_at(visitor, "")
    present(page)
    begin = settled(page)
    on = walk(page, "ArrowRight", until=("/lab", "15/15"))
    assert [*dict.fromkeys(path.strip("/") for path, *_ in on)] == PAGES
    assert {path for path, _step, _stack, part in on if part} >= {"/tokens", "/embedding", "/head", "/lab"}
    assert walk(page, "ArrowLeft", until=begin) == on[::-1]


def test_the_last_part_stays_selected_when_the_window_is_temporarily_large(visitor):
    page = open_at(visitor, "head")
    present(page)
    first = settled(page)
    page.keyboard.press("ArrowRight")
    last = settled(page, after=first)
    page.keyboard.press("ArrowRight")
    settled(page, after=last)
    page.keyboard.press("ArrowLeft")
    shown = []
    for width, height in (SIZES["small"], (3840, 2160), SIZES["small"]):
        page.set_viewport_size({"width": width, "height": height})
        page.wait_for_timeout(600)
        shown.append(settled(page)[-1])
    assert shown == ["Part 2 of 2", "", "Part 2 of 2"]
