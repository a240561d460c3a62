"""Names that a translator was never trained on, in sentences that it was never trained on."""

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from visformer.adapters.own import Translator
from visformer.errors import N_, DataError
from visformer.training.evaluation.translations import translate_all
from visformer.training.supplement import read_rows


@dataclass(frozen=True)
class HeldOut:
    """One sentence with a name that the model was never trained on."""

    expected: str  # its only correct translation
    name: str  # name that has to be in the output, as it is in ``expected``
    kind: str  # "copy" (a Latin name), "pinyin" (a Chinese name to be spelled) or "composed" (known place + University)
    output: str  # the model's translation

    @property
    def exact(self) -> bool:
        """Whether the whole sentence is as expected."""
        return self.output == self.expected

    @property
    def name_right(self) -> bool:
        """Whether the output contains the name, whatever the rest of the sentence is."""
        return self.name in self.output


def held_out_names(model: Translator, folder: Path) -> list[HeldOut]:
    """Translate the held-out sentences of the supplement."""
    frames = read_rows(folder / "held_out_frames.tsv", columns=3)
    rows = read_rows(folder / "held_out.tsv", columns=5)
    outputs: dict[str, tuple[str, float]] = {}
    for to in ("zh", "en"):
        outputs |= translate_all(model, [row[0] for row in rows if row[2].endswith(to)], to=to)
    results = []
    for source, expected, direction, _, kind in rows:
        name = _name_in(expected, [frame[0 if direction.endswith("en") else 1] for frame in frames])
        results.append(HeldOut(expected, name, kind, outputs[source][0]))
    return results


def _name_in(expected: str, frames: Iterable[str]) -> str:
    """The name that fills the placeholder of the frame that ``expected`` was made from."""
    for frame in frames:
        before, after = re.split(r"\{\w+\}", frame, maxsplit=1)
        if re.fullmatch(rf"{re.escape(before)}.+{re.escape(after)}", expected, re.IGNORECASE):
            return expected[len(before) : len(expected) - len(after)]
    raise DataError(N_("No held-out frame fits {expected!r}."), expected=expected)


def names_report(results: Sequence[HeldOut]) -> dict[str, Any]:
    """Count whole sentences and names, by kind."""
    table = {}
    for kind in ["all", *dict.fromkeys(row.kind for row in results)]:
        rows = [row for row in results if kind in ("all", row.kind)]
        exact, right = sum(row.exact for row in rows), sum(row.name_right for row in rows)
        table[kind] = {"sentences": len(rows), "exact": exact, "name_right": right}
    return table
