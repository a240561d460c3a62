"""Panels packed for the browser, and the clicks that it sends back."""

import numpy as np
import pytest

from benchmarks.messages import read_message
from tests.web.support import made_up_trace
from visformer.errors import N_, TraceError
from visformer.panel import Labels, Panel, common_limit, numbered, predicting, traced
from visformer.web.panels import Click, click_from, pack_panels


def panel(values, **settings):
    values = np.asarray(values, dtype=np.float64)
    sides = {"rows": numbered(values.shape[0]), "columns": numbered(values.shape[1], N_("dimension"))}
    return Panel(**({"name": "q", "title": "Q", "values": values} | sides | settings))


def test_a_message_has_the_exact_values_and_labels_of_its_panels():
    panels = [panel([[1.5, -2.0, np.nan]], outlined=np.array([[True, False, False]])), panel([[0.25]], name="k")]
    header, numbers = read_message(pack_panels(panels, gettext=lambda text: f"<{text}>"))
    q, k = header["panels"]
    assert np.array_equal(np.frombuffer(numbers, "<f4", 3, q["values"]), [1.5, -2.0, np.nan], equal_nan=True)
    assert np.frombuffer(numbers, "u1", 3, q["outlined"]).tolist() == [1, 0, 0]
    assert np.frombuffer(numbers, "<f4", 1, k["values"]).tolist() == [0.25]
    assert (q["limit"], k["limit"], k["outlined"]) == (2.0, 0.25, None)
    assert q["columns"]["texts"] == ["0", "1", "2"]
    assert (q["title"], q["columns"]["title"]) == ("Q", "<dimension>"), "a symbol is not translated"


def test_a_list_of_panels_is_a_column():
    q, k, v = (panel([[1.0, 2.0]], name=name) for name in "qkv")
    header, _ = read_message(pack_panels([q, [k, v]]))
    assert [packed["name"] for packed in header["panels"]] == ["q", "k", "v"]
    assert header["columns"] == [1, 2]
    assert click_from({"panel": "v", "row": 0, "column": 1}, [q, [k, v]]) == Click("v", 0, 1)


def test_the_revision_changes_with_the_content():
    revisions = {
        read_message(pack_panels([p]))[0]["revision"]
        for p in (panel([[1.0]]), panel([[2.0]]), panel([[1.0]], title="K"), panel([[1.0]], click="changes"))
    }
    assert len(revisions) == 4


def test_a_panel_refuses_labels_that_do_not_fit_its_values():
    for values in ([[1.0, 2.0]], [[1.0], [2.0]]):
        with pytest.raises(TraceError, match="Panel q"):
            panel(values, rows=numbered(1), columns=numbered(1))


def test_the_panel_of_a_tensor_has_the_labels_of_its_axes():
    trace = made_up_trace()
    pattern = traced(trace, "decoder.1.cross_attn.pattern", 2, title="A", scale="weight")
    assert np.array_equal(pattern.values, trace["decoder.1.cross_attn.pattern"].value[2])
    assert pattern.rows.texts == trace.tokens["tgt"]
    assert not pattern.rows.after, "a row is named for its input"
    predicts = predicting(trace, pattern.rows)
    assert (predicts.texts, predicts.after) == (trace.tokens["tgt"], trace.tokens["next"])
    assert predicts.title != pattern.rows.title, "and says so where it is named for its prediction too"
    assert pattern.columns.texts == trace.tokens["src"]
    assert (pattern.name, pattern.end) == ("pattern", 1.0)


def test_invalid_clicks_are_ignored():
    for value, click in (
        ({"panel": "q", "row": 0, "column": 1}, Click("q", 0, 1)),
        ({"panel": "q", "row": 0.0, "column": None}, Click("q", 0, None)),
        ({"panel": "q", "row": None, "column": 2}, Click("q", None, 2)),
        ({"panel": "other", "row": 0, "column": 0}, None),
        ({"panel": "q", "row": 1, "column": 0}, None),
        ({"panel": "q", "row": -1, "column": 0}, None),
        ({"panel": "q", "row": "0", "column": 0}, None),
        ("<script>", None),
        (None, None),
    ):
        assert click_from(value, [panel([[1.0, 2.0, 3.0]])]) == click, value


def test_the_common_limit_is_the_largest_finite_value_or_1_and_labels_are_numeric_only_if_all_are_numbers():
    assert common_limit([[1.0, -3.0]], [[2.0, np.nan]]) == 3.0
    assert common_limit([[0.0]]) == common_limit([[np.nan]]) == 1.0
    assert numbered(3).numeric and not Labels(("1", "x")).numeric
