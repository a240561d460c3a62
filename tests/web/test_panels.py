"""Panels packed for the browser, and the clicks that it sends back."""

import numpy as np
import pytest

from benchmarks.messages import read_message
from tests.web.support import made_up_trace
from visformer.errors import N_, TraceError
from visformer.panel import Labels, Panel, common_limit, numbered, traced
from visformer.web.panels import Click, click_from, pack_panels


def panel(values, **settings):
    values = np.asarray(values, dtype=np.float64)
    sides = {"rows": numbered(values.shape[0]), "columns": numbered(values.shape[1], N_("dimension"))}
    return Panel(**({"name": "q", "title": "Q", "values": values} | sides | settings))


def test_values_travel_exactly_with_their_labels():
    first, second = panel([[1.5, -2.0, np.nan]], outlined=np.array([[True, False, False]])), panel([[0.25]], name="k")
    header, numbers = read_message(pack_panels([first, second], gettext=lambda text: f"<{text}>"))
    one, two = header["panels"]
    assert np.array_equal(np.frombuffer(numbers, "<f4", 3, one["values"]), [1.5, -2.0, np.nan], equal_nan=True)
    assert np.frombuffer(numbers, "u1", 3, one["outlined"]).tolist() == [1, 0, 0]
    assert np.frombuffer(numbers, "<f4", 1, two["values"]).tolist() == [0.25]
    assert (one["limit"], two["limit"], two["outlined"]) == (2.0, 0.25, None)
    assert one["columns"]["texts"] == ["0", "1", "2"]
    assert (one["title"], one["columns"]["title"]) == ("Q", "<dimension>"), (
        "message ids are translated, symbols are not"
    )


def test_a_list_of_panels_is_a_column():
    first, second, third = (panel([[1.0, 2.0]], name=name) for name in "qkv")
    header, _ = read_message(pack_panels([first, [second, third]]))
    assert [shown["name"] for shown in header["panels"]] == ["q", "k", "v"]
    assert header["columns"] == [1, 2]
    assert click_from({"panel": "v", "row": 0, "column": 1}, [first, [second, third]]) == Click("v", 0, 1)


def test_the_revision_changes_with_the_content():
    revisions = {
        read_message(pack_panels([p]))[0]["revision"]
        for p in (panel([[1.0]]), panel([[2.0]]), panel([[1.0]], title="K"), panel([[1.0]], click="changes"))
    }
    assert len(revisions) == 4


@pytest.mark.parametrize("values", [[[1.0, 2.0]], [[1.0], [2.0]]])
def test_labels_must_fit(values):
    with pytest.raises(TraceError, match="Panel q"):
        panel(values, rows=numbered(1), columns=numbered(1))


def test_a_traced_panel_has_its_axes_labels():
    trace = made_up_trace()
    shown = traced(trace, "decoder.1.cross_attn.pattern", 2, title="A", scale="weight")
    assert np.array_equal(shown.values, trace["decoder.1.cross_attn.pattern"].value[2])
    assert shown.rows.texts == trace.tokens["tgt"]
    assert shown.rows.after == trace.tokens["next"]
    assert shown.columns.texts == trace.tokens["src"]
    assert (shown.name, shown.end) == ("pattern", 1.0)


@pytest.mark.parametrize(
    ("value", "click"),
    [
        ({"panel": "q", "row": 0, "column": 1}, Click("q", 0, 1)),
        ({"panel": "q", "row": 0.0, "column": None}, Click("q", 0, None)),
        ({"panel": "q", "row": None, "column": 2}, Click("q", None, 2)),
        ({"panel": "other", "row": 0, "column": 0}, None),
        ({"panel": "q", "row": 1, "column": 0}, None),
        ({"panel": "q", "row": -1, "column": 0}, None),
        ({"panel": "q", "row": "0", "column": 0}, None),
        ("<script>", None),
        (None, None),
    ],
)
def test_invalid_clicks_are_ignored(value, click):
    assert click_from(value, [panel([[1.0, 2.0, 3.0]])]) == click


def test_a_common_scale():
    assert common_limit([[1.0, -3.0]], [[2.0, np.nan]]) == 3.0
    assert common_limit([[0.0]]) == 1.0
    assert common_limit([[np.nan]]) == 1.0


def test_labels_are_numeric_only_if_all_are_numbers():
    assert numbered(3).numeric
    assert not Labels(("1", "x")).numeric
