"""Back and Forward: each entry of the browser's history shows what it showed."""

from urllib.parse import urlsplit

import pytest
from playwright.sync_api import expect

from tests.browser.support import go_to, submit, wait_until_done
from tests.waiting import until
from visformer.app.lessons import lesson_file
from visformer.app.session import url_state

LESSON = lesson_file.load(url_state.SHIPPED)


def shown(page):
    """The address, the boxes and what the explorer has selected, if there is one."""
    wait_until_done(page)
    boxes = page.get_by_role("textbox").evaluate_all("all => all.map(({ value }) => value)")
    explorers = page.locator(".vf-root[data-stack]").evaluate_all(
        "all => all.map(({ dataset: d }) => [d.stack, d.layer, d.head])"
    )
    return page.url, boxes, explorers


def walk(page, seen):
    """Go back through all entries and forward again, no faster than a person could; check what each shows."""
    for move, entries in ((page.go_back, seen[-2::-1]), (page.go_forward, seen[1:])):
        for entry in entries:
            move()
            until(lambda entry=entry: shown(page) == entry)
            page.wait_for_timeout(300)
            assert shown(page) == entry


def changed(page, before):
    """Wait until the address is another one; return what is shown then."""
    page.wait_for_function("before => location.href !== before", arg=before[0])
    return shown(page)


RENAMED = """
  const rename = (known, link) => m.renameEntry({ data: new TextEncoder().encode(JSON.stringify({ known, link })) })
  const seen = []
  history.replaceState({}, "", "/masks?text=a%20b")
  dispatchEvent(new PopStateEvent("popstate"))
  for (const [known, link] of args.renamed) {
    rename(known, link)
    seen.push(location.pathname + location.search)
  }
  history.replaceState({}, "", "/")
  return seen
"""


def test_a_run_renames_only_the_entry_that_it_shows(bare):
    """Who has pressed Back meanwhile is at another entry, of the same page or of another."""
    renamed = [
        ("text=other", "masks?text=other&v=2"),
        ("text=a+b", "attention?text=a+b&v=2"),
        ("text=a+b", "masks?text=a+b&v=2"),
        ("text=other", "masks?text=other&v=2"),
        ("text=a+b", "masks?text=a+b&v=2&head=3"),
    ]
    first, named, then = "/masks?text=a%20b", "/masks?text=a+b&v=2", "/masks?text=a+b&v=2&head=3"
    seen = bare.run("streamlit/page.js", RENAMED, {"renamed": renamed})
    assert seen == [first, first, named, named, then]


@pytest.mark.parametrize("count", [4, pytest.param(8, marks=pytest.mark.full)])
def test_changes_over_several_pages_come_back_one_by_one(open_app, count):
    page = open_app()
    seen = [shown(page)]
    changes = [
        lambda: submit(page, "I like cats."),
        lambda: go_to(page, "Masks"),
        lambda: page.get_by_text("Step by step", exact=True).click(),
        lambda: go_to(page, "Embedding + position"),
        lambda: submit(page, "She likes dogs."),
        lambda: go_to(page, "Positions"),
        lambda: page.get_by_text("Matrix", exact=True).click(),
        lambda: page.get_by_text("中文", exact=True).click(),
    ]
    for change in changes[:count]:
        change()
        seen.append(changed(page, seen[-1]))
    walk(page, seen)


@pytest.mark.full
def test_a_page_opened_after_a_head_was_selected_is_one_entry(open_app):
    """The links to pages are older than the selection, which reruns the explorer alone."""
    page = open_app()
    before = shown(page)
    page.get_by_role("button", name="Encoder", exact=True).click()
    seen = [changed(page, before)]
    entries = page.evaluate("history.length")
    for title, path in (("Masks", "/masks"), ("Inside a head", "/head")):
        go_to(page, title)
        page.wait_for_url(lambda url, path=path: urlsplit(url).path == path and "head=" in url)
        seen.append(shown(page))
    assert page.evaluate("history.length") == entries + 2
    walk(page, seen)


@pytest.mark.full
def test_each_step_of_a_lesson_is_one_entry(open_app):
    """Its steps are on three pages; the large button, Next and a dot open them, some with the visitor's sentence."""
    own = "I like cats."
    page = open_app(query=f"?text={own}")
    seen = [shown(page)]
    entries = page.evaluate("history.length")
    turns = {
        1: page.get_by_role("button", name="From a sentence to its translation"),
        2: page.get_by_role("button", name="Next", exact=True),
        3: page.get_by_role("button", name="Next", exact=True),
        8: page.locator(".vf-lesson-bar .vf-dot").nth(7),
        7: page.get_by_role("button", name="Back", exact=True),
    }
    for number, turn in turns.items():
        turn.click()
        step = LESSON.steps[number - 1]
        expect(page.locator(".vf-lesson-bar [aria-current=step]")).to_have_attribute("title", step.text("title", "en"))
        seen.append(shown(page))
        assert seen[-1][1][0] == (own if step.fits_any else step.sentence)
        assert urlsplit(page.url).path == f"/{step.state.page}"
    page.get_by_role("button", name="Leave the lesson").click()
    seen.append(changed(page, seen[-1]))
    assert page.evaluate("history.length") == entries + len(turns) + 1
    walk(page, seen)


HOLD_MESSAGES = """
  window.WebSocket = class extends WebSocket {
    addEventListener(name, listener, ...options) {
      if (name !== "message") return super.addEventListener(name, listener, ...options)
      let last = Promise.resolve()
      return super.addEventListener(name, (event) => {
        window.arrived += new TextDecoder().decode(event.data)
        last = last.then(() => window.released).then(() => listener.call(this, event))
      }, ...options)
    }
  }
  window.arrived = ""
"""


def test_back_shows_its_entry_although_another_is_on_its_way(open_app):
    """On a slow line Back is quicker than the address of the sentence that was just entered."""
    page = open_app(script=HOLD_MESSAGES)
    first = shown(page)
    submit(page, "I like cats.")
    changed(page, first)
    page.evaluate("() => { window.released = new Promise((release) => (window.release = release)) }")
    submit(page, "She likes dogs.")
    page.wait_for_function("() => window.arrived.includes('text=She+likes+dogs.')")
    arrived = page.evaluate("window.arrived.length")
    page.go_back()
    page.wait_for_function("before => window.arrived.length > before", arg=arrived)
    page.evaluate("window.release()")
    until(lambda: shown(page) == first)
    page.wait_for_timeout(1000)
    assert shown(page) == first
