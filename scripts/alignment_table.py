"""Measure the alignment error of every method, and write the table of docs/analysis.md.

``python -m scripts.alignment_table`` takes a quarter of an hour on two cores.

Two sets of gold links, both directions: 50 pairs that one person aligned by hand (supplement/alignment.tsv), and 500
that the grammar generates with rules and words that training never saw.
"""

import argparse
import re
from pathlib import Path

import pandas as pd

import visformer as vf
from visformer.analysis import METHODS, alignment_error
from visformer.training.evaluation.alignment import from_grammar, read_aligned
from visformer.training.supplement import FOLDER

DOCS = Path(__file__).resolve().parent.parent / "docs"
PAGES = (DOCS / "analysis.md", DOCS / "analysis.zh-CN.md")
MARKS = re.compile(r"(<!-- alignment -->\n).*?(<!-- end -->)", re.DOTALL)
KEYS = ["method", "choice", "row"]


def measure() -> pd.DataFrame:
    """Return one row for each method, choice, reading, and set of gold links in one direction."""
    model, rows = vf.load("en-zh"), []
    for name, gold in (
        ("by hand", read_aligned(FOLDER / "alignment.tsv")),
        ("grammar", from_grammar(FOLDER / "grammar")),
    ):
        for to, pairs in (("zh", gold), ("en", [pair.reversed() for pair in gold])):
            for method, kind in METHODS.items():
                for row in ("prediction", "input") if kind.of != "model" else ("prediction",):
                    errors = alignment_error(model, pairs, method=method, row=row, to=to)
                    print(name, to, errors.to_string(header=False, index=False), sep="\n", flush=True)
                    rows.append(errors.assign(set=f"{name}, to {to}, n = {len(pairs)}"))
    return pd.concat(rows)


def table(errors: pd.DataFrame) -> str:
    """Return it in Markdown: a column for each set and direction."""
    cells = errors.apply(lambda row: f"{row.error:.2f} ({row.low:.2f}–{row.high:.2f})", axis=1)
    wide = errors.assign(cell=cells).pivot(index=KEYS, columns="set", values="cell")
    wide = wide.reindex(index=dict.fromkeys(map(tuple, errors[KEYS].values)), columns=dict.fromkeys(errors["set"]))
    lines = [[*KEYS, *wide.columns], ["---"] * (len(KEYS) + len(wide.columns))]
    lines += [[*key, *row] for key, row in zip(wide.index, wide.to_numpy(), strict=True)]
    return "".join(f"| {' | '.join(line)} |\n" for line in lines)


def main() -> None:
    """Write the table into both pages; ``--only-print``: nowhere."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--only-print", action="store_true", help="do not change the pages")
    only_print = parser.parse_args().only_print
    text = table(measure())
    print(text)
    for page in () if only_print else PAGES:
        page.write_text(MARKS.sub(lambda match: match[1] + text + match[2], page.read_text("utf-8")), "utf-8")


if __name__ == "__main__":
    main()
