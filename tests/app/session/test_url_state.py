"""The state in a link or file: any input gives a state and remarks on the rest, and a state survives a round trip."""

import json
from dataclasses import replace
from urllib.parse import parse_qs, urlencode

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from tests.web.test_selection import selections
from visformer import i18n
from visformer.adapters.checkpoints import TRANSLATOR
from visformer.app.serving.models import MODEL
from visformer.app.session import url_state
from visformer.app.session.url_state import State
from visformer.model.untrained import Untrained
from visformer.system import limits
from visformer.web.selection import BEGINNING, Selection

texts = st.text(st.characters(codec="utf-8"), max_size=40).filter(lambda text: not text or text.strip())
choices = st.dictionaries(
    st.sampled_from(["masks_view", "positions_d", "decoding_top_p"]), st.from_regex(r"[a-z0-9.-]{1,9}", fullmatch=True)
)
states = st.builds(
    State,
    page=st.sampled_from(["", "masks", "head"]),
    lang=st.sampled_from(["", *i18n.languages()]),
    model=st.sampled_from(["", MODEL]),
    text=texts,
    target=texts,
    selection=selections,
    choices=choices,
)
values = st.text() | st.integers() | st.none() | st.lists(st.integers()) | st.dictionaries(st.text(), st.booleans())
names = st.text() | st.sampled_from(["layer", "heads", "limit", "text", "lang", "model", "page", "masks_view"])


@given(states)
@example(State())
@example(State(selection=Selection()))
@example(State(choices={"head_scales": "1.3.0"}))
@example(State(selection=Selection(), choices={"head_scales": "1.3.0"}))
def test_a_state_survives_the_round_trip_through_an_address(state):
    query = parse_qs(urlencode(state.fields()), keep_blank_values=True, max_num_fields=100)
    fields, duplicates = url_state.from_address(query)
    assert url_state.read(fields) == (replace(state, page=""), [])
    assert not duplicates


@given(states)
def test_a_state_survives_the_round_trip_through_a_file(state):
    fields, remarks = url_state.from_file(state.file().encode())
    assert url_state.read(fields) == (state, [])
    assert not remarks


START = url_state.start(TRANSLATOR)


@pytest.mark.parametrize(
    ("fields", "expected"),
    [
        ({}, START),
        ({"text": "I like cats.", "masks_view": "scores"}, START),
        ({"view": "pie"}, START),
        ({"layer": "1"}, Selection()),
        ({"view": "arcs"}, replace(START, view="arcs")),
        ({"view": "arcs", "query": "3"}, Selection(view="arcs", query=2)),
        ({"stack": "encoder"}, Selection()),
        ({"stack": "encoder", "view": "arcs"}, Selection(view="arcs")),
        ({"head_view": "silence", "head_scales": "1.3.0"}, Selection()),
        ({"model": "untrained-64x4-enc2-dec2-ff128"}, BEGINNING),
        ({"model": "untrained-64x4-enc2-dec2-ff128", "view": "arcs"}, replace(BEGINNING, view="arcs")),
    ],
    ids=str,
)
def test_a_link_without_a_selection_has_the_start_of_its_model(fields, expected):
    """A link with one leaves out what is in ``Selection()``: it shows the same head with later weights."""
    assert START.stack == "decoder.cross_attn"
    assert url_state.read(fields)[0].selection == expected


def test_a_link_leaves_out_the_start_alone():
    assert State(text="I like cats.").fields() == {"text": "I like cats."}
    assert State(selection=Selection()).fields() == {"stack": "encoder"}
    assert State(choices={"head_view": "joined"}).fields() == {**START.link(), "head_view": "joined"}


@given(st.binary() | st.dictionaries(names, values).map(lambda fields: json.dumps(fields).encode()))
@example(b"[" * 10_000)
@example(b"1" * 5_000)
@example(b'{"visformer_state": 2, "text": "\\ud83d", "\\ud83d": "x", "layer": 2, "layer": "\\u202e"}')
def test_any_file_gives_a_state_and_printable_remarks(content):
    for bytes_ in (content, content.replace(b"{", b'{"visformer_state": 2, ', 1)):
        fields, remarks = url_state.from_file(bytes_)
        assert_printable(*remarks, *url_state.read(fields)[1])


@given(st.dictionaries(names, st.lists(st.text(), min_size=1, max_size=3)))
def test_any_address_gives_a_state_and_remarks_on_the_rest(address):
    fields, duplicates = url_state.from_address(address)
    state, remarks = url_state.read(fields)
    assert_printable(*duplicates, *remarks)
    assert len(duplicates) == sum(len(each) - 1 for each in address.values()) + ("page" in address)
    reported = {remark.said for remark in remarks}
    for name, value in fields.items():
        is_default = url_state.read({"stack": "encoder", name: value}) == (
            State(selection=Selection()),
            [],
        )  # as layer=1
        assert is_default or name in state.fields() or f"{name}={value}" in reported


@pytest.mark.parametrize("any_model", ["", "1"])
def test_any_text_as_a_model_is_reported(any_model, monkeypatch):
    """Also one that the file system refuses: too long as a name or as a path, with bytes that no name has."""
    monkeypatch.setenv("VISFORMER_ANY_MODEL", any_model)
    for name in ("x" * 256, "语" * 86, "x/" * 3000, "x" * 256 + "@3", "a/" + "y" * 3000, "untrained-" + "9" * 5000):
        for field in (name, f"{name}\0", f"{name}\ud83d"):
            state, (remark,) = url_state.read({"model": field})
            assert state.model == ""
            assert_printable(remark)


def assert_printable(*remarks):
    for remark in remarks:
        for language in i18n.languages():
            line = remark.localized(i18n.translations(language).gettext)
            assert "\n" not in line
            line.encode()


@pytest.mark.parametrize(
    ("address", "expected"),
    [
        ({"masks view": "x"}, "masks view=x: no page has such an option."),
        ({"view": "\u202ea\nb"}, "view=·a·b: choose one of tokens, heatmap, arcs, layer."),
    ],
)
def test_a_remark_is_one_printable_line(address, expected):
    state, (remark,) = url_state.read(address)
    assert state == State()
    assert remark.localized(str) == expected


@pytest.mark.parametrize(
    ("content", "expected"),
    [
        (b"\x89PNG", "byte 1 of this file is not UTF-8."),
        (b'{\n"visformer_state": 2,\n}', "line 3 of this file is not valid JSON."),
        (b"{}", "this file is not a saved state: save one with “As a file”."),
        (b"[1]", "this file is not a saved state: save one with “As a file”."),
        (b'{"visformer_state": 3}', "this file is not of version 2."),
        (b'{"visformer_state": true}', "this file is not of version 2."),
        (b" " * 64_001, "this file has 64001 bytes; a state may have at most 64000."),
    ],
)
def test_a_file_without_a_state_is_reported(content, expected):
    fields, (remark,) = url_state.from_file(content)
    assert fields == {}
    assert str(remark.why) == expected


def test_a_value_in_a_file_that_is_not_text_is_reported():
    fields, (remark,) = url_state.from_file(b'{"visformer_state": 2, "head": "2", "layer": {"a": [1]}}')
    assert fields == {"head": "2"}
    assert remark.localized(str) == 'layer={"a": [1]}: expected a text in quotation marks here.'


@pytest.mark.parametrize("depth", [100, 400, 900, 2_000, 9_000])
def test_a_deeply_nested_value_is_reported(depth):
    content = b'{"visformer_state": 2, "head": "2", "layer": ' + b'{"a":' * depth + b"1" + b"}" * (depth + 1)
    fields, (remark,) = url_state.from_file(content, "a.json")
    assert (fields, str(remark.why)) in (
        ({"head": "2"}, "expected a text in quotation marks here."),
        ({}, "this file is not valid JSON."),
    )


def test_a_link_stays_under_4_kB():
    longest = State(text="好" * 420)
    assert longest.fits and len("https://visformer.example.org/decoding?" + urlencode(longest.fields())) < 4_000
    assert not State(text="好" * 430).fits
    largest = State(text="😀" * 1_000, target="😀" * 1_000)
    assert len(largest.file().encode()) < limits.STATE_BYTES


def test_a_link_may_name_an_untrained_model_without_its_sizes():
    assert url_state.read({"model": "untrained"})[0].model == Untrained().name
