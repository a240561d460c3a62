"""Every number from outside has an upper bound where it enters: an absurd one never reaches a computation."""

from contextlib import suppress
from dataclasses import replace
from functools import cache

import numpy as np
import pytest

import visformer as vf
from tests.app.support import ignored
from tests.support import tiny_translator
from visformer.app.session import url_state
from visformer.errors import LinkError, NumberError, ShapeError
from visformer.export.drawables import drawable_of
from visformer.panel import one_by_one
from visformer.pictures.lab import examples
from visformer.pictures.registry.options import Number, PlaceOption, Several, Text, resolved
from visformer.pictures.registry.picture import is_figure, pages, pictures
from visformer.pictures.registry.setting import Source
from visformer.pictures.worked import compute
from visformer.system import limits
from visformer.web.panels import click_from, pack_panels
from visformer.web.selection import Selection

ABSURD = ["999999999", "1e9", "inf", "-999999999", "9" * 200, ".".join(["9999"] * 40)]
WIDEST = 512  # d_model of the largest untrained model


read_once = cache(Source().atlas)
FORMULA = Source(d_model=WIDEST, atlas=read_once)
"""What pictures of formulas are drawn from: no model is wider."""


@pytest.fixture(scope="module")
def source():
    return replace(vf.figures.source_of(tiny_translator(), "I went", "我 去"), atlas=read_once)


def test_an_absurd_number_in_a_link_or_lesson_leaves_an_option_at_its_default(source):
    of_text = ((page, declared) for page, declared in pages().items() if not declared.model)
    for page, picture in ((page, picture) for page, declared in of_text for picture in declared.pictures):
        default, names = picture.linked(page, source, {})
        names -= {f"{page}_{option.name}" for option in picture.options if isinstance(option, Text)}  # any text
        for absurd in ABSURD:
            read, _names = picture.linked(page, source, dict.fromkeys(names, absurd))
            assert dict(read) == dict(default), (picture.name, absurd)


def test_every_number_of_a_picture_has_an_upper_bound(source):
    for picture in (each for page in pages().values() if not page.model for each in page.pictures):
        setting = picture.setting(source, {})
        for option in picture.options:
            bounded = picture.name, option.name
            if isinstance(option, Number):
                assert resolved(option.most, setting) <= 1e6, bounded
            if isinstance(option, PlaceOption):
                assert len(option.among(setting) or ()) <= max(1024, WIDEST), bounded
            if isinstance(option, Several):
                assert option.count(setting) <= max(1024, WIDEST), bounded


def largest(picture, source):
    """Draw a picture with every number as large as a page offers."""
    values = {}
    for option in picture.options:
        setting = picture.setting(source, values)
        if isinstance(option, Number):
            values[option.name] = resolved(option.most, setting)
            values[option.name] = int(values[option.name]) if option.whole else values[option.name]
        elif isinstance(option, Several):
            values[option.name] = list(range(option.count(setting)))[-option.most :]
    return picture.make(source, values)


@pytest.mark.parametrize(
    "picture",
    [
        pytest.param(one, id=name, marks=pytest.mark.full if name == "learning" else ())  # it trains a model
        for name, one in pictures().items()
        if one.formula
    ],
)
def test_the_largest_picture_of_a_formula_can_be_exported_and_sent_as_one_message(picture):
    """Our longest message has 4 MB; 512 waves had 41, more than the server passes on, and took three seconds."""
    drawn = largest(picture, FORMULA)
    assert drawable_of(drawn).size <= limits.MAX_NUMBERS
    message = drawn.to_json() if is_figure(drawn) else pack_panels(drawn, gettext=str, lang="en")
    assert len(message) < 5_000_000


def test_a_page_shows_no_more_waves_than_it_has_colours_for(new_app):
    """Streamlit's box has "Select all"."""
    app = new_app(page="see/positions", positions_dimensions=".".join(map(str, range(limits.WAVES + 1))))
    assert not app.exception and "positions_dimensions" not in app.query_params
    [box] = app.multiselect
    for count, shown in ((limits.WAVES, True), (limits.WAVES + 1, False), (3, True)):
        box.set_value([*range(count)]).run()
        assert not app.exception
        assert any(f"{count} are selected; at most 16 can be shown" in text.value for text in app.text) != shown
        [box] = app.multiselect


@pytest.mark.parametrize("name", ["step", "layer", "head", "query", "key"])
@pytest.mark.parametrize("absurd", ABSURD)
def test_an_absurd_place_in_a_link_is_limited_to_the_trace_or_left_out(source, name, absurd):
    state, _ = url_state.read({name: absurd})
    assert len(state.step) <= 2
    place = state.selection.fitting(source.record(("*.pattern",)))[0]
    assert max(place.layer, place.head, place.query or 0, place.key or 0) < 10


@pytest.mark.parametrize("number", [10**9, 1e308, float("inf"), float("nan"), -(10**9)])
def test_an_absurd_place_in_a_message_of_a_component_is_limited_to_the_trace_or_refused(source, number):
    panel = one_by_one(pictures()["positions"].make(Source()))[0]
    assert click_from({"panel": panel.name, "row": number, "column": number}, [panel]) is None
    message = {"stack": "encoder.self_attn", "view": "heatmap", "layer": number, "head": number}
    selection = Selection.from_browser(message)
    trace = source.record(("*.pattern",))
    assert selection is None or (selection.within(trace).layer < 10 and selection.within(trace).head < 10)


@pytest.mark.parametrize("name", examples())
def test_the_results_of_the_lab_are_limited(name):
    """With the largest tables that the page passes on: LAB_ROWS rows, and a column more than in the example."""
    example = examples()[name]
    for changed, values in example.inputs.items():
        if values.size == 1:
            assert values <= limits.LAB_BASE
            with pytest.raises(NumberError):
                compute(example, {**example.inputs, changed: np.full((1, 1), 1e12)})
        elif values.ndim == 2:
            table = np.resize(values, (limits.LAB_ROWS, values.shape[1] + 1))
            with suppress(NumberError, ShapeError):
                results = compute(example, {**example.inputs, changed: table})
                assert sum(result.size for result in results.values()) < 50_000


def test_a_number_outside_the_range_of_a_box_leaves_it_at_its_default(new_app):
    """A message may contain any number; Streamlit compares it with the range of the box."""
    app = new_app(page="see/positions")
    [base] = [box for box in app.number_input if box.key == "positions_base"]
    base.set_value(1e300).run()
    assert not app.exception
    assert "positions_base" not in app.query_params


@pytest.mark.parametrize(
    ("page", "name", "link"),
    [("see/positions", "positions_n", {}), ("understand/decoding", "decoding_beams", {"decoding_view": "beams"})],
)
def test_a_number_out_of_range_in_a_link_is_reported(new_app, page, name, link):
    app = new_app(page=page, **link, **{name: "16000"})
    assert not app.exception
    assert name not in app.query_params
    (remark,) = ignored(app)
    assert remark.startswith(f"{name}=16000: expected a whole number from ")


def test_a_number_of_thousands_of_digits_in_a_link_is_refused():
    picture = pictures()["positions"]
    with pytest.raises(LinkError):
        picture.option("positions").read("9" * 4000, picture.setting(Source(), {}))
