"""Every number that comes from outside has an upper bound where it enters; an absurd one never reaches drawing."""

from contextlib import suppress

import numpy as np
import pytest

import visformer as vf
from tests.support import tiny_translator
from visformer.app.session import url_state
from visformer.errors import LinkError, ShapeError
from visformer.export.tables import size_of
from visformer.panel import one_by_one
from visformer.pictures.examples.worked import compute
from visformer.pictures.lab import examples
from visformer.pictures.registry.options import Number, Place, Several, resolved
from visformer.pictures.registry.picture import is_figure, pages, pictures
from visformer.pictures.registry.setting import Source
from visformer.system import limits
from visformer.web.panels import click_from, pack_panels
from visformer.web.selection import Selection

ABSURD = ["999999999", "1e9", "inf", "-999999999", "9" * 200, ".".join(["9999"] * 40)]
WIDEST = 512  # d_model of the largest untrained model


@pytest.fixture(scope="module")
def source():
    return vf.figures.source_of(tiny_translator(), "I went", "我 去")


@pytest.mark.parametrize(("page", "one"), [(p.name, one) for p in pages().values() for one in p.pictures])
@pytest.mark.parametrize("absurd", ABSURD)
def test_an_absurd_number_in_a_link_or_lesson_leaves_an_option_at_its_default(source, page, one, absurd):
    plain, names = one.linked(page, source, {})
    assert dict(one.linked(page, source, dict.fromkeys(names, absurd))[0]) == dict(plain)


@pytest.mark.parametrize("one", pictures().values(), ids=lambda one: one.name)
def test_every_number_of_a_picture_has_an_upper_bound(source, one):
    setting = one.setting(source, {})
    for option in one.options:
        if isinstance(option, Number):
            assert resolved(option.most, setting) <= 1e6
        if isinstance(option, Place | Several):
            assert option.count(setting) <= max(1024, WIDEST)


def dearest(one, source):
    """A formula's picture with every number as large as a page offers."""
    values = {}
    for option in one.options:
        setting = one.setting(source, values)
        if isinstance(option, Number):
            values[option.name] = resolved(option.most, setting)
            values[option.name] = int(values[option.name]) if option.whole else values[option.name]
        elif isinstance(option, Several):
            values[option.name] = list(range(option.count(setting)))[-option.most :]
    return one.make(source, values)


@pytest.mark.parametrize("one", [one for one in pictures().values() if one.formula], ids=lambda one: one.name)
def test_the_dearest_picture_of_a_formula_is_small_enough_to_be_exported(one):
    shown = dearest(one, Source(d_model=WIDEST))
    assert size_of("figure" if is_figure(shown) else "panels", shown) <= limits.MAX_NUMBERS


@pytest.mark.parametrize("one", [one for one in pictures().values() if one.formula], ids=lambda one: one.name)
def test_the_dearest_picture_of_a_formula_is_a_message_that_is_sent_at_once(one):
    """Our longest message has 4 MB; 512 waves had 41, more than the server passes on, and took three seconds."""
    shown = dearest(one, Source(d_model=WIDEST))
    message = shown.to_json() if is_figure(shown) else pack_panels(shown, gettext=str, lang="en")
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


def test_a_long_comparison_of_positions_needs_no_square_of_its_length(monkeypatch):
    """Drawn as a row for each of two heads; the whole bias would be (head, query, key)."""
    made = []
    bias = vf.formulas.alibi_bias
    monkeypatch.setattr(vf.formulas, "alibi_bias", lambda heads, n: made.append(heads * n * n) or bias(heads, n))
    dearest(pictures()["position-kinds"], Source(d_model=WIDEST))
    assert made and max(made) < 100


@pytest.mark.parametrize("name", ["step", "layer", "head", "query", "key"])
@pytest.mark.parametrize("absurd", ABSURD)
def test_an_absurd_place_in_a_link_fits_the_trace_or_is_left_out(source, name, absurd):
    state, _ = url_state.read({name: absurd})
    assert len(state.step) <= 2
    place = state.selection.fitting(source.record(("*.pattern",)))[0]
    assert max(place.layer, place.head, place.query or 0, place.key or 0) < 10


@pytest.mark.parametrize("number", [10**9, 1e308, float("inf"), float("nan"), -(10**9)])
def test_an_absurd_number_in_a_message_of_a_component_is_no_place(source, number):
    panel = one_by_one(pictures()["positions"].make(Source()))[0]
    assert click_from({"panel": panel.name, "row": number, "column": number}, [panel]) is None
    message = {"stack": "encoder.self_attn", "view": "heatmap", "layer": number, "head": number}
    chosen = Selection.from_browser(message)
    trace = source.record(("*.pattern",))
    assert chosen is None or (chosen.within(trace).layer < 10 and chosen.within(trace).head < 10)


@pytest.mark.parametrize("name", examples())
def test_the_lab_computes_no_more_than_its_tables_may_hold(name):
    """The largest table that the page passes on: as many rows as are computed, and one more column."""
    example = examples()[name]
    for changed, values in example.inputs.items():
        if values.size == 1:
            with pytest.raises(ShapeError):
                compute(example, {**example.inputs, changed: np.full((1, 1), 1e12)})
        elif values.ndim == 2:
            table = np.resize(values, (limits.LAB_ROWS, values.shape[1] + 1))
            with suppress(ShapeError):
                results = compute(example, {**example.inputs, changed: table})
                assert sum(result.size for result in results.values()) < 50_000
    for most in (values for values in example.inputs.values() if values.size == 1):
        assert most <= limits.LAB_BASE


def test_a_number_that_a_box_does_not_offer_leaves_it_at_its_default(new_app):
    """A message may hold any; Streamlit compares it with the box's own bounds."""
    app = new_app(page="see/positions")
    [base] = [box for box in app.number_input if box.key == "positions_base"]
    base.set_value(1e300).run()
    assert not app.exception
    assert "positions_base" not in app.query_params


@pytest.mark.parametrize("text", ["positions_n", "decoding_beams"])
def test_what_a_page_refuses_it_says(new_app, text):
    app = new_app(page="see/positions" if text == "positions_n" else "understand/decoding", **{text: "16000"})
    assert not app.exception
    assert text not in app.query_params


def test_a_link_cannot_be_read_as_an_endless_number():
    with pytest.raises(LinkError):
        pictures()["positions"].option("positions").read("9" * 4000, pictures()["positions"].setting(Source(), {}))
