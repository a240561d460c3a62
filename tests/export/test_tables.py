"""Tensors and panels as CSV and JSON: numbers are exact, and no text becomes a spreadsheet formula."""

import csv
import io
import json
from dataclasses import replace

import numpy as np
import pandas as pd
import pytest

from tests.support import tiny_translator
from tests.web.support import made_up_trace
from visformer.errors import N_, BudgetError, MissingTensor, TraceError
from visformer.export import panels_csv, to_csv, to_json
from visformer.export.tables import harmless
from visformer.i18n import translations
from visformer.panel import Labels, Panel
from visformer.system import limits


def test_csv_has_every_value_exactly_and_labels():
    trace = made_up_trace()
    table = pd.read_csv(io.StringIO(to_csv(trace).removeprefix("\ufeff")), dtype={"value": np.float32})
    assert list(table) == ["tensor", "head", "query", "query_token", "key", "key_token", "value"]
    for name in trace:
        part = table[table.tensor == name]
        np.testing.assert_array_equal(part.value.to_numpy().reshape(trace[name].shape), trace[name].value)
    row = table[(table.tensor == "decoder.1.cross_attn.pattern") & (table["head"] == 2) & (table["query"] == 1)].iloc[3]
    assert (row.query_token, row.key_token) == ("b0", "a3")
    assert row.value == trace["decoder.1.cross_attn.pattern"].value[2, 1, 3]


FORMULAS = {
    **{text: f"'{text}" for text in ("=1+1", "+cmd|' /C calc'!A0", "-2", "@SUM(A1)", "\ta", "\ra", "\na")},
    **{text: f"'{text}" for text in ("＝1", "＋1", "－1", "＠SUM(A1)", " =1", "\u3000＝1", '"=1"', ' "" =1')},
    **{f"a{sign}=1": f"a{sign}'=1" for sign in ("\t", ";", "\r", "\n", "\r\n")},
    'a;"=1;-2': "a;'\"=1;'-2",
}


def test_no_token_becomes_a_formula_and_harmless_ones_are_not_changed():
    for token, cell in FORMULAS.items():
        text = to_csv(made_up_trace(tokens=[token, 'a"b,c\nd', "我"])).removeprefix("\ufeff")
        rows = list(csv.DictReader(io.StringIO(text, newline="")))
        assert {row[side] for row in rows for side in ("query_token", "key_token")} >= {cell, 'a"b,c\nd', "我"}, token
    for token in ("a=1", "e-mail", "a, -b", "'=1", "x@y", "", " ", "a;b"):
        assert harmless(token) == token


def test_no_token_becomes_a_formula_with_another_separator():
    """Some spreadsheets split CSV at tabs, or at semicolons where numbers have a decimal comma."""
    text = to_csv(made_up_trace(tokens=[*FORMULAS, 'a"b,c\nd'])).removeprefix("\ufeff")
    lines = text.replace("\r", "\n").split("\n")
    cells = [cell for separator in "\t;" for line in lines for cell in line.split(separator)]
    assert not [cell for cell in cells if cell.lstrip(' "\u3000').startswith(tuple("=+-@＝＋－＠"))]


def test_no_name_of_a_tensor_becomes_a_formula():
    trace = made_up_trace()
    tensor = replace(next(iter(trace.tensors.values())), name="=1.pattern")
    assert to_csv(replace(trace, tensors={tensor.name: tensor})).splitlines()[1].startswith("'=1.pattern,")


def test_csv_begins_with_a_byte_order_mark():
    assert to_csv(made_up_trace()).encode().startswith(b"\xef\xbb\xbf")


def test_json_has_all_tensors_and_weights_or_the_named_ones():
    trace = tiny_translator().trace("I 去", "我", record=("*",))
    saved = json.loads(to_json(trace))
    assert saved["tokens"] == {side: list(tokens) for side, tokens in trace.tokens.items()}
    for group, tensors in (("tensors", trace.tensors), ("params", trace.params)):
        assert list(saved[group]) == list(tensors)
        for name, tensor in tensors.items():
            assert saved[group][name]["axes"] == [axis.name for axis in tensor.axes]
            np.testing.assert_array_equal(np.array(saved[group][name]["values"], tensor.value.dtype), tensor.value)
    saved = json.loads(to_json(trace, "logits"))
    assert list(saved["tensors"]) == ["logits"]
    assert "params" not in saved


def test_csv_has_a_column_for_each_axis_of_a_tensor():
    trace = tiny_translator().trace("I", "我", record=("*",))
    rows = list(csv.reader(io.StringIO(to_csv(trace, "encoder.0.self_attn.q", "encoder.1.self_attn.q"))))
    assert rows[0][1:] == ["head", "query", "query_token", "d_k", "value"]
    assert len(rows) == 1 + 2 * trace["encoder.0.self_attn.q"].value.size
    masks = list(csv.reader(io.StringIO(to_csv(trace, "decoder.0.self_attn.mask"))))
    assert {row[-1] for row in masks[1:]} <= {"0", "1"}


def test_a_panel_is_a_table_with_its_labels_as_header_and_first_column():
    labels = Labels(("=1", "我"))
    one = Panel(name="a", title=N_("mask"), values=np.array([[1.5, np.nan], [0, -2]]), rows=labels, columns=labels)
    text = panels_csv(one, one, gettext=translations("zh").gettext).removeprefix("\ufeff")
    rows = list(csv.reader(io.StringIO(text, newline="")))
    assert rows[:4] == [["掩码", "'=1", "我"], ["'=1", "1.5", "nan"], ["我", "0.0", "-2.0"], []]
    assert rows[:4] == rows[4:]
    wide = Panel(name="b", title="b", values=np.ones((1, 2)), rows=Labels(("row",)), columns=Labels(("1st", "2nd")))
    assert panels_csv(wide).splitlines()[:2] == ["\ufeffb,1st,2nd", "row,1.0,1.0"]


def test_tensors_that_cannot_be_written_are_refused(monkeypatch):
    trace = tiny_translator().trace("I", "我", record=("*",))
    with pytest.raises(TraceError, match=r"logits and encoder\.out have different axes"):
        to_csv(trace, "encoder.out", "logits")
    with pytest.raises(MissingTensor):
        to_json(trace, "nonsense")
    monkeypatch.setattr(limits, "MAX_NUMBERS", 10)
    for write in (to_csv, to_json):
        with pytest.raises(BudgetError, match="at most 10 are written"):
            write(trace)
