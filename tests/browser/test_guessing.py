"""Guess first, with a presenter and a phone in Chromium."""

import re

from playwright.sync_api import expect

from tests.browser.stage import OVERFLOW, open_at
from tests.browser.support import wait_until_done
from tests.waiting import until


def test_a_phone_answers_is_reloaded_and_sees_the_answer_when_the_presenter_turns_the_page(visitor):
    page = open_at(visitor, "attention", query="?text=I+went+to+Northeastern+University.")
    page.keyboard.press("p")
    page.keyboard.press("q")
    page.locator(".vf-follow").click()
    expect(page.locator(".vf-address")).to_contain_text("follow=")
    code = re.search("follow=([a-z0-9]+)", page.locator(".vf-address").inner_text())[1]
    page.locator(".vf-close").click()
    page.keyboard.press("g")
    page.locator(".st-key-guess_ask button").click()

    phone = visitor.page(width=390, height=844)
    phone.goto(f"{visitor.server}/?follow={code}")
    words = phone.locator(".st-key-guess_taps button")
    words.first.wait_for()
    until(lambda: all(min(box["width"], box["height"]) >= 44 for box in (word.bounding_box() for word in words.all())))
    words.nth(3).click()
    expect(phone.get_by_text("Your guess is in.")).to_be_visible()
    expect(page.get_by_text("1 of 1 phones have answered.")).to_be_visible()
    phone.reload()
    expect(words.nth(3)).to_have_attribute("aria-pressed", "true")
    assert phone.evaluate("document.documentElement.scrollWidth") <= 390

    page.keyboard.press("PageDown")
    for each in (page, phone):
        expect(each.get_by_text("What was chosen has")).to_be_visible()
        each.locator(".main-svg").first.wait_for()
    assert page.evaluate(OVERFLOW) <= 0, "the question fits the projector"
    page.keyboard.press("PageDown")
    expect(page.locator(".vf-chip").first).to_be_visible()
    wait_until_done(phone)
    expect(phone.locator(".vf-chip").first).to_be_visible()
    assert "guest=" not in phone.url
