"""The records of the heads of bundled models, which a script computes; parts are computed anew."""

import json

import pytest

import visformer as vf
from scripts.measure_heads import aligning, history, measured, write
from tests.support import tiny_gpt
from visformer.adapters.checkpoints import OF_TEXT, folder_of, head_scores, steps
from visformer.analysis.known_heads import LEAST
from visformer.app.session.measured import recorded
from visformer.pictures.heads import labelled, ranked

KEYS = ["stack", "layer", "head"]


def test_there_is_a_record_of_every_bundled_model_and_of_no_other():
    for name in OF_TEXT:
        assert {*recorded(name)} == {"zero", "mean", "gradient", "pruning", "known", "roles"}
    assert recorded("gpt2") == {}


@pytest.mark.full
@pytest.mark.parametrize("name", ["mini-gpt", "mini-gpt-2"])
def test_the_known_heads_of_a_record_are_computed_anew(name):
    again, record = labelled(vf.load(name)), recorded(name)["known"].frame()
    assert record.attrs == again.attrs
    assert record[[*KEYS, "label", "found"]].values.tolist() == again[[*KEYS, "label", "found"]].values.tolist()
    for column in ("score", "null", "null_high"):
        assert record[column].tolist() == pytest.approx(again[column].tolist(), abs=1e-4)


@pytest.mark.full
@pytest.mark.parametrize(("name", "method"), [("en-zh", "gradient"), ("mini-gpt", "zero"), ("mini-gpt-2", "mean")])
def test_the_effects_of_a_record_are_computed_anew(name, method):
    again = ranked(vf.load(name), method=method)
    record = recorded(name)[method].frame()
    assert record.attrs == again.attrs and record["n"].unique().tolist() == [50]
    both = record.merge(again, on=KEYS, suffixes=("", "_again"))
    assert len(both) == len(record) == len(again)
    for column in ("effect", "low", "high"):
        assert both[column].tolist() == pytest.approx(both[f"{column}_again"].tolist(), abs=1e-4)


def test_the_alignment_head_is_that_of_the_evaluation():
    (row,) = aligning(folder_of("en-zh"))
    evaluated = json.loads((folder_of("en-zh") / "evaluation.json").read_text(encoding="utf-8"))["alignment"]
    best = evaluated["by hand"]["en-zh"]["input"]
    assert best["head"] == f"layer {row['layer'] + 1} head {row['head'] + 1}"
    assert row["score"] == pytest.approx(1 - best["aer"]) and row["score"] >= LEAST > 0
    kept = [row for row in recorded("en-zh")["known"].dicts() if row["label"] == "alignment"]
    assert [(one["layer"], one["head"]) for one in kept] == [(row["layer"], row["head"])]
    assert aligning(folder_of("mini-gpt")) == []


@pytest.mark.full
@pytest.mark.parametrize(("name", "n"), [("en-zh", 1920), ("mini-gpt", 960)])
def test_the_history_of_heads_is_computed_anew(name, n):
    record, last = head_scores(name), len(steps(name)) - 1
    again = history(name, [last])
    assert len(record) == n and [*record] == [*again]
    assert record["moment"].unique().tolist() == [*range(last + 1)]
    both = record[record["moment"] == last].merge(again.assign(moment=last), on=[*KEYS, "label", "offset"])
    assert len(both) == len(again)
    for column in ("score", "null", "null_high"):
        assert both[f"{column}_x"].tolist() == pytest.approx(both[f"{column}_y"].tolist(), abs=2e-4)


def test_no_other_model_has_a_history_of_heads(tmp_path):
    assert head_scores("mini-gpt-2") is None and head_scores(tmp_path) is None


def test_a_record_holds_what_was_measured(tmp_path):
    model = tiny_gpt(max_len=128)
    (tmp_path / "evaluation.json").write_text("{}", encoding="utf-8")
    tables = measured(model, tmp_path)
    write(tables, tmp_path)
    found = json.loads((tmp_path / "heads.json").read_text(encoding="utf-8"))
    for name, table in tables.items():
        assert found[name]["columns"] == [*table] and len(found[name]["rows"]) == len(table)
        assert found[name]["attrs"] == table.attrs
