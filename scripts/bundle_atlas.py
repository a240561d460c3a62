"""Make the atlases of the bundled models: ``python -m scripts.bundle_atlas`` writes atlas.zip beside their weights.

Over 2,000 sentences of our own: 1,000 that the grammar writes with rules or words that its sentences for training never
use, with their trees and alignments, and 1,000 of the everyday pairs. They alternate, so that heads are silenced on
both kinds.
"""

import argparse
import json
import os
import tempfile
from collections.abc import Sequence
from itertools import groupby
from pathlib import Path
from typing import Any

import visformer as vf
from visformer.adapters.base import TracedModel
from visformer.adapters.checkpoints import GPT, OF_TEXT
from visformer.analysis import bundled_trees
from visformer.analysis.atlas import Data, build
from visformer.analysis.atlas.archive import bundled_file, pack
from visformer.analysis.atlas.parts import EFFECTS
from visformer.model.tokenizer import Tokenizer
from visformer.system.files import write_sums
from visformer.training import grammar
from visformer.training.grammar import Sentence
from visformer.training.supplement import FOLDER, read_rows

EACH, SEED = 1000, 41
MOMENTS = (f"{GPT}@6",)
"""Moments of a training with an atlas of their own, to be laid beside the last one."""

DATA = "sentences.jsonl"

Span = tuple[int, int]


def rows(model: TracedModel) -> list[dict[str, Any]]:
    """Return the sentences, the same ones each time; trees and alignments in the words of the model."""
    tokenizer: Tokenizer = model.tokenizer  # type: ignore[assignment]
    pairs = read_rows(FOLDER / "everyday.tsv", columns=2)
    known = {*(tree.text for tree in bundled_trees()), *(en for en, _ in pairs)}
    drawn = grammar.sample(grammar.load(), 2 * EACH, seed=SEED, held_out=True)
    written = [_written(tokenizer, one) for one in drawn if one.en not in known][:EACH]
    typed = [{"text": en, "target": zh} for en, zh in pairs[:: len(pairs) // EACH][:EACH]]
    found = [row for both in zip(written, typed, strict=True) for row in both]
    if model.info.kind == "encoder-decoder":
        return found
    return [{name: value for name, value in row.items() if name in ("text", "heads")} for row in found]


def _written(tokenizer: Tokenizer, one: Sentence) -> dict[str, Any]:
    row: dict[str, Any] = {"text": one.en, "target": one.zh}
    english, chinese = _gold(one.en, one.en_words), _gold(one.zh, one.zh_words)
    if words(tokenizer, one.en) != english:
        return row
    row["heads"] = [head + 1 for head in one.en_heads]  # from 1, 0: the root
    into = [[j for j, span in enumerate(words(tokenizer, one.zh)) if _overlap(span, gold)] for gold in chinese]
    row["alignment"] = " ".join(f"{i}-{k}" for i, j in sorted(one.links) for k in into[j])
    return row


def words(tokenizer: Tokenizer, text: str) -> list[Span]:
    """Return where the model's words stand in a text."""
    ids = tokenizer.encode(text)
    tokens = list(zip(tokenizer.words(ids), tokenizer.spans(text), strict=False))  # the end token has no span
    each = [[span for _, span in group] for _, group in groupby(tokens, key=lambda token: token[0])]
    return [(spans[0][0], spans[-1][1]) for spans in each]


def _gold(text: str, parts: Sequence[str]) -> list[Span]:
    spans, at = [], 0
    for part in parts:
        begin = text.index(part, at)
        at = begin + len(part)
        spans.append((begin, at))
    return spans


def _overlap(one: Span, other: Span) -> bool:
    return one[0] < other[1] and other[0] < one[1]


def bundle(name: str, folder: Path) -> None:
    """Measure a model in a folder, and copy the tables as one file beside its weights."""
    model = vf.load(name)
    found = rows(model)
    print(f"{name}: {len(found)} sentences, {sum('heads' in row for row in found)} with trees")
    lines = "".join(json.dumps(row, ensure_ascii=False) + "\n" for row in found)
    folder.mkdir(parents=True)
    os.chdir(folder)  # the file is named by its path
    Path(DATA).write_text(lines, encoding="utf-8")
    atlas = build(model, Data(DATA), "atlas", effects=EFFECTS)
    target = bundled_file(name)
    target.write_bytes(pack("atlas"))
    print(f"{atlas!r}, {target.stat().st_size:,} bytes")
    write_sums(target.parent)


def main() -> None:
    """Write the files, and their checksums."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("models", nargs="*", default=[*OF_TEXT, *MOMENTS], help="bundled models, or moments of them")
    with tempfile.TemporaryDirectory() as folder:
        for i, name in enumerate(parser.parse_args().models):
            bundle(name, Path(folder) / str(i))
            os.chdir("/")


if __name__ == "__main__":
    main()
