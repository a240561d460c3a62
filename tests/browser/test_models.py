"""Choosing a model in Chromium."""

import re

import pytest
from playwright.sync_api import expect

import visformer as vf
from tests.browser.support import pixels, point_of_cell, shown, wait_until_done

pytestmark = pytest.mark.browser


def painted_again(page, before):
    page.locator(f".vf-root[data-painted]:not([data-painted='{before}'])").wait_for()
    wait_until_done(page)
    return shown(page)["painted"]


def test_an_untrained_model_changes_the_picture_and_its_sliders_change_it_again(open_app):
    page = open_app(width=1280, height=720)
    side = page.get_by_test_id("stSidebar")
    trained, painted = pixels(page, ".vf-large"), shown(page)["painted"]
    side.get_by_role("combobox", name="Model").click()
    page.get_by_role("option", name="Untrained model").click()
    painted = painted_again(page, painted)
    untrained = pixels(page, ".vf-large")
    assert untrained != trained
    expect(page).to_have_url(re.compile("model=untrained-256x8-enc3-dec3-ff1024"))

    side.get_by_role("button", name="Size and seed").click()
    heads = page.get_by_role("slider", name="Heads")
    heads.focus()
    heads.press("ArrowLeft")
    painted_again(page, painted)
    expect(page).to_have_url(re.compile("model=untrained-256x4-enc3-dec3-ff1024"))
    assert pixels(page, ".vf-large") != untrained

    place = point_of_cell(page, 0, 3)
    page.locator(".vf-large").hover(position=place)
    target = page.get_by_label("Target", exact=True).get_attribute("placeholder")
    trace = vf.load("untrained-256x4-enc3-dec3-ff1024").trace("I went to Northeastern University.", target)
    weight = trace["encoder.0.self_attn.pattern"].value[0, 0, 3]
    assert float(page.locator(".vf-weight").inner_text()) == float(f"{weight:.3e}")
