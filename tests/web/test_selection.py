"""The explorer's selection: from the browser, into a link and back, and within a Trace."""

import string
from dataclasses import replace

from hypothesis import example, given
from hypothesis import strategies as st

from tests.web.support import made_up_trace, with_gaps
from visformer.trace.stacks import STACKS
from visformer.web.selection import COMBINED, ROWS, VIEWS, Selection

places = st.integers(0, 99_998)
heads = st.builds("{}-{}".format, st.integers(0, 998), st.integers(0, 998))
selections = st.builds(
    Selection,
    stack=st.sampled_from([stack.name for stack in STACKS]),
    layer=places,
    head=places,
    view=st.sampled_from([*VIEWS]),
    query=st.none() | places,
    key=st.none() | places,
    combine=st.sampled_from(COMBINED),
    order=st.sampled_from(["place", "similarity", "entropy", "same_token"]),
    limit=st.sampled_from(["", "weight-0.05", "mass-0.9", "mass-1"]),
    merging=st.booleans(),
    hiding=st.booleans(),
    renormalising=st.booleans(),
    without=st.lists(st.sampled_from(["system", "user", "template"]), unique=True).map(".".join),
    rows=st.sampled_from(ROWS),
    heads=st.lists(heads, max_size=12).map(".".join),
    cells=st.lists(heads, max_size=7).map(".".join),
)


@given(selections)
@example(Selection())
def test_a_link_restores_the_selection(chosen):
    link = chosen.link()
    assert all(set(value) <= set(string.ascii_lowercase + string.digits + "_-.") for value in link.values())
    assert Selection.from_link(link) == (chosen, {})


@given(selections)
def test_the_browser_can_send_back_what_it_was_sent(chosen):
    assert Selection.from_browser(chosen.start()) == chosen


def test_a_link_counts_from_one_and_leaves_out_defaults():
    assert Selection().link() == {}
    chosen = Selection("decoder.cross_attn", 2, 5, "arcs", 0, 3)
    expected = {"stack": "cross", "layer": "3", "head": "6", "view": "arcs", "query": "1", "key": "4"}
    assert chosen.link() == expected
    assert Selection(query=0).link() == {"query": "1"}


def test_invalid_fields_of_a_link_are_ignored_and_reported():
    for link in (
        {},
        {"stack": "decoder.self_attn", "view": "Arcs"},
        {"layer": "0", "head": "-1", "query": "1.5", "key": ""},
        {"layer": "٣", "head": "²", "query": " 2", "key": "999999"},
        {"layer": "<script>", "head": "1e3", "query": "None", "key": "0x10"},
        {"combine": "sum", "order": "<b>", "limit": "mass-2", "merging": "yes", "heads": "1-2.x"},
        {"heads": "0-1", "limit": "mass-1.5", "order": ""},
        {"cells": "1-0"},
        {"cells": "1-2-3", "heads": "٣-1", "limit": "weight-0.٥"},
    ):
        chosen, wrong = Selection.from_link(link)
        assert (chosen, set(wrong)) == (Selection(), set(link)), link


def test_the_valid_fields_of_a_link_are_used():
    chosen, wrong = Selection.from_link({"stack": "cross", "layer": "x", "head": "2", "lang": "zh", "merging": "0"})
    assert chosen == Selection("decoder.cross_attn", head=1)
    assert {name: str(error) for name, error in wrong.items()} == {"layer": "expected a whole number of at least 1."}


@given(st.dictionaries(st.sampled_from(["stack", "layer", "head", "view", "query", "key"]), st.text()))
def test_any_link_gives_a_valid_selection(link):
    chosen, _wrong = Selection.from_link(link)
    assert Selection.from_browser(chosen.start()) == chosen


VALID = Selection("decoder.cross_attn", 1, 2, "tokens", 3, None).start()


def test_an_invalid_selection_from_the_browser_is_refused():
    assert Selection.from_browser(VALID) is not None
    for change in (
        {"stack": "cross"},
        {"stack": None},
        {"stack": ["decoder.cross_attn"]},
        {"view": "pie"},
        {"view": {}},
        {"layer": None},
        {"layer": -1},
        {"layer": True},
        {"head": "2"},
        {"head": 10**5},
    ):
        assert Selection.from_browser({**VALID, **change}) is None, change


def test_an_invalid_cell_is_dropped():
    for query in (-1, "3", True, [], 10**9):
        assert Selection.from_browser({**VALID, "query": query}).query is None, query


json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(),
    lambda inner: st.lists(inner) | st.dictionaries(st.text() | st.sampled_from([*VALID]), inner),
)


@given(json_values)
def test_nothing_that_a_browser_sends_is_an_error(value):
    Selection.from_browser(value)
    if isinstance(value, dict):
        Selection.from_browser({**VALID, **value})


def only(trace, part):
    """Return the Trace without the tensors of its other part: of an encoder or of a decoder."""
    return replace(trace, tensors={name: trace[name] for name in trace if name.startswith(part)})


def test_a_selection_is_clipped_to_the_trace():
    trace = made_up_trace(n_layers=4, n_decoder_layers=2, n_heads=3)
    beyond = Selection("encoder.self_attn", 9, 9, "arcs", 1, 2)
    assert beyond.within(trace) == Selection("encoder.self_attn", 3, 2, "arcs", 1, 2)
    cross = Selection("decoder.cross_attn", 3, 1)
    assert cross.within(trace) == Selection("decoder.cross_attn", 1, 1)
    assert cross.within(only(trace, "encoder")) == Selection("encoder.self_attn", 3, 1)


def test_fields_that_do_not_fit_the_trace_are_reset_to_their_defaults():
    trace = made_up_trace(n_layers=4, n_decoder_layers=2, n_heads=3)
    n_queries, n_keys = trace.layers("decoder.cross_attn")[0].value.shape[1:]
    selection = Selection("decoder.cross_attn", 2, 3, "arcs", n_queries, n_keys - 1, order="beauty", heads="1-2.2-0")
    selection = replace(selection, cells=f"0-{n_keys - 1}.{n_queries - 1}-{n_keys}")
    fitting, wrong = selection.fitting(trace)
    assert fitting == Selection("decoder.cross_attn", 0, 0, "arcs", None, n_keys - 1)
    assert {name: str(error) for name, error in wrong.items() if name != "order"} == {
        "layer": "the layers of this attention are 1–2.",
        "head": "the heads of a layer are 1 to 3.",
        "query": f"the query tokens here are 1 to {n_queries}.",
        "heads": "the layers of this attention are 1–2, the heads of each 1 to 3.",
        "cells": f"the query tokens here are 1 to {n_queries}, the key tokens 1 to {n_keys}.",
    }
    assert "entropy" in str(wrong["order"])
    assert fitting.fitting(trace) == (fitting, {})


def test_layers_of_a_hybrid_model_keep_their_numbers():
    trace = with_gaps(made_up_trace(n_layers=3))  # the layers 1, 3 and 5
    assert [Selection(layer=layer).within(trace).layer for layer in range(8)] == [1, 1, 1, 3, 3, 5, 5, 5]
    assert Selection().fitting(trace) == (Selection(layer=1), {})
    assert Selection(layer=3, heads="3-1.5-0").fitting(trace) == (Selection(layer=3, heads="3-1.5-0"), {})
    fitting, wrong = Selection(layer=4, heads="2-0.5-1").fitting(trace)
    assert fitting == Selection(layer=1)
    assert {name: str(error) for name, error in wrong.items()} == {
        "layer": "the layers of this attention are 2, 4, 6.",
        "heads": "the layers of this attention are 2, 4, 6, the heads of each 1 to 3.",
    }


def test_a_stack_that_the_model_lacks_is_replaced_and_reported_unless_it_is_the_default():
    trace = made_up_trace()
    fitting, wrong = Selection("decoder.cross_attn", 0, 1).fitting(only(trace, "encoder"))
    assert fitting == Selection("encoder.self_attn", 0, 1)
    assert list(wrong) == ["stack"]
    assert Selection().fitting(only(trace, "decoder")) == (Selection("decoder.self_attn"), {})
