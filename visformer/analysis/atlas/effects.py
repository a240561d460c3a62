"""What silencing each head does to one text: a part of its own, so that texts are added up like all others."""

from collections.abc import Iterable
from dataclasses import asdict
from typing import TYPE_CHECKING, Any

import numpy as np

from visformer.analysis.atlas.parts import About, Task, to_parquet
from visformer.analysis.atlas.records import Record
from visformer.analysis.atlas.schemas import EFFECTS, effect_schema, table_schema
from visformer.errors import N_, DataError, VisformerError

if TYPE_CHECKING:  # torch; pyarrow, which takes long
    import pyarrow

    from visformer.adapters.base import TracedModel

_PLACE = ["stack", "layer", "head"]


def silence(model: "TracedModel", task: Task, about: About) -> bytes:
    """Silence each head on the text of a task, and return the Parquet file of its part: one row a head.

    A text that the model cannot take, or that has no token to predict, has no rows.

    Raises:
        VisformerError: the model cannot do this at all.
    """
    import pyarrow as pa

    rows = [row for record in task.rows if isinstance(record, Record) for row in _rises(model, record)]
    table = pa.Table.from_pylist([{"number": task.first, **row} for row in rows], schema=effect_schema())
    return to_parquet(table, {**asdict(about), "digest": task.digest})


def _rises(model: "TracedModel", record: Record) -> list[dict[str, Any]]:
    from visformer.analysis.effects.head_effects import rises_by_head

    if model.info.kind == "decoder" and record.target is None and len(model.tokenize(record.text)) < 2:
        return []
    try:
        heads, rises, tokens = rises_by_head(
            model, [record.text if record.target is None else (record.text, record.target)]
        )
    except VisformerError as error:
        if type(error) is VisformerError:  # not about this text
            raise
        return []
    return [
        {**dict(zip(_PLACE, head, strict=True)), "rise": rise, "tokens": int(tokens[0])}
        for head, rise in zip(heads, rises[0].tolist(), strict=True)
    ]


def effects_table(parts: "Iterable[pyarrow.Table]") -> "pyarrow.Table":
    """Merge parts that :func:`silence` wrote, in any order.

    Returns:
        The columns of :func:`visformer.analysis.head_effects`.

    Raises:
        DataError: none of them has a text.
    """
    import pandas as pd
    import pyarrow as pa

    from visformer.analysis.effects.head_effects import tabulated

    found = pd.concat([part.to_pandas() for part in parts]).sort_values("number", kind="stable")
    if not len(found):
        raise DataError(N_("Heads cannot be silenced on any of the first texts: ask for more with --effects."))
    heads = [*found[_PLACE].drop_duplicates().itertuples(index=False, name=None)]
    texts = found.drop_duplicates("number")
    rises = found["rise"].to_numpy().reshape(len(texts), len(heads))
    table = tabulated(heads, rises, texts["tokens"].to_numpy(np.float64))
    return pa.Table.from_pandas(table, schema=table_schema(EFFECTS), preserve_index=False)
