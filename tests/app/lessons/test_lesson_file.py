"""The file of a lesson: every fault has its line, no content raises, and the claims of the shipped lesson hold."""

import re
import sys
import time
from contextlib import suppress
from dataclasses import replace
from functools import cache
from pathlib import Path

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import visformer as vf
from visformer import i18n
from visformer.app.lessons import lesson_file
from visformer.app.lessons.facts import FACTS, aimed, filled, needs
from visformer.app.lessons.facts import told as facts_told
from visformer.app.lessons.handout import trace_of
from visformer.app.session import url_state
from visformer.errors import LessonError
from visformer.pictures.examples import EXAMPLES
from visformer.system import limits


@cache
def model(name=""):
    return vf.load(name or "en-zh")


def traced(state, record):
    return trace_of(state, model, record)


def told(step, name, language="en", sentence=""):
    """Return a text of a step with the facts of its own sentence, or of another."""
    trace = traced(replace(step.state, text=sentence or step.state.text), needs(step.fields))
    return filled(step.text(name, language), step.facts(trace, sentence or step.sentence))


GOOD = """\
visformer_lesson: 1
title: {en: Names, zh: 名字}
steps:
  - title: One
    say: Look at this.
    link: {stack: cross, layer: 3, head: 3}
  - title: {en: Two, zh: 二}
    say: {en: And at this., zh: 再看这里。}
    try: Click.
    note: Wait.
    link: "https://example.org/demo/masks?masks_view=scores&masks_layer=2&lang=zh&lesson=x&step=2"
"""


def lesson_of(text):
    lesson, faults = lesson_file.read(text.encode())
    assert faults == ()
    return lesson


def faults_of(text, gettext=str):
    lesson, faults = lesson_file.read(text if isinstance(text, bytes) else text.encode())
    assert (lesson is None) == bool(faults)
    return [fault.localized(gettext) for fault in faults]


def test_a_lesson_has_steps_with_texts_and_the_state_of_a_page():
    lesson = lesson_of(GOOD)
    assert lesson.title_in("zh") == "名字"
    one, two = lesson.steps
    assert (one.text("title", "en"), one.text("title", "zh")) == ("One", "One"), "written without a language: for all"
    assert (one.text("try", "en"), two.text("note", "zh")) == ("", "Wait.")
    assert one.state == url_state.read({"page": "attention", "stack": "cross", "layer": "3", "head": "3"})[0]
    assert (two.state.page, two.state.choices) == ("masks", {"masks_view": "scores", "masks_layer": "2"})
    assert (two.state.lang, two.state.lesson, two.state.step) == ("", "", ""), "these do not belong to a step"


def test_a_step_has_hints_an_answer_and_lines_of_our_own_code():
    code = "code: {file: attention.py, line: softmax(dim}"
    more = f"hints: [{{en: A, zh: 甲}}, B]\n    answer: C\n    {code}\n    beside: mini-gpt"
    _, step = lesson_of(with_note(more)).steps
    assert (step.hints_in("zh"), step.answer_in("zh"), step.beside) == (["甲", "B"], "C", "mini-gpt")
    attention = (Path(vf.__file__).parent / "model" / "attention.py").read_text(encoding="utf-8").splitlines()
    assert step.code.file == "visformer/model/attention.py"
    assert len(step.code.numbers) == 2
    assert step.code.text.splitlines() == [attention[number - 1].strip() for number in step.code.numbers]
    assert all("softmax(dim=-1)" in line for line in step.code.text.splitlines())


def test_the_first_lesson_in_the_guide_has_no_faults():
    for page in ("docs/lessons.md", "docs/lessons.zh-CN.md"):
        text = (Path(__file__).parents[3] / page).read_text(encoding="utf-8")
        content = re.search(r"```yaml\n(.*?)```", text, re.DOTALL)[1]
        assert lesson_file.check_against_model(lesson_of(content), traced) == [], page
        assert lesson_file.pack(content.encode()), page


def replaced(old, new):
    assert GOOD.count(old) == 1
    return GOOD.replace(old, new)


def with_note(line):
    return replaced("note: Wait.", line)


TITLE, SAY, LINK = "title: {en: Names, zh: 名字}", "    say: Look at this.", "head: 3}"
FAULTS = [
    ("", "line 1: this file is empty."),
    ("just words", "line 1: expected lines of the form name: value here."),
    ("just words", "line 1: a lesson begins with"),
    (replaced("visformer_lesson: 1\n", ""), "line 1: a lesson begins with the line “visformer_lesson: 1”."),
    (replaced("visformer_lesson: 1", "visformer_lesson: 2"), "line 1: a lesson begins with"),
    (replaced(f"{TITLE}\n", ""), "line 1: “title” is missing."),
    (replaced(TITLE, "title: {fr: Noms}"), "line 2: fr: there is no such name here"),
    (replaced("    try: Click.", "    tried: Click."), "line 9: tried: there is no such name here: choose one of"),
    (replaced(f"{SAY}\n", ""), "line 4: “say” is missing."),
    (replaced(SAY, "    say:"), "line 5: say: expected a text here."),
    (replaced(SAY, "    say: [a, b]"), "line 5: say: expected lines of the form"),
    (replaced("Look at this.", "x" * 501), "line 5: say: this text has 501 characters; at most 500"),
    (replaced(SAY, "    say: Try: this"), "line 5: a text that contains a colon and a space"),
    (replaced(SAY, "\tsay: Look"), "line 5: indent lines with spaces"),
    (replaced("layer: 3,", "layer: third,"), "line 6: layer: third: expected a whole number of at least 1."),
    (replaced(LINK, "head: 3, colour: red}"), "line 6: colour: red: this page has no option with this name."),
    (replaced(LINK, "head: [3]}"), "line 6: head: expected a text here."),
    (replaced(LINK, "page: attic}"), "line 6: page: attic: there is no page with this name: choose one of"),
    (replaced(LINK, "model: /etc}"), "line 6: model: /etc: The model '/etc' is not offered here"),
    (replaced("demo/masks?", "demo/embedding?"), "line 11: masks_view: scores: this page has no option"),
    (replaced("masks_layer=2&", "masks_layer=2&masks_layer=3&"), "line 11: masks_layer=2: it appears more"),
    (replaced("https://example", "https://[example"), "line 11: https://[example"),
    (with_note("try: Again."), "line 10: try: it appears more than once."),
    (with_note("note: &wait Wait."), "line 10: anchors and aliases (& and *) are not supported here"),
    (with_note("note: !!python/object:os.system x"), "line 10: tag:yaml.org,2002:python/object"),
    (with_note("check: {query: 1, key: 1, at_least: 2}"), "line 10: at_least: 2: expected a share from"),
    (with_note("check: {key: 1}"), "line 10: check: “query, key” is missing."),
    (with_note("check: {query: 1, key: 0}"), "line 10: key: 0: expected a whole number of at least 1"),
    (with_note("hints: [A, B, C, D, E, F]"), "line 10: hints: there are 6 hints; a step may have at most 5."),
    (with_note("hints: [{en: A}, {}]"), "line 10: hints: expected a text here."),
    (with_note("code: {file: ../errors.py, line: class}"), "line 10: ../errors.py, class: there is no such file in"),
    (with_note("code: {file: masks.py, line: trill}"), "line 10: masks.py, trill: no line of"),
    (with_note("code: masks.py"), "line 10: code: expected lines of the form"),
    (with_note("beside: broken-9"), "line 10: beside: broken-9: There is no model 'broken-9'"),
    (with_note("note: 'Wait."), "line 12: this is not valid YAML"),
    (GOOD + "---\na: b\n", "line 13: a second lesson begins here; a file holds only one."),
    (with_note("note: Wait\x07."), "line 10: there is an unprintable character here."),
    (GOOD.encode() + b"\xff", f"line 12: byte {len(GOOD.encode()) + 1} of this file is not UTF-8."),
    (GOOD.partition("steps:")[0] + "steps: none\n", "line 3: steps: a list is needed here"),
    (GOOD + "  - {title: A, say: B}\n" * 39, "line 3: steps: there are 41 steps; a lesson may have at most 40."),
    ("[" * 5000, "line 1: nested too deeply: at most 6 levels."),
    ("? [a]\n: b\n", "line 1: a name is needed before the colon."),
    (b"a" * (limits.LESSON_BYTES + 1), "line 1: this file has 40001 bytes; a lesson may have at most 40000."),
]


def test_each_fault_is_reported_with_its_line():
    for text, expected in FAULTS:
        found = faults_of(text)
        assert any(line.startswith(expected) for line in found), (expected, found)
        chinese = faults_of(text, i18n.translations("zh").gettext)
        assert all(re.match(r"第 \d+ 行: ", line) for line in chinese), (expected, chinese)


def test_all_faults_are_reported_at_once():
    text = replaced("layer: 3,", "layer: x,").replace("    try: Click.", "    tries: Click.")
    assert [line.split(":")[0] for line in faults_of(text)] == ["line 6", "line 9"]


PIECES = [*GOOD.splitlines(), "- ", "  ", "? ", ": ", *"{}[]\"'%\t", "&a ", "*a", "!!x ", "|\n", ">-\n"]


@settings(max_examples=300, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(
    st.one_of(
        st.binary(max_size=300), st.lists(st.sampled_from(PIECES), max_size=40).map(lambda p: "\n".join(p).encode())
    )
)
def test_any_bytes_are_a_lesson_or_faults(content):
    lesson, faults = lesson_file.read(content)
    assert (lesson is None) == bool(faults)
    lines = content.count(b"\n") + content.count(b"\r") + content.decode("latin-1").count("\x85") + 2
    for fault in faults:
        assert 1 <= fault.line <= lines + content.count(b"\xe2\x80")
        assert "\n" not in fault.localized(str)


def calls_to_read(content):
    """Return the number of functions that are called."""
    calls = []
    sys.setprofile(lambda frame, event, about: calls.append(event))
    try:
        lesson_file.read(content)
    finally:
        sys.setprofile(None)
    return len(calls)


@pytest.mark.full
def test_what_reading_takes_grows_no_faster_than_the_file():
    lesson_file.read(GOOD.encode())  # imports what is needed
    repeated = ["- a\n", "a: b\n", "{a: b, ", "a\n", "? ", "- ", "'", "#", "\n"]
    for start, again in [*(("", text) for text in repeated), ("[a, ", "b, "), ('"', "\\x41")]:
        small, large, largest = (
            (start + again * ((size - len(start)) // len(again))).encode() for size in (500, 2_000, limits.LESSON_BYTES)
        )
        assert calls_to_read(large) < 5 * calls_to_read(small), again
        before = time.thread_time()
        lesson_file.read(largest)
        assert time.thread_time() - before < 20, again  # less than a second, unless something backtracks


# A lesson in a link --------------------------------------------------------------------------------------------------


def test_a_short_lesson_is_packed_into_its_name():
    name = lesson_file.pack(GOOD.encode())
    assert name.startswith("z")
    assert len(name) < limits.LESSON_LINK
    assert url_state.read({"lesson": name, "step": "2"})[1] == []
    assert lesson_file.load(name) == lesson_of(GOOD)


def test_a_long_lesson_is_not_packed():
    noise = np.random.default_rng(0).integers(0x4E00, 0x9FFF, 3000)
    assert lesson_file.pack("".join(map(chr, noise)).encode()) == ""


def test_an_invalid_name_is_an_error():
    for name in ("z", "zAAAA", "z" + "A" * 100, "no-such-lesson", "../../etc/passwd", "own", ""):
        with pytest.raises(LessonError):
            lesson_file.load(name)


def test_a_name_that_unpacks_to_more_than_a_lesson_is_refused():
    name = lesson_file.pack(b"a" * 1_000_000)
    with pytest.raises(LessonError, match="damaged"):
        lesson_file.load(name)


@settings(max_examples=100, deadline=None)
@given(st.text("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-_", max_size=200))
def test_any_name_is_a_lesson_or_an_error(text):
    with suppress(vf.errors.VisformerError):
        lesson_file.load("z" + text)


def test_a_page_reads_no_file_for_a_shipped_lesson(monkeypatch):
    """While others compute, each access to a file waits for its turn: pages ask for lessons a dozen times."""
    lesson_file.load(url_state.SHIPPED)
    read = []
    monkeypatch.setattr(Path, "open", lambda path, *_, **named: read.append(path))
    monkeypatch.setattr(Path, "stat", lambda path, **named: read.append(path))
    assert lesson_file.load(url_state.SHIPPED).steps and not read


def test_the_operators_lesson_replaces_a_shipped_one(tmp_path, monkeypatch):
    (tmp_path / f"{url_state.SHORT}.yaml").write_text(GOOD, encoding="utf-8")
    assert lesson_file.content(url_state.SHORT) != GOOD.encode()
    monkeypatch.setenv("VISFORMER_LESSONS", str(tmp_path))
    assert lesson_file.content(url_state.SHORT) == GOOD.encode()


def test_lessons_in_the_operators_folder_are_offered(tmp_path):
    (tmp_path / "my-own.yaml").write_text(GOOD, encoding="utf-8")
    (tmp_path / "Not A Name.yaml").write_text(GOOD, encoding="utf-8")
    assert [*lesson_file.offered({"VISFORMER_LESSONS": str(tmp_path)})] == [
        url_state.OBJECTS,
        url_state.SHORT,
        url_state.FAULTS,
        url_state.SHIPPED,
        "my-own",
    ]


# The text of the shipped lesson --------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def shipped():
    return lesson_of(lesson_file.offered({})[url_state.SHIPPED].read_text(encoding="utf-8"))


@pytest.fixture(scope="module")
def trace():
    return model().trace(EXAMPLES[0], record=("*",))


def texts_of(lesson):
    """Return every text of a lesson, by language."""
    steps = (text for step in lesson.steps for text in (*step.texts.values(), *step.hints))
    return [lesson.title, lesson.learnt, *steps]


def test_the_shipped_lessons_have_all_texts_in_both_languages():
    for name in lesson_file.offered({}):
        lesson = lesson_file.load(name)
        for step in lesson.steps:
            assert {*step.texts} == {"title", "say", "try", "note", "answer"}, name
        for text in texts_of(lesson):
            assert {*text} == {*i18n.languages()}, name
            assert re.search("[一-鿿]", text["zh"]), name


def test_the_shipped_lessons_speak_of_no_place_that_a_phone_or_a_file_does_not_have():
    """What is beside something on a wide screen is below it on a phone."""
    elsewhere = re.compile(r"(?i)\bon the (left|right)\b|\bbelow the picture\b|[左右]边(的小图|是一个)|图的下方")
    for name in lesson_file.offered({}):
        texts = texts_of(lesson_file.load(name))
        assert not [text for text in texts if any(map(elsewhere.search, text.values()))], name


def test_the_shipped_lesson_makes_many_claims(shipped):
    """tests/cli/test_lesson.py tests that they hold."""
    assert sum(len(step.claims) for step in shipped.steps) >= 9


def test_the_short_lesson_depends_on_no_weights():
    """It says of numbers only that they sum to 1, and names no head; the others are those of the sentence shown."""
    short = lesson_file.load(url_state.SHORT)
    assert len(short.steps) == 4
    for text in texts_of(short):
        assert not re.search("[02-9]", "".join(text.values()))


def test_a_claim_that_does_not_hold_is_reported_with_its_line():
    text = GOOD + "    check: [{stack: cross, layer: 3, head: 3, query: 3, key: 4}, {query: 2, key: 1, at_least: 1}]\n"
    lesson = lesson_of(text.replace("layer: 3, head: 3}", "layer: 9, head: 3}"))
    one, two = lesson_file.check_against_model(lesson, traced)
    assert one.localized(str) == "line 6: layer: 9: the layers of this attention are 1–3."
    assert two.localized(str).startswith("line 12: check: this query gives key 1 the weight 0.")


def said(shipped, number, name="say"):
    """Return the text of a step, from 1, in English and in Chinese."""
    return [told(shipped.steps[number - 1], name, language) for language in i18n.languages()]


def test_the_numbers_in_the_text_of_the_shipped_lesson_are_those_of_the_model(shipped, trace):
    info = model().info
    assert (info.d_model, info.n_heads, info.d_model // info.n_heads, len(model().text)) == (256, 8, 32, 11_000)
    assert trace["encoder.0.ffn.hidden"].shape[-1] == 1024
    assert all("256" in text and "√256 = 16" in text for text in said(shipped, 3))
    assert all("8 × 32" in text for text in said(shipped, 7))
    assert len(trace.tokens["src"]) == 7 and all("7" in text for number in (1, 2, 11) for text in said(shipped, number))
    row = trace["encoder.0.self_attn.pattern"].value[6, 3]
    words = ("Northeastern", "University", f"{row[4]:.2f}")
    assert all(word in text for number in (4, 5) for text in said(shipped, number) for word in words)
    products = trace["encoder.0.self_attn.q"].value[6, 3] @ trace["encoder.0.self_attn.k"].value[6].T
    undivided = np.exp(products - products.max()) / np.exp(products - products.max()).sum()
    assert all(f"{undivided[4]:.2f}" in text and "√32" in text for text in said(shipped, 6))
    lengths = [
        np.linalg.norm(trace[f"encoder.0.{name}"].value[3]) for name in ("resid_pre", "self_attn.out", "resid_self")
    ]
    assert all(f"{length:.2f}" in text for length in lengths for text in said(shipped, 8))
    zeros = (trace["encoder.0.ffn.hidden"].value[3] <= 0).mean()
    assert all(f"{zeros:.3f}" in text for text in said(shipped, 9))
    assert all("大学" in text and "5" in text for text in said(shipped, 10)), (
        "the fifth row reads itself and those before"
    )
    cross = trace["decoder.0.cross_attn.pattern"].value[7]
    assert all("东北" in text and f"{cross[3, 3]:.2f}" in text for text in said(shipped, 11))
    steps = model().translate(EXAMPLES[0]).steps
    assert all(
        steps[0].chosen.token in text and f"{steps[0].chosen.probability:.3f}" in text for text in said(shipped, 12)
    )
    least = min(range(len(steps)), key=lambda i: steps[i].chosen.probability)
    answers = said(shipped, 12, "answer")
    assert all(f"{steps[least].chosen.probability:.3f}" in text and str(least + 1) in text for text in answers)
    assert all(steps[least].candidates[1].token in text for text in answers)
    assert all(model().translate(EXAMPLES[0]).text in text for text in said(shipped, 1, "answer"))


@pytest.mark.parametrize("text", [EXAMPLES[0], "I like cats.", "他昨天去了北京。"])
def test_what_the_shipped_lesson_says_of_any_sentence_holds_for_some(text):
    trace = model().trace(text, record=("*",))
    lengths = np.linalg.norm(
        [trace[f"encoder.{i}.{n}"].value for i in range(3) for n in ("self_attn.out", "ffn.out")], axis=-1
    )
    assert lengths[:, -1].argmax() == 3, "in the row of </s>, |ffn 2| is the longest that is added"
    after = np.linalg.norm(trace["encoder.1.resid_post"].value, axis=-1)
    assert after[-1] < after[:-1].min()
    assert trace["decoder.0.cross_attn.pattern"].value[7, 0].argmax() == len(trace.tokens["src"]) - 1
    assert trace["decoder.0.self_attn.mask"].value[0, 0].sum() == 1


def test_facts_of_another_sentence_are_of_the_word_that_reads_another_most(shipped):
    trace = model().trace("I like cats.", record=("*",))
    place = aimed(shipped.steps[3].state.selection, trace, keeps_row=False)
    pattern = trace["encoder.0.self_attn.pattern"].value[6]
    best = max(
        (pattern[i, j], i, j) for i in range(3) for j in range(3) if i != j and pattern[i].argmax() == j
    )  # </s> and the full stop are no words
    assert (place.query, place.key) == best[1:]
    facts = facts_told(FACTS, trace, shipped.steps[3].state.selection, keeps_row=False)
    words = ("I", "like", "cats")
    assert (facts["query"], facts["key"], facts["weight"]) == (words[best[1]], words[best[2]], f"{best[0]:.2f}")
    assert facts["translation"] == model().translate("I like cats.").text


def test_a_field_that_no_fact_has_the_name_of_is_reported_with_its_line_and_left_as_it_is():
    lesson = lesson_of(replaced("Look at this.", "'{query} and {querry}'"))
    (fault,) = lesson_file.check_against_model(lesson, traced)
    assert fault.localized(str).startswith("line 5: {querry}: there is no fact of this name: choose one of tokens,")
    assert told(lesson.steps[0], "say").endswith(" and {querry}")


def test_a_fact_that_a_model_lacks_is_reported():
    lesson = lesson_of(
        replaced("Look at this.", "'{tokens}'").replace("stack: cross, layer: 3, head: 3", "model: mini-gpt")
    )
    (fault,) = lesson_file.check_against_model(lesson, traced)
    assert fault.localized(str).startswith("line 5: {tokens}: this model does not have it for this sentence")


def test_a_step_with_a_cell_shows_any_sentence_if_its_texts_have_fields():
    cell = GOOD.replace("head: 3}", "head: 3, query: 3, key: 4}")
    assert not lesson_of(cell).steps[0].fits_any
    assert lesson_of(cell.replace("Look at this.", "'{weight}'")).steps[0].fits_any
    assert (
        not lesson_of(cell.replace("Look at this.", "'{weight}'").replace("{stack:", "{text: A b., stack:"))
        .steps[0]
        .fits_any
    )


def test_the_lesson_on_faults_asks_for_one_model_after_the_other_with_three_hints_and_a_line_of_code():
    steps = lesson_file.load(url_state.FAULTS).steps
    assert [step.state.model for step in steps] == [f"broken-{n}" for n in range(1, 9)]
    for step in steps:
        assert len(step.hints) == 3
        assert step.texts["answer"] and step.code and step.beside
