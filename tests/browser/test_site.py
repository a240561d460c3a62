"""The translator without a server: static files, and one file; without a network, and where something is lacking."""

import re
from contextlib import contextmanager

import pytest
from playwright.sync_api import expect

import visformer as vf
from tests.browser.conftest import TIMEOUT, serving_files
from tests.browser.test_legible import TAGS, examined
from visformer.adapters.checkpoints import start_of
from visformer.app.lessons import lesson_file
from visformer.app.lessons.facts import filled
from visformer.app.session import url_state
from visformer.edits import Block, Silence
from visformer.i18n import translations
from visformer.pictures.examples import EXAMPLES
from visformer.web.selection import Selection
from visformer.web.site import _ERRORS

SENTENCE = "I like cats."
READY = ".vf-site[data-state=ready]"


@pytest.fixture(scope="session")
def model():
    return vf.load("en-zh")


@pytest.fixture(scope="session")
def folder(tmp_path_factory):
    return vf.export.site(tmp_path_factory.mktemp("site")).parent


@pytest.fixture(scope="session")
def address(folder):
    with serving_files(folder) as address:
        yield f"{address}/"


@pytest.fixture(scope="session")
def one_file(tmp_path_factory):
    return vf.export.site(tmp_path_factory.mktemp("single") / "visformer.html", single=True)


@pytest.fixture
def open_site(visit, address):
    """Open the site at a fragment, and wait until the model is there and has answered."""

    def open_at(fragment="", **settings):
        page = visit(f"{address}#{fragment}", own=address, **settings)
        page.wait_for_selector(READY)
        return page

    return open_at


def words(page):
    return page.locator(".vf-words button").all_inner_texts()


def shown(trace):
    return [*trace.tokens["next"]]


def type_sentence(page, text):
    page.locator(".vf-box").fill(text)
    page.locator(".vf-box").press("Enter")


def wait_for_words(page, expected):
    expect(page.locator(".vf-words button")).to_have_text(expected)
    page.wait_for_selector(READY)


def fragment(page):
    return page.evaluate("decodeURIComponent(location.hash.slice(1))")


def test_all_files_together_and_the_one_file_are_no_larger_than_promised(folder, one_file):
    assert sum(file.stat().st_size for file in folder.iterdir()) <= 18e6
    assert one_file.stat().st_size <= 23e6


@pytest.mark.parametrize("lang", [pytest.param("en", marks=pytest.mark.full), "zh"])
def test_the_example_is_painted_before_the_model_is_there(visit, address, lang):
    gettext, page = (
        translations(lang).gettext,
        visit("about:blank", own=address, locale={"en": "en-GB", "zh": "zh-CN"}[lang]),
    )
    held = []
    page.route("**/model.safetensors", lambda route: held.append(route))
    page.goto(address)
    page.wait_for_selector(".vf-map[data-painted]")
    expect(page.locator("h1")).to_have_text(gettext("How a Transformer translates a sentence"))
    assert page.locator(".vf-box").input_value() == EXAMPLES[0]
    assert words(page) == ["我", "去", "东北", "大学", "。", "</s>"]
    type_sentence(page, SENTENCE)
    expect(page.locator(".vf-status")).to_contain_text("16.7 MB")
    held[0].continue_()
    wait_for_words(page, ["我", "喜欢", "猫", "。", "</s>"])


def test_a_sentence_has_pythons_translation_and_weights(open_site, model):
    page, trace = open_site(), model.trace(SENTENCE)
    type_sentence(page, SENTENCE)
    wait_for_words(page, shown(trace))
    page.get_by_role("button", name="Attention", exact=True).click()
    page.get_by_role("button", name="Heatmap").click()
    root = page.locator(".vf-host[data-kind=attention] .vf-root")
    root.locator(".vf-large").press("Shift+ArrowDown")
    state = root.evaluate("root => ({ ...root.dataset })")
    part, kind = state["stack"].split(".")
    place = [int(state[name]) for name in ("head", "query", "key")]
    weight = trace[f"{part}.{state['layer']}.{kind}.pattern"].value[tuple(place)]
    assert float(state["weight"]) == pytest.approx(float(weight), rel=1e-3)


def test_a_silenced_head_changes_what_it_changes_in_python(open_site, model):
    """The head that says most of this translation; then all heads speak again."""
    page = open_site("text=The+cat+did+not+drink+the+milk+because+it+was+cold.&stack=cross&layer=3&head=6")
    source = page.locator(".vf-box").input_value()
    own = shown(model.trace(source))
    silences = [Silence(f"decoder.{layer}.cross_attn", head) for layer in (1, 2) for head in range(8)]
    heads = "_".join(
        f"cross.{layer + 1}.{head + 1}" for layer in (1, 2) for head in range(8) if (layer, head) != (2, 5)
    )
    page.goto(page.url + f"&silenced={heads}")
    page.wait_for_selector(READY)
    page.get_by_role("button", name="Silence this head: Cross-attention, layer 3, head 6").click()
    expected = shown(model.trace(source, edits=silences))
    assert expected != own
    wait_for_words(page, expected)
    page.get_by_role("button", name="Restore all heads").click()
    wait_for_words(page, own)
    page.go_back()
    wait_for_words(page, expected)


def test_another_token_is_written_on(open_site, model):
    page, first = open_site(), model.translate(EXAMPLES[0])
    other = first.steps[1].candidates[1]
    expected = model.translate(EXAMPLES[0], prefix=[*first.ids[:1], other.id])
    page.locator(".vf-words button").nth(1).click()
    row = page.locator(".vf-other").nth(1)
    expect(row).to_contain_text(other.token)
    assert float(row.locator(".vf-other-share").inner_text()) == pytest.approx(other.probability, rel=1e-3)
    row.click()
    wait_for_words(page, [*expected.tokens, "</s>"])
    page.get_by_role("button", name="The model's own translation").click()
    wait_for_words(page, [*first.tokens, "</s>"])


def test_a_place_in_the_address_is_open_and_has_its_sum(open_site, model):
    page = open_site("zoom=decoder.1.cross_attn.8.2.1")
    weight = model.trace(EXAMPLES[0])["decoder.0.cross_attn.pattern"].value[7, 1, 0]
    expect(page.locator(".vf-say")).to_contain_text(f"the weight {weight:.4f}")
    expect(page.locator(".vf-say")).to_contain_text("q · k is")


def test_what_enters_the_first_layer_is_that_of_the_sentence(open_site, model):
    page = open_site("page=embedding&text=I+like+cats.")
    names = page.locator(".vf-host[data-kind=embedding] .vf-name").all_inner_texts()
    assert [name.partition("\n")[0] for name in names] == ["embedding × √d_model", "positional encoding", "their sum"]
    matrix = page.locator(".vf-host[data-kind=embedding] .vf-matrix").last
    matrix.press("ArrowRight")
    value = float(page.locator(".vf-host[data-kind=embedding] .vf-value").inner_text().replace("−", "-"))
    trace = model.trace(SENTENCE, record=("src.input", "src.position"))
    assert abs(trace["src.input"].value[0] - value).min() < 1e-3
    waves = re.findall(
        r"(\d+): (?:sin|cos), λ = [\d.]+: ([-\d., ]+)", page.locator(".vf-waves").get_attribute("aria-label")
    )
    assert len(waves) == 6
    for dimension, told in waves:
        numbers = [float(number) for number in told.split(", ")]
        assert numbers == pytest.approx(trace["src.position"].value[:, int(dimension)], abs=6e-4)
    page.get_by_role("button", name="Target", exact=True).click()
    expect(page.locator(".vf-entering [aria-pressed=true]")).to_have_text("Target")
    assert "embedding_side=tgt" in fragment(page)
    matrix.press("ArrowRight")
    value = float(page.locator(".vf-host[data-kind=embedding] .vf-value").inner_text().replace("−", "-"))
    trace = model.trace(SENTENCE, record=("tgt.input",))
    assert abs(trace["tgt.input"].value - value).min() < 1e-3


@pytest.mark.parametrize(("text", "lang"), [(EXAMPLES[0], "en"), (SENTENCE, "zh")])
def test_attention_in_three_minutes_is_about_the_visitors_sentence(open_site, model, text, lang):
    lesson, gettext = lesson_file.load(url_state.SHORT), translations(lang).gettext
    page, trace = open_site(f"lang={lang}"), model.trace(text, record=("*.pattern", "*.mask", "logits"))
    type_sentence(page, text)
    wait_for_words(page, shown(trace))
    page.get_by_role("button", name=lesson.title_in(lang)).click()
    seen = []
    for number, step in enumerate(lesson.steps, 1):
        say, answer = (filled(step.text(name, lang), step.facts(trace, text)) for name in ("say", "answer"))
        expect(page.locator(".vf-lesson-say")).to_have_text(say)
        if step.state.page != "head":  # whose task only the app draws
            page.locator(".vf-lesson summary").first.click()
            expect(page.locator(".vf-lesson-folded").first).to_have_text(answer)
            assert page.locator(".vf-lesson-folded").first.is_visible()
        seen.append(dict(field.split("=") for field in fragment(page).split("&")))
        assert (seen[-1]["lesson"], seen[-1]["step"]) == (url_state.SHORT, str(number))
        if number < len(lesson.steps):
            page.get_by_role("button", name=gettext("Next"), exact=True).click()
    query = {EXAMPLES[0]: "4", SENTENCE: "3"}[text]
    assert [place.get("page", "") for place in seen] == ["attention", "", "attention", ""]
    assert seen[0]["query"] == query
    assert seen[1]["zoom"].startswith(f"decoder.1.cross_attn.8.{query}.")
    assert seen[2]["view"] == "layer"
    page.get_by_role("button", name=gettext("Close"), exact=True).click()
    expect(page.locator(".vf-lesson")).to_be_hidden()


def test_a_step_in_the_address_turns_to_another_sentence(open_site, model):
    page = open_site(f"lesson={url_state.SHORT}&step=2")
    type_sentence(page, SENTENCE)
    wait_for_words(page, shown(model.trace(SENTENCE)))
    expect(page.locator(".vf-lesson-say")).to_contain_text("喜欢")
    expect(page.locator(".vf-say")).to_contain_text("reads “like”")
    page.go_back()
    expect(page.locator(".vf-lesson-say")).to_contain_text("东北")


def click_cell(page, row, column):
    canvas = page.locator(".vf-host[data-kind=attention] .vf-large")
    at = {
        name: float(number) for name, number in canvas.evaluate("canvas => ({ ...canvas.dataset })").items() if number
    }
    x, y = (at["left"] + (column + 0.5) * at["cellWidth"], at["top"] + (row + 0.5) * at["cellHeight"])
    canvas.click(position={"x": x, "y": y})
    page.wait_for_selector(READY)


def test_a_hidden_cell_changes_what_it_changes_in_python(open_site, model):
    page = open_site("page=attention&stack=cross&layer=1&head=8")
    root = page.locator(".vf-host[data-kind=attention] .vf-root")
    page.get_by_role("button", name="Change the mask: click a cell to hide it, again to show it").click()
    click_cell(page, 3, 3)
    expect(root).to_have_attribute("data-weight", "0")
    assert "masked=cross.1.4.4" in fragment(page)
    trace = model.trace(EXAMPLES[0], edits=[Block("decoder.0.cross_attn", query=3, key=3)])
    wait_for_words(page, shown(trace))
    root.locator(".vf-large").press("Shift+ArrowRight")
    expect(root).to_have_attribute("data-key", "4")
    weight = float(trace["decoder.0.cross_attn.pattern"].value[7, 3, 4])
    assert float(root.get_attribute("data-weight")) == pytest.approx(weight, rel=1e-3)
    root.locator(".vf-large").press("Enter")
    expect(page.locator(".vf-silenced")).to_have_count(2)
    click_cell(page, 3, 4)
    expect(page.locator(".vf-silenced")).to_have_text(["Cross-attention, layer 1: “东北” without “Northeastern” ×"])
    page.locator(".vf-silenced").click()
    wait_for_words(page, shown(model.trace(EXAMPLES[0])))
    assert "masked" not in fragment(page)


def test_only_what_the_model_may_read_can_be_hidden_and_only_in_its_sentence(open_site):
    page = open_site("page=attention&stack=decoder&layer=2&head=1&masked=decoder.2.3.2")
    chip = page.locator(".vf-silenced")
    page.get_by_role("button", name="Change the mask: click a cell to hide it, again to show it").click()
    click_cell(page, 1, 3)
    expect(chip).to_have_count(1)
    click_cell(page, 2, 1)
    expect(chip).to_have_count(0)
    click_cell(page, 3, 1)
    expect(chip).to_have_count(1)
    type_sentence(page, SENTENCE)
    wait_for_words(page, ["我", "喜欢", "猫", "。", "</s>"])
    expect(chip).to_have_count(0)


def test_a_hidden_cell_outside_of_the_translation_is_said_to_be_there(open_site):
    page = open_site("masked=cross.1.99.1")
    expect(page.locator(".vf-problem")).to_contain_text(_ERRORS["cell"])
    page.locator(".vf-silenced").click()
    expect(page.locator(".vf-problem")).to_be_hidden()


STATES = [
    url_state.State(lang="zh", text=SENTENCE),
    url_state.State(
        page="attention",
        text="他喜欢猫。",
        selection=Selection("decoder.self_attn", 1, 3, view="arcs", heads="1-3.0-2"),
    ),
    url_state.State(
        page="attention",
        selection=Selection("decoder.cross_attn", 2, 5, query=1, key=2, hiding=True, limit="weight-0.05"),
    ),
    url_state.State(text=SENTENCE, target="我讨厌猫。", selection=Selection(*start_of("en-zh"), view="layer")),
]


@pytest.mark.parametrize("state", STATES, ids=range(len(STATES)))
def test_a_link_of_the_app_opens_the_same_and_goes_back(open_site, address, state):
    from urllib.parse import parse_qsl, urlencode

    fields = {**state.fields(), **({"page": state.page} if state.page else {})}
    page = open_site(urlencode({"v": "2", **fields}))
    page.get_by_role("button", name=re.compile("^(Attention|注意力)$")).click()  # tells the address what it shows
    page.wait_for_selector(".vf-host[data-kind=attention] .vf-root[data-painted]")
    here = dict(parse_qsl(page.evaluate("location.hash.slice(1)")))
    back, remarks = url_state.read({name: value for name, value in here.items() if name != "page"})
    assert not remarks
    assert (back.lang, back.text, back.target, back.selection) == (
        state.lang,
        state.text,
        state.target,
        state.selection,
    )
    root = page.locator(".vf-host[data-kind=attention] .vf-root").evaluate("root => ({ ...root.dataset })")
    selection = state.selection
    assert (root["stack"], root["layer"], root["head"], root["view"]) == (
        selection.stack, str(selection.layer), str(selection.head), selection.view
    )  # fmt: skip


HOSTILE = [
    "stack=<img src=x onerror=alert(1)>&layer=99&head=0",
    "layer=1e3&view=constructor&zoom=decoder.9.ffn&silenced=cross.9.9",
    "lang=__proto__&page=../x&heads=1-1.1&cells=0-0&limit=weight-7&__proto__=1",
    "text=" + "%3Cscript%3Ealert(1)%3C/script%3E",
    "text=%ff%00&target=%20",
    "&&&=%&#=#",
    "lesson=attention-in-three-minutes&step=5&lesson=../x",
    "step=2",
    "masked=decoder.1.1.2",
    "masked=" + "_".join(["cross.1.1.1"] * 65),
]


@pytest.mark.parametrize("hostile", HOSTILE)
def test_a_hostile_address_opens_the_page_and_says_what_it_left_out(open_site, hostile):
    page = open_site(hostile)
    expect(page.locator(".vf-map[data-painted]")).to_be_visible()
    if "text=" not in hostile:
        expect(page.locator(".vf-notice")).to_contain_text("Ignored on opening:")


@pytest.mark.parametrize(("text", "code"), [("a" * 1001, "characters"), ("1" * 256, "tokens"), ("\ud800", "surrogate")])
def test_what_the_engine_refuses_is_a_sentence(open_site, text, code):
    page = open_site()
    page.locator(".vf-box").evaluate("(box, text) => { box.value = text }", text)
    page.locator(".vf-box").press("Enter")
    said = _ERRORS[code].partition("{")[0]
    expect(page.locator(".vf-problem")).to_contain_text(said)
    type_sentence(page, EXAMPLES[0])
    expect(page.locator(".vf-problem")).to_be_hidden()


@contextmanager
def opened(chromium, address, *, lang="en", script="", route=None):
    """A page whose console may complain."""
    context = chromium.new_context(locale={"en": "en-GB", "zh": "zh-CN"}[lang], service_workers="block")
    page = context.new_page()
    page.set_default_timeout(TIMEOUT)
    page.add_init_script(script)
    if route is not None:
        page.route("**/model.safetensors", route)
    page.goto(address)
    yield page
    context.close()


FAULTS = {
    "missing": ("network", lambda route: route.fulfill(status=404)),
    "no network": ("network", lambda route: route.abort()),
    "cut off": ("digest", lambda route: route.fulfill(body=b"<!doctype html>")),
}


@pytest.mark.parametrize(
    ("fault", "lang"),
    [
        ("missing", "en"),
        ("cut off", "zh"),
        *(pytest.param("no network", lang, marks=pytest.mark.full) for lang in ("en", "zh")),
    ],
)
def test_without_its_weights_the_page_shows_the_example_and_says_why(chromium, address, fault, lang):
    code, route = FAULTS[fault]
    gettext = translations(lang).gettext
    with opened(chromium, address, lang=lang, route=route) as page:
        expect(page.locator(".vf-problem")).to_contain_text(gettext(_ERRORS[code]).partition("{")[0])
        expect(page.locator(".vf-status")).to_have_text(gettext("Only the example can be shown."))
        page.get_by_role("button", name=gettext("Attention"), exact=True).click()
        page.wait_for_selector(".vf-host[data-kind=attention] .vf-root[data-painted]")
        page.unroute("**/model.safetensors")
        page.get_by_role("button", name=gettext("Try again")).click()
        page.wait_for_selector(READY)
        expect(page.locator(".vf-problem")).to_be_hidden()
        type_sentence(page, SENTENCE)
        wait_for_words(page, ["我", "喜欢", "猫", "。", "</s>"])


@pytest.mark.parametrize("worker", ["undefined", "class { constructor() { throw new Error('none') } }"])
def test_a_browser_without_workers_is_told_so(chromium, address, worker):
    with opened(chromium, address, script=f"window.Worker = {worker}") as page:
        expect(page.locator(".vf-problem")).to_contain_text(_ERRORS["worker"])
        expect(page.locator(".vf-map[data-painted]")).to_be_visible()


def test_after_the_first_visit_it_needs_no_network(chromium, address):
    context = chromium.new_context()
    page = context.new_page()
    page.goto(address)
    page.wait_for_selector(READY)
    page.evaluate("async () => { await navigator.serviceWorker.ready }")
    context.set_offline(True)
    page.goto(f"{address}index.html#text=I+like+cats.")
    page.wait_for_selector(READY)
    wait_for_words(page, ["我", "喜欢", "猫", "。", "</s>"])
    context.close()


def test_the_one_file_works_from_disk(visit, one_file):
    page = visit(one_file.as_uri(), own=one_file.as_uri())
    page.wait_for_selector(".vf-map[data-painted]")
    page.wait_for_selector(READY)
    type_sentence(page, SENTENCE)
    wait_for_words(page, ["我", "喜欢", "猫", "。", "</s>"])
    assert "text=" in fragment(page)


WINDOWS = {(1280, 720), (1024, 640), (390, 844), (320, 640)}


@pytest.mark.parametrize(
    ("lang", "scheme"),
    [
        ("en", "light"),
        ("zh", "dark"),
        *(pytest.param(*each, marks=pytest.mark.full) for each in (("en", "dark"), ("zh", "light"))),
    ],
)
def test_everybody_can_read_and_use_it(open_site, lang, scheme):
    assert TAGS
    page = open_site(
        f"lang={lang}&silenced=cross.1.1&masked=cross.1.4.4_cross.1.5.5&lesson={url_state.SHORT}", scheme=scheme
    )
    for width, height in sorted(WINDOWS):
        page.set_viewport_size({"width": width, "height": height})
        page.wait_for_function("document.documentElement.scrollWidth <= innerWidth")  # once it is painted for it
    for _ in range(2):
        assert not examined(page)
        page.get_by_role("button", name=translations(lang).gettext("Attention"), exact=True).click()
    page.locator(".vf-words button").first.click()
    page.wait_for_selector(".vf-others:popover-open")
    assert not examined(page)
