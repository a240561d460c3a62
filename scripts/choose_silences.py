"""Find sentences that one silenced head changes visibly: ``python -m scripts.choose_silences`` writes silences.json.

The page that silences heads offers them. A change is visible where other tokens take the place of a content word; it is
the smaller, the fewer tokens are lost and gained. The sentences are the examples, in which lessons also take place, and
everyday ones in both languages that are translated as in everyday.tsv. Layers and heads count from 0.
"""

import argparse
import json
import random
from collections import Counter
from collections.abc import Sequence, Set
from difflib import SequenceMatcher
from pathlib import Path

import visformer as vf
from scripts.choose_heads import expected, heads_of, named
from visformer.adapters.checkpoints import TRANSLATOR, folder_of
from visformer.adapters.own import Translator
from visformer.edits import Silence
from visformer.pictures.examples import EXAMPLES
from visformer.system.files import write_sums
from visformer.training.supplement import FOLDER, read_rows

COMMON = 100
"""A content word is none of so many tokens that are the most frequent in everyday.tsv."""

OFFERED = 6
"""Sentences that the page offers; no two of them for the same head."""


def changes(before: Sequence[str], after: Sequence[str]) -> tuple[list[str], list[str]]:
    """Return the tokens that are lost and those that are gained."""
    spans = SequenceMatcher(None, before, after, autojunk=False).get_opcodes()
    changed = [span[1:] for span in spans if span[0] != "equal"]
    lost = [token for a, b, _, _ in changed for token in before[a:b]]
    return lost, [token for _, _, a, b in changed for token in after[a:b]]


def smallest_change(model: Translator, source: str, common: Set[str]) -> tuple[int, Silence, str, str] | None:
    """Find the head without which others stand for a content word and as few tokens as possible change.

    Returns:
        How many tokens are lost and gained, the head, the translations before and after; None: there is no such head.
    """
    before = model.translate(source)
    found = []
    for edit in heads_of(model):
        if expected(model, source, before.ids, edit)[1]:
            continue  # greedy decoding would choose the same tokens
        after = model.translate(source, edits=(edit,))
        lost, gained = changes(before.tokens, after.tokens)
        if gained and any(token not in common for token in lost):
            found.append((len(lost) + len(gained), edit, before.text, after.text))
    return min(found, key=lambda one: one[0], default=None)


def candidates(model: Translator, n: int) -> list[str]:
    """Return the examples and, of each language, n sentences of everyday.tsv that are translated as they are there."""
    rows = [row for row in read_rows(FOLDER / "everyday.tsv", columns=2) if 4 <= len(row[0].split()) <= 8]
    found = [*EXAMPLES]
    for to, pairs in (("zh", rows), ("en", [row[::-1] for row in rows])):
        chosen = random.Random(0).sample(pairs, min(len(pairs), 20 * n))
        translations = model.translate_many([source for source, _ in chosen], to=to)
        right = [pair[0] for pair, each in zip(chosen, translations, strict=True) if each.text == pair[1]]
        found += right[:n]
    return list(dict.fromkeys(found))


def common_tokens(model: Translator) -> set[str]:
    """Return the tokens that are no content words: in each language the most frequent ones."""
    rows = read_rows(FOLDER / "everyday.tsv", columns=2)
    counts = [Counter(token for text in column for token in model.tokenize(text)) for column in zip(*rows, strict=True)]
    return {token for count in counts for token, _ in count.most_common(COMMON)}


def silences(model: Translator, n: int) -> list[dict[str, object]]:
    """Return the sentences that the page offers, the smallest change first, each with its head; print all of them."""
    common = common_tokens(model)
    found = [(change, source) for source in candidates(model, n) if (change := smallest_change(model, source, common))]
    offered: dict[Silence, dict[str, object]] = {}
    for (size, edit, before, after), source in sorted(found, key=lambda one: one[0][0]):
        print(f"{size} {named(edit.where, edit.head)}: {source}\n    {before}\n    {after}", flush=True)
        part, layer, kind = edit.where.split(".")
        place = {"stack": f"{part}.{kind}", "layer": int(layer), "head": edit.head}
        if len(offered) < OFFERED:
            offered.setdefault(edit, {"text": source, **place})
    return [*offered.values()]


def write(model: Translator, folder: Path, n: int = 30) -> None:
    """Write silences.json into the folder of a checkpoint; ``n``: sentences of each language in everyday.tsv."""
    found = json.dumps(silences(model, n), ensure_ascii=False, indent=1)
    (folder / "silences.json").write_text(found + "\n", encoding="utf-8")


def main() -> None:
    """Write the file beside the weights, and its checksum."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("model", nargs="?", default=TRANSLATOR, help="a bundled model, or the folder of a checkpoint")
    parser.add_argument("--sentences", type=int, default=30, help="of each language in everyday.tsv")
    arguments = parser.parse_args()
    write(vf.load(arguments.model), folder_of(arguments.model), arguments.sentences)
    write_sums(folder_of(arguments.model))


if __name__ == "__main__":
    main()
