"""Back and Forward: each entry of the browser's history shows what it showed."""

import pytest

from tests.browser.support import go_to, state_of, submit, wait_until_done
from tests.waiting import until

pytestmark = pytest.mark.browser


def shown(page):
    """The address, the boxes and what the explorer has selected, if there is one."""
    wait_until_done(page)
    boxes = [box.input_value() for box in page.get_by_role("textbox").all()]
    explorer = page.locator(".vf-root").count() and state_of(page)
    return page.url, boxes, explorer and [explorer.get(name) for name in ("stack", "layer", "head")]


def changed(page, before):
    """Wait until the address is another one; return what is shown then."""
    page.wait_for_function("before => location.href !== before", arg=before[0])
    return shown(page)


def test_eight_changes_over_four_pages_come_back_one_by_one(open_app):
    page = open_app()
    seen = [shown(page)]
    changes = [
        lambda: submit(page, "I like cats."),
        lambda: go_to(page, "Masks"),
        lambda: page.get_by_text("Step by step", exact=True).click(),
        lambda: go_to(page, "Tokens"),
        lambda: submit(page, "She likes dogs."),
        lambda: go_to(page, "Positions"),
        lambda: page.get_by_text("Matrix", exact=True).click(),
        lambda: page.get_by_text("中文", exact=True).click(),
    ]
    for change in changes:
        change()
        seen.append(changed(page, seen[-1]))
    for before in reversed(seen[:-1]):
        page.go_back()
        until(lambda before=before: shown(page) == before)
    for after in seen[1:]:
        page.go_forward()
        until(lambda after=after: shown(page) == after)
