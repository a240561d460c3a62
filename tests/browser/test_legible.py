"""Every page and view in small and large windows, both languages and themes: nothing is cut, nothing too faint.

Each walk opens every page and view once, on every second page also in a phone's window, so that every page has each
window, language and theme, and all pairs of these come together; in each window axe-core examines each page.
"""

from itertools import combinations, pairwise
from operator import itemgetter

import pytest
from axe_playwright_python.sync_playwright import Axe

from tests.app.support import VIEWS
from tests.browser.boxes import RECORD_LABELS, faults, labels
from tests.browser.support import wait_until_done
from visformer.app.session.url_state import EXPLORER
from visformer.export.marks import ink_on, ramp
from visformer.i18n import translations
from visformer.pictures.registry.picture import pages

TAGS = ["wcag2a", "wcag2aa", "wcag21a", "wcag21aa", "wcag22aa"]
STREAMLITS = {
    "scrollable-region-focusable": {".katex-display": "KaTeX's words for screen readers lie outside a formula's box"},
}
"""Rules to selectors of Streamlit's own elements that break them, and why that stays."""
DESKTOP, PHONE = ((1280, 720), (1024, 640)), (390, 844)
WALKS = ("en", "zh")
SETTLED = 400  # milliseconds: the side bar slides, columns stack, canvases are drawn again
RIGHT_OF_WORDS = """element => {
  const words = new Range()
  words.selectNodeContents(element)
  return words.getBoundingClientRect().right
}"""
SWITCHES = {page.rpartition("/")[2]: switch for page, switch in VIEWS.items()}


def meeting(walk, number):
    """Return the windows and the theme in which a walk has a page of this number."""
    at = WALKS.index(walk)
    windows = [DESKTOP[(at + number) % 2], *([PHONE] if number % 2 == at else [])]
    return windows, ("light", "dark")[(at + number // 2) % 2]


def resize(page, window):
    width, height = window
    page.set_viewport_size({"width": width, "height": height})


def examined(page):
    """Return what axe-core finds, as "rule: selector", except in :data:`STREAMLITS`."""
    options = {"runOnly": {"type": "tag", "values": TAGS}, "resultTypes": ["violations"]}
    violations = Axe().run(page, options=options).response["violations"]
    found = [(rule["id"], str(node["target"]), node["failureSummary"]) for rule in violations for node in rule["nodes"]]
    allowed = lambda rule, target: any(part in target for part in STREAMLITS.get(rule, {}))  # noqa: E731
    return [f"{rule}: {target}: {why}" for rule, target, why in found if not allowed(rule, target)]


def lasting_faults(page):
    """Return the faults of a page at rest: on a busy machine the side bar slides for longer."""
    for _ in range(5):
        page.wait_for_timeout(SETTLED)
        if not (found := faults(page)):
            return []
    return found


def headings(page):
    """Return the levels of the headings outside the side bar, in reading order."""
    selector = "[data-testid=stMain] :is(h1, h2, h3, h4, h5, h6)"
    return page.locator(selector).evaluate_all("all => all.map(({ localName }) => Number(localName[1]))")


def views_of(page, declared):
    """Select each view of an open page and yield its name."""
    if declared.name == EXPLORER:
        for button in page.locator(".vf-views button").all():
            button.click()
            yield button.get_attribute("data-name")
        return
    key, names = SWITCHES.get(declared.name, ("", [""]))
    for number, name in enumerate(names):
        if number:
            page.locator(f".st-key-{key} button").nth(number).click()
            page.wait_for_url(f"**{key}={name}*")
            wait_until_done(page)
        yield name


def open_page(page, declared, _):
    """Open a page from the side bar, which a phone may hide."""
    title = page.get_by_text(_(declared.title), exact=True)  # a title may be part of another
    link = page.get_by_test_id("stPageLink-NavLink").filter(has=title).first
    link.evaluate("element => element.click()")
    page.wait_for_function("name => location.pathname === `/${name}`", arg=declared.name)
    wait_until_done(page)
    if declared.name == "learning":
        view = page.locator(".vf-learning[data-state]")
        if view.get_attribute("data-state") == "idle":  # not if the walk before this one has left its training
            view.locator(".vf-play").click()
        page.locator(".vf-learning[data-state=over]").wait_for(timeout=120_000)
        wait_until_done(page)
    page.locator(
        ".vf-root[data-painted] canvas, .js-plotly-plot .main-svg, [data-testid=stDataFrame] canvas"
    ).first.wait_for()


@pytest.mark.parametrize(
    ("lang", "some"),
    [
        ("zh", {""}),
        *(pytest.param(lang, None, marks=pytest.mark.full) for lang in WALKS),
    ],
    ids=["some", *WALKS],
)
def test_nothing_is_cut_covered_broken_or_too_faint(open_app, lang, some):
    found, counted, page = [], 0, open_app(query=f"attention?lang={lang}", script=RECORD_LABELS)
    for number, declared in enumerate(pages().values()):
        if some is not None and declared.name not in some:
            continue
        windows, scheme = meeting(lang, number)
        page.emulate_media(color_scheme=scheme)
        resize(page, windows[0])
        open_page(page, declared, translations(lang).gettext)
        for view in views_of(page, declared):
            for window in windows:
                resize(page, window)
                page.mouse.move(0, 0)
                found += [f"{declared.name}/{view} {lang} {scheme} {window}: {fault}" for fault in lasting_faults(page)]
                counted += labels(page)["count"]
        for window in reversed(windows):
            resize(page, window)
            found += [f"{declared.name} {lang} {scheme} {window}: {fault}" for fault in examined(page)]
        levels = headings(page)
        assert levels.count(1) == 1 and levels[0] == 1, declared.name
        assert all(after - before <= 1 for before, after in pairwise(levels)), declared.name
    assert counted, "the labels are recorded"
    assert not found, "\n".join(found)


def test_the_walks_have_every_page_in_each_window_language_and_theme():
    every = set()
    for number in range(len(pages())):
        met = {(window, lang, meeting(lang, number)[1]) for lang in WALKS for window in meeting(lang, number)[0]}
        assert [len(set(each)) for each in zip(*met, strict=True)] == [3, 2, 2], number
        every |= met
    for one in combinations(range(3), 2):
        assert len({itemgetter(*one)(each) for each in every}) == (4 if one == (1, 2) else 6), one


@pytest.mark.full
def test_open_menus_buttons_and_the_focused_page_are_legible_in_the_dark(open_app):
    page = open_app(scheme="dark")
    link = page.get_by_test_id("stPageLink-NavLink").filter(visible=True).nth(4)
    plain = link.evaluate("element => getComputedStyle(element).outlineStyle")
    page.get_by_test_id("stPageLink-NavLink").filter(visible=True).nth(3).focus()
    page.keyboard.press("Tab")
    ring = link.evaluate(
        "e => [document.activeElement === e, getComputedStyle(e).outlineStyle, getComputedStyle(e).outlineWidth]"
    )
    assert (plain, *ring) == ("none", True, "solid", "2px")
    page.get_by_role("button", name="Save").first.click()
    page.get_by_test_id("stPopoverBody").wait_for()
    wait_until_done(page)
    assert not examined(page)
    page.keyboard.press("Escape")
    page.get_by_role("button", name="From a sentence to its translation").click()
    page.get_by_role("button", name="Next", exact=True).wait_for()
    wait_until_done(page)
    assert not examined(page)


RING = """canvas => {
  const style = getComputedStyle(canvas), far = parseFloat(style.outlineOffset) + parseFloat(style.outlineWidth)
  const { left, top, right, bottom } = canvas.getBoundingClientRect()
  const above = (one) => one.parentElement ?? one.getRootNode().host ?? null
  let cut = 0
  for (let one = above(canvas); one && one !== document.body; one = above(one)) {
    const { overflowX, overflowY } = getComputedStyle(one), frame = one.getBoundingClientRect()
    if (overflowX !== "visible") cut = Math.max(cut, frame.left - left + far, right + far - frame.right)
    if (overflowY === "visible" || !one.closest(".vf-root")) continue // the page itself scrolls
    cut = Math.max(cut, frame.top - top + far, bottom + far - frame.bottom)
  }
  const focused = canvas.getRootNode().activeElement === canvas
  return { focused, style: style.outlineStyle, width: parseFloat(style.outlineWidth), cut }
}"""
"""The frame of a focused picture, and how many pixels of it an ancestor that scrolls hides."""


@pytest.mark.full
@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_the_picture_that_the_keyboard_is_in_has_a_visible_frame(open_app, scheme):
    page, found = open_app(scheme=scheme, width=1280, height=720), []
    for declared in [pages()[name] for name in ("", EXPLORER, "head", "decoding")]:
        open_page(page, declared, str)
        for view in views_of(page, declared):
            page.wait_for_timeout(SETTLED)
            for canvas in page.locator(".vf-root canvas[tabindex]").filter(visible=True).all():
                page.keyboard.press("Tab")  # the focus comes from the keyboard
                canvas.focus()
                ring = canvas.evaluate(RING)
                if ring != {"focused": True, "style": "solid", "width": 2, "cut": 0}:
                    found.append(f"{declared.name}/{view} {canvas.get_attribute('class')}: {ring}")
    assert not found, "\n".join(found)


@pytest.mark.full
def test_the_toolbar_of_a_table_covers_no_heading(open_app):
    page = open_app(query="attention?lang=en", width=390, height=844)
    for declared in [pages()[name] for name in ("embedding", "lab")]:
        open_page(page, declared, str)
        for table in page.get_by_test_id("stDataFrame").all():
            table.hover(position={"x": 20, "y": 20})
            page.wait_for_timeout(SETTLED)
            toolbars = page.get_by_test_id("stElementToolbar").filter(visible=True).all()
            shown = [one for one in toolbars if one.evaluate("e => getComputedStyle(e).opacity") == "1"]
            assert len(shown) == (declared.name != "lab")
            for toolbar in [one.bounding_box() for one in shown]:
                for above in page.locator("h2, strong, .st-key-lab_inputs p").filter(visible=True).all():
                    box = above.bounding_box()
                    apart = box["y"] + box["height"] <= toolbar["y"] + 1 or toolbar["y"] + toolbar["height"] <= box["y"]
                    assert apart or above.evaluate(RIGHT_OF_WORDS) <= toolbar["x"], above.inner_text()


def test_numbers_in_cells_have_the_ink_of_the_files(bare):
    for scale, theme in (("weight", "light"), ("weight", "dark"), ("signed", "light"), ("signed", "dark")):
        colours = ramp(scale, theme)
        assert bare.run("shared/colours.js", "return args.map(m.inkOn)", colours) == [*map(ink_on, colours)]
