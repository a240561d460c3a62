"""What was measured of the heads of models: the records of bundled ones, and this session's own tables."""

import json
from contextlib import suppress
from dataclasses import dataclass
from functools import cache
from operator import itemgetter
from typing import TYPE_CHECKING, Any

from visformer.adapters.checkpoints import BUNDLED, folder_of, steps
from visformer.analysis.known_heads import LABELS, LEAST
from visformer.app.serving.models import MODEL, discreetly
from visformer.app.session import boxes
from visformer.app.session.slots import Slot
from visformer.errors import N_
from visformer.pictures.heads import METHODS
from visformer.system.progress import report

if TYPE_CHECKING:
    import pandas as pd

    from visformer.web.payload import HeadNotes

_MOST = 4
"""Models whose tables a session keeps, some 20 kB each."""


@dataclass(frozen=True)
class HeadTable:
    """A table as plain values, so that the explorer can read it without pandas."""

    columns: tuple[str, ...]
    rows: tuple[tuple[Any, ...], ...]
    attrs: dict[str, Any]
    is_own: bool = False  # measured in this session on the visitor's own list

    @classmethod
    def of(cls, frame: "pd.DataFrame", *, is_own: bool) -> "HeadTable":
        """Take the values of a table."""
        rows = tuple(tuple(row) for row in frame.astype(object).to_numpy().tolist())
        return cls(tuple(frame.columns), rows, dict(frame.attrs), is_own)

    def frame(self) -> "pd.DataFrame":
        """Return the table."""
        import pandas as pd

        frame = pd.DataFrame(list(self.rows), columns=list(self.columns))
        frame.attrs |= self.attrs
        return frame

    def dicts(self) -> list[dict[str, Any]]:
        """Return the rows by column."""
        return [dict(zip(self.columns, row, strict=True)) for row in self.rows]


HeadTables = dict[str, HeadTable]
"""By what was measured: "zero", "mean", "gradient" (effects), "pruning", "known", "roles" (by an atlas)."""

_OWN: Slot[dict[str, HeadTables]] = Slot("measured_heads", {})  # by model
_SEEN: Slot[tuple[str, ...]] = Slot("seen_effects", ())  # the models whose effects this session has seen


def tables() -> HeadTables:
    """Return what is known of the visitor's model: the last measurement of each kind, or else its record."""
    model = boxes.model() or MODEL
    return {**recorded(model), **_OWN.get().get(model, {})}


def keep(found: HeadTables) -> None:
    """Keep tables of the visitor's model for this session."""
    model, own = boxes.model() or MODEL, dict(_OWN.get())
    own[model] = {**own.pop(model, {}), **found}
    _OWN.set(dict([*own.items()][-_MOST:]))


def see_effects() -> None:
    """Offer the order of the effects in the explorer, now that the visitor has seen what they are."""
    model = boxes.model() or MODEL
    if model not in _SEEN.get():
        _SEEN.set((*_SEEN.get()[-_MOST:], model))


def notes() -> "HeadNotes":
    """Return what the explorer shows of the heads of the visitor's model: effects, once seen, and labels."""
    from visformer.web.payload import HeadNotes

    return HeadNotes(_effects(), tuple(map(_label, known())))


def _effects() -> tuple[tuple[str, int, int, float], ...]:
    """Return the effect of each head: of zeroing, or else of what was measured."""
    if (boxes.model() or MODEL) not in _SEEN.get():
        return ()
    found = {name: table for name, table in tables().items() if "answer" not in table.attrs}  # on whole targets
    table = next((found[method] for method in METHODS if method in found), None)
    rows = table.dicts() if table else []
    return tuple((row["stack"], row["layer"], row["head"], float(row["effect"])) for row in rows)


def known() -> list[dict[str, Any]]:
    """Return the heads of the visitor's model that have a label, the highest score first.

    Those of ``known_heads`` and, of other labels, the strongest role that an atlas found of each head.
    """
    found = tables()
    rows = [row for row in found["known"].dicts() if row["score"] >= LEAST] if "known" in found else []
    labels = {(*_place(row), row["label"]) for row in rows}
    strongest = {_place(row): row for row in reversed(found["roles"].dicts() if "roles" in found else [])}
    rows += [row for place, row in strongest.items() if (*place, row["label"]) not in labels]
    best = {(*_place(row), row["label"], row["offset"]): row for row in sorted(rows, key=itemgetter("score"))}
    return sorted(best.values(), key=lambda row: -row["score"])  # a head may be syntactic by two relations


def _place(row: dict[str, Any]) -> tuple[str, int, int]:
    return row["stack"], row["layer"], row["head"]


def _label(row: dict[str, Any]) -> tuple[str, int, int, str, float, str]:
    _, label, found = boxes.gettext(), LABELS[row["label"]], row["found"]
    name = _(label)
    if row["label"] == "positional":
        name += f" ({row['offset']:+d})".replace("-", "−")
    about = _(N_("{found}; null: {null}")).format(found=_(found), null=f"{row['null']:.2f}")
    return row["stack"], row["layer"], row["head"], name, float(row["score"]), about


@cache
def recorded(model: str) -> HeadTables:
    """Return the record of a bundled model, from its heads.json; {} for any other."""
    if model not in BUNDLED:
        return {}
    with suppress(OSError, ValueError, TypeError, KeyError):  # visformer doctor says what is wrong
        found = json.loads((folder_of(model) / "heads.json").read_text(encoding="utf-8"))
        return {
            name: HeadTable(tuple(each["columns"]), tuple(map(tuple, each["rows"])), each["attrs"])
            for name, each in found.items()
        }
    return {}


def score_history(_model: Any, name: str) -> "pd.DataFrame":
    """Score the heads at every moment of a training, one after another in memory; where long work is done."""
    from visformer.adapters.load import load_to_serve
    from visformer.analysis.known_heads import head_history

    total = len(steps(name))
    with discreetly(name):
        models = (load_to_serve(f"{name}@{moment}") for moment in range(total))
        return head_history(models, progress=lambda done: report(done, total))
