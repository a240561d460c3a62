"""Measure the heads of the bundled models: ``python -m scripts.measure_heads`` writes heads.json beside their weights.

The page on heads opens with these numbers, and the explorer shows their labels: effects on the bundled list by each
method, pruning, known heads, and the roles that the bundled atlas tells. Numbers have six decimals. Layers and heads
count from 0. Beside the moments of a training, moments/heads.csv has the scores of all heads at each of them, with four
decimals.
"""

import argparse
import json
from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING, Any

import visformer as vf
from scripts.bundle import ALIGNED
from visformer.adapters.base import TracedModel
from visformer.adapters.checkpoints import HEADS, OF_TEXT, TRANSLATOR, folder_of, steps
from visformer.analysis import atlas, bundled_trees, head_history, syntactic_heads
from visformer.pictures.heads import ALIGNMENT, METHODS, RELATIONS, labelled, pruned, ranked
from visformer.system.files import write_sums
from visformer.training.evaluation.alignment import read_aligned

if TYPE_CHECKING:
    import pandas as pd

DECIMALS = 6


def aligning(folder: Path) -> list[dict[str, Any]]:
    """Return the head that aligns best where the row reads the word, from evaluation.json; [] for other models.

    The null is what the diagonal would reach.
    """
    found = json.loads((folder / "evaluation.json").read_text(encoding="utf-8")).get("alignment")
    if not found:
        return []
    by_hand = found["by hand"]["en-zh"]
    _, layer, _, head = by_hand["input"]["head"].split()
    score, null = 1 - by_hand["input"]["aer"], 1 - by_hand["diagonal"]
    return [
        {"stack": "decoder.cross_attn", "layer": int(layer) - 1, "head": int(head) - 1, "label": "alignment",
         "offset": 0, "score": score, "first": float("nan"), "null": null, "null_high": null, "n": by_hand["pairs"],
         "found": ALIGNMENT}
    ]  # fmt: skip


def syntactic(model: TracedModel) -> list[dict[str, Any]]:
    """Return the heads that follow a relation of the bundled trees better than the best fixed offset; [] elsewhere."""
    if model.info.name != TRANSLATOR:
        return []
    found = syntactic_heads(model, bundled_trees(), to="zh")  # type: ignore[arg-type]
    found = found[found["low"] > found["null_high"]]
    return [
        {"stack": row.stack, "layer": row.layer, "head": row.head, "label": row.label, "offset": 0, "score": row.score,
         "first": float("nan"), "null": row.null, "null_high": row.null_high, "n": row.n,
         "found": RELATIONS[row.relation]}
        for row in found.itertuples() if row.relation in RELATIONS
    ]  # fmt: skip


def measured(model: TracedModel, folder: Path) -> dict[str, "pd.DataFrame"]:
    """Return all tables of a model."""
    import pandas as pd

    known = labelled(model)
    attrs = known.attrs
    if more := [*aligning(folder), *syntactic(model)]:
        known = pd.concat([pd.DataFrame(more), known], ignore_index=True)
        known.attrs |= attrs
    found = {}
    if model.info.name in atlas.bundled_names():
        found["roles"] = atlas.roles(atlas.Atlas.bundled(model.info.name))[[*known.drop(columns="first")]]
    effects = {method: ranked(model, method=method) for method in METHODS}
    return {**effects, "pruning": pruned(model), "known": known, **found}


def history(name: str, moments: Iterable[int]) -> "pd.DataFrame":
    """Return the scores of all heads at some moments; those of the translator also on pairs aligned by hand."""
    how: dict[str, Any] = {"pairs": read_aligned(ALIGNED), "to": "zh"} if name == TRANSLATOR else {}
    return head_history((vf.load(name, moment=moment) for moment in moments), **how)


def write(tables: dict[str, "pd.DataFrame"], folder: Path) -> None:
    """Write the tables as JSON, a row a line."""
    texts = []
    for name, table in tables.items():
        rows = json.loads(table.to_json(orient="values", double_precision=DECIMALS, force_ascii=False))
        lines = ",\n  ".join(json.dumps(row, ensure_ascii=False) for row in rows)
        head = f'"attrs": {json.dumps(table.attrs)}, "columns": {json.dumps([*table])}'
        texts.append(f'"{name}": {{{head}, "rows": [\n  {lines}\n]}}')
    (folder / "heads.json").write_text("{\n" + ",\n".join(texts) + "\n}\n", encoding="utf-8")


def main() -> None:
    """Write the files, and their checksums."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("models", nargs="*", default=OF_TEXT, help="bundled models")
    for name in parser.parse_args().models:
        folder = folder_of(name)
        write(measured(vf.load(name), folder), folder)
        if kept := steps(name):
            history(name, range(len(kept))).to_csv(folder / "moments" / HEADS, index=False, float_format="%.4f")
        write_sums(folder)


if __name__ == "__main__":
    main()
