"""The arrows walk through a whole presentation, on and back again, and each of its places is fit to be seen."""

import pytest

from tests.browser.stage import PAGES, ROOM, SEEN, SIZES, open_at, present, settled

pytestmark = pytest.mark.browser


def walk(page, key, *, until):
    """Everything that the key walks through, up to a place; each of it is fit to be seen."""
    walked = [settled(page)]
    while walked[-1] != until and walked[-1][:2] != until:
        assert len(walked) < 120, walked
        page.keyboard.press(key)
        walked.append(settled(page, after=walked[-1]))
        zoom = page.evaluate("getComputedStyle(document.documentElement).getPropertyValue('--vf-zoom')")
        assert float(zoom) >= 1.6, walked[-1]
        assert max(page.evaluate(ROOM)) <= 0, walked[-1]
        seen, (width, height) = page.evaluate(SEEN), (page.viewport_size[side] for side in ("width", "height"))
        assert [one for one in seen if one["tag"] == "CANVAS" or one["tag"] == "svg"], walked[-1]
        assert max(one["bottom"] for one in seen) <= height + 1, walked[-1]
        assert max(one["right"] for one in seen) <= width + 1, walked[-1]
    return walked


@pytest.mark.parametrize("size", SIZES)
def test_type_is_large_wherever_the_arrows_lead_and_back_undoes_on(visitor, size):
    page = open_at(visitor, "", size=size)
    present(page)
    begin = settled(page)
    on = walk(page, "ArrowRight", until=("/lab", "15/15"))
    assert [*dict.fromkeys(path.strip("/") for path, *_ in on)] == PAGES
    parts = {path for path, _step, _stack, part in on if part}
    assert parts >= ({"/tokens", "/embedding", "/head", "/lab"} if size == "small" else set())
    if size == "small":
        back = walk(page, "ArrowLeft", until=begin)
        assert back == on[::-1]
    page.close()


def test_the_last_part_stays_the_last_where_the_window_has_room_for_all_for_a_while(visitor):
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
    page.close()
