"""Measure how the methods of ``vf.analysis`` do: the alignment error of each, and its deletion and insertion curves.

``python -m scripts.method_scores`` takes half an hour or more on two cores. It writes methods.json beside the weights
of the translator, which the page shows, and the tables of docs/analysis.md. ``--tables`` writes the tables from it.

Two sets of gold links, both directions: 50 pairs that one person aligned by hand (supplement/alignment.tsv), and 500
that the grammar generates with rules and words that its sentences for training never use. The curves are of the 50.
"""

import argparse
import json
import re
from concurrent.futures import ProcessPoolExecutor
from functools import partial
from multiprocessing import get_context
from pathlib import Path

import pandas as pd
import torch

import visformer as vf
from visformer.analysis import METHODS, alignment_error, curve_scores
from visformer.pictures.effects import SCORES
from visformer.training.evaluation.alignment import from_grammar, read_aligned
from visformer.training.supplement import FOLDER

DOCS = Path(__file__).resolve().parent.parent / "docs"
PAGES = (DOCS / "analysis.md", DOCS / "analysis.zh-CN.md")
DIRECTIONS = ("zh", "en")
KEYS = ["method", "choice", "row"]
DIGITS = 4
CHINESE = {
    "method": "方法",
    "choice": "选择",
    "row": "行",
    "curve": "曲线",
    "by hand": "手工对齐",
    "grammar": "语法句",
    "to zh": "译成中文",
    "to en": "译成英文",
    "head": "头",
    "layer": "层",
    "prediction": "预测",
    "input": "输入",
    "deletion": "删除",
    "insertion": "插入",
}


def gold() -> dict[str, list[vf.analysis.Aligned]]:
    """Return the sets of gold links by name."""
    return {"by hand": read_aligned(FOLDER / "alignment.tsv"), "grammar": from_grammar(FOLDER / "grammar")}


def errors(place: tuple[str, str]) -> pd.DataFrame:
    """Return one row for each method, choice and reading, of a set of gold links in one direction."""
    name, to = place
    model, rows = vf.load("en-zh"), []
    pairs = [pair if to == "zh" else pair.reversed() for pair in gold()[name]]
    for method, kind in METHODS.items():
        for row in ("prediction", "input") if kind.of != "model" else ("prediction",):
            found = alignment_error(model, pairs, method=method, row=row, to=to)
            print(name, to, found.to_string(header=False, index=False), sep="\n", flush=True)
            rows.append(found.assign(set=name, to=to))
    return pd.concat(rows)


def heights(to: str) -> pd.DataFrame:
    """Return one row for each method and curve in one direction, of the pairs that were aligned by hand."""
    model, rows = vf.load("en-zh"), []
    pairs = [pair if to == "zh" else pair.reversed() for pair in gold()["by hand"]]
    for method in (*METHODS, "random"):
        found = curve_scores(model, [(pair.source_text, pair.target_text) for pair in pairs], method=method, to=to)
        print(to, found.to_string(header=False, index=False), sep="\n", flush=True)
        rows.append(found.assign(to=to))
    return pd.concat(rows)


def measure() -> dict[str, pd.DataFrame]:
    """Return all rows; each set and direction is measured in a process of its own, on one core."""
    places = [(name, to) for name in gold() for to in DIRECTIONS]
    with ProcessPoolExecutor(mp_context=get_context("spawn"), initializer=partial(torch.set_num_threads, 1)) as pool:
        found = pool.map(errors, places), pool.map(heights, DIRECTIONS)
        return dict(zip(("alignment", "curves"), map(pd.concat, found), strict=True))


def table(frame: pd.DataFrame, keys: list[str], number: str) -> str:
    """Return it in Markdown: a column for each set and direction."""
    cells = frame.apply(lambda row: f"{row[number]:.2f} ({row.low:.2f}–{row.high:.2f})".replace("-", "−"), axis=1)
    wide = frame.assign(cell=cells).pivot(index=keys, columns="column", values="cell")
    wide = wide.reindex(index=dict.fromkeys(map(tuple, frame[keys].values)), columns=dict.fromkeys(frame["column"]))
    lines = [[*keys, *wide.columns], ["---"] * (len(keys) + len(wide.columns))]
    lines += [[*key, *row] for key, row in zip(wide.index, wide.to_numpy(), strict=True)]
    return "".join(f"| {' | '.join(line)} |\n" for line in lines)


def tables() -> dict[str, str]:
    """Return the tables of the docs by their marks."""
    found = {name: pd.DataFrame(rows) for name, rows in json.loads(SCORES.read_text("utf-8")).items()}
    aligned, curves = found["alignment"], found["curves"]
    aligned["column"] = aligned["set"] + ", to " + aligned["to"] + ", n = " + aligned["n"].astype(str)
    curves["column"] = "to " + curves["to"] + ", n = " + curves["n"].astype(str)
    return {"alignment": table(aligned, KEYS, "error"), "curves": table(curves, ["curve", "method"], "height")}


def chinese(text: str) -> str:
    """Return a table with its words, but not the names of the methods, in Chinese."""
    return re.sub(
        r"(?<=\| )[^|\n]+",
        lambda cell: "，".join(CHINESE.get(one, one) for one in cell[0][:-1].split(", ")) + " ",
        text,
    )


def main() -> None:
    """Measure, unless only the tables are wanted, and write the tables into both pages."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--tables", action="store_true", help="write the tables only, from the file")
    if not parser.parse_args().tables:
        content = {name: json.loads(rows.round(DIGITS).to_json(orient="records")) for name, rows in measure().items()}
        SCORES.write_text(json.dumps(content, indent=1, ensure_ascii=False) + "\n", "utf-8")
    for name, text in tables().items():
        marks = re.compile(rf"(<!-- {name} -->\n).*?(<!-- end -->)", re.DOTALL)
        for page, said in zip(PAGES, (text, chinese(text)), strict=True):
            page.write_text(marks.sub(rf"\g<1>{said}\g<2>", page.read_text("utf-8")), "utf-8")


if __name__ == "__main__":
    main()
