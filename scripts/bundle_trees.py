"""Write the sentences with trees on which syntactic heads are found: ``python -m scripts.bundle_trees``.

English sentences of the grammar, each with a rule or a word that its sentences for training never use, one a line as
JSON.
"""

import json
from pathlib import Path

import visformer
from visformer.training import grammar
from visformer.training.supplement import FOLDER

FILE = Path(visformer.__file__).parent / "analysis" / "trees.jsonl"
N, SEED = 400, 23


def lines() -> list[str]:
    """Return the lines, the same ones each time."""
    drawn = grammar.sample(grammar.load(FOLDER / "grammar"), N, seed=SEED, held_out=True)
    rows = [
        {"text": one.en, "words": one.en_words, "heads": one.en_heads, "relations": one.en_relations} for one in drawn
    ]
    return [json.dumps(row, ensure_ascii=False) for row in rows]


if __name__ == "__main__":
    FILE.write_text("\n".join(lines()) + "\n", encoding="utf-8")
