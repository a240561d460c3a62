"""Numbers as text: each reads back as the same float32, and no token becomes a formula."""

import csv
import io
import json

import numpy as np
import pandas as pd
import pytest

from tests.support import tiny_translator
from tests.web.support import made_up_trace
from visformer.errors import N_, BudgetError, MissingTensor, TraceError
from visformer.export import panels_csv, to_csv, to_json
from visformer.i18n import translations
from visformer.panel import Labels, Panel
from visformer.system import limits
from visformer.trace import Trace


def test_csv_reads_back_bit_for_bit():
    trace = made_up_trace()
    table = pd.read_csv(io.StringIO(to_csv(trace).removeprefix("\ufeff")), dtype={"value": np.float32})
    assert list(table) == ["tensor", "head", "query", "query_token", "key", "key_token", "value"]
    for name in trace:
        part = table[table.tensor == name]
        np.testing.assert_array_equal(part.value.to_numpy().reshape(trace[name].shape), trace[name].value)
    row = table[(table.tensor == "decoder.1.cross_attn.pattern") & (table["head"] == 2) & (table["query"] == 1)].iloc[3]
    assert (row.query_token, row.key_token) == ("b0", "a3")
    assert row.value == trace["decoder.1.cross_attn.pattern"].value[2, 1, 3]


@pytest.mark.parametrize("token", ["=1+1", "+cmd|' /C calc'!A0", "-2", "@SUM(A1)", "\t=1", "\r=1", "\n=1"])
def test_no_token_becomes_a_formula(token):
    text = to_csv(made_up_trace(tokens=[token, 'a"b,c\nd', "我"])).removeprefix("\ufeff")
    rows = list(csv.DictReader(io.StringIO(text, newline="")))
    found = {row[side] for row in rows for side in ("query_token", "key_token")}
    assert found >= {f"'{token}", 'a"b,c\nd', "我"}
    assert not [one for one in found if one.startswith(("=", "+", "-", "@", "\t", "\r", "\n"))]


def test_csv_begins_with_a_byte_order_mark():
    assert to_csv(made_up_trace()).encode().startswith(b"\xef\xbb\xbf")


def test_json_holds_everything():
    trace = tiny_translator().trace("I 去", "我", record=("*",))
    read = json.loads(to_json(trace))
    assert read["tokens"] == {side: list(tokens) for side, tokens in trace.tokens.items()}
    for group, held in (("tensors", trace.tensors), ("params", trace.params)):
        assert list(read[group]) == list(held)
        for name, tensor in held.items():
            assert read[group][name]["axes"] == [axis.name for axis in tensor.axes]
            np.testing.assert_array_equal(np.array(read[group][name]["values"], tensor.value.dtype), tensor.value)
    text = to_json(trace, "logits")
    assert list(json.loads(text)["tensors"]) == ["logits"]
    assert "params" not in json.loads(text)


def test_other_tensors_have_columns_of_their_own_axes():
    trace = tiny_translator().trace("I", "我", record=("*",))
    rows = list(csv.reader(io.StringIO(to_csv(trace, "encoder.0.self_attn.q", "encoder.1.self_attn.q"))))
    assert rows[0][1:] == ["head", "query", "query_token", "d_k", "value"]
    assert len(rows) == 1 + 2 * trace["encoder.0.self_attn.q"].value.size
    masks = list(csv.reader(io.StringIO(to_csv(trace, "decoder.0.self_attn.mask"))))
    assert {row[-1] for row in masks[1:]} <= {"0", "1"}


def test_panels_are_tables_as_they_are_drawn():
    labels = Labels(("=1", "我"))
    one = Panel(name="a", title=N_("mask"), values=np.array([[1.5, np.nan], [0, -2]]), rows=labels, columns=labels)
    text = panels_csv(one, one, gettext=translations("zh").gettext).removeprefix("\ufeff")
    rows = list(csv.reader(io.StringIO(text, newline="")))
    assert rows[:4] == [["掩码", "'=1", "我"], ["'=1", "1.5", "nan"], ["我", "0.0", "-2.0"], []]
    assert rows[:4] == rows[4:]
    wide = Panel(name="b", title="b", values=np.ones((1, 2)), rows=Labels(("row",)), columns=Labels(("1st", "2nd")))
    assert panels_csv(wide).splitlines()[:2] == ["\ufeffb,1st,2nd", "row,1.0,1.0"]


def test_errors_give_the_reason(monkeypatch):
    trace = tiny_translator().trace("I", "我", record=("*",))
    with pytest.raises(TraceError, match=r"logits has other axes than encoder\.out"):
        to_csv(trace, "encoder.out", "logits")
    with pytest.raises(MissingTensor):
        to_json(trace, "nonsense")
    with pytest.raises(TraceError, match="no attention patterns"):
        to_csv(Trace(tokens={}, special={}, words={}, tensors={}))
    monkeypatch.setattr(limits, "MAX_NUMBERS", 10)
    for write in (to_csv, to_json):
        with pytest.raises(BudgetError, match="at most 10 are written"):
            write(trace)
