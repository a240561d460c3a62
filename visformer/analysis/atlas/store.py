"""The folder of an atlas: shards/00000.parquet and so on, written whole or not at all, and the tables beside them."""

from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Any

from visformer.analysis.atlas import schemas
from visformer.analysis.atlas.parts import About, Part, Task, about_of, read_part, to_parquet
from visformer.errors import N_, DataError
from visformer.system.files import write_whole

if TYPE_CHECKING:  # takes long
    import pyarrow

_WHAT = {
    "schema": N_("of the schema {theirs}, this is {ours}"),
    "fingerprint": N_("of another model ({model})"),
    "shard": N_("of {theirs} rows a shard, this would have {ours}"),
}
"""What tells two atlases apart: nothing is merged or overwritten where it differs."""


class Store:
    """Shards and tables in a folder, of one model and one corpus.

    Args:
        folder: is made when the first shard is written.
        about: what the atlas is of.

    Raises:
        DataError: the folder holds another atlas.
    """

    def __init__(self, folder: Path, about: About) -> None:
        self.folder, self.about = folder, about
        for path in (*sorted(folder.glob("*.parquet")), *sorted((folder / "shards").glob("*.parquet"))[:1]):
            self._require_ours(path, about_of(_schema(path).metadata))

    def path(self, index: int) -> Path:
        """Return the file of a shard."""
        return self.folder / "shards" / f"{index:05}.parquet"

    def holds(self, task: Task) -> bool:
        """Whether a shard is there already.

        Raises:
            DataError: it is of another model, another version or other data.
        """
        path = self.path(task.index)
        if not path.exists():
            return False
        said = about_of(_schema(path).metadata)
        self._require_ours(path, said)
        if said is None or said.get("digest") != task.digest:
            first, last = task.first + 1, task.first + len(task.rows)
            raise _other(path, DataError(N_("of other data than rows {first} to {last}"), first=first, last=last))
        return True

    def write(self, index: int, content: bytes) -> None:
        """Write a shard."""
        path = self.path(index)
        path.parent.mkdir(parents=True, exist_ok=True)
        write_whole(path, content)

    def read(self, index: int) -> Part:
        """Read a shard.

        Raises:
            DataError: it is damaged.
        """
        return read_part(read_table(self.path(index)))

    def holds_table(self, name: str, **more: Any) -> bool:
        """Whether a table of the whole corpus is there whose metadata say ``more``, too."""
        path = self.folder / f"{name}.parquet"
        said = (path.exists() and about_of(_schema(path).metadata)) or {}
        return said.items() >= {**asdict(self.about), **more}.items()

    def write_table(self, name: str, table: "pyarrow.Table", **more: Any) -> None:
        """Write a table of the whole corpus; ``more``: what its metadata say besides."""
        write_whole(self.folder / f"{name}.parquet", to_parquet(table, {**asdict(self.about), **more}))

    def _require_ours(self, path: Path, said: dict[str, Any] | None) -> None:
        if said is None:
            raise _other(path, DataError(N_("no part of an atlas")))
        ours = asdict(self.about)
        for name, what in _WHAT.items():
            if said.get(name) != ours[name]:
                values = {"theirs": said.get(name), "ours": ours[name], "model": said.get("model")}
                raise _other(path, DataError(what, **values))


def _other(path: Path, what: DataError) -> DataError:
    return DataError(
        N_("{path} is {what}: choose another folder with --out, or delete this one. Nothing was overwritten."),
        path=path,
        what=what,
    )


def _schema(path: Path) -> "pyarrow.Schema":
    from pyarrow import ArrowException, parquet

    try:
        return parquet.read_schema(path)
    except ArrowException as error:
        raise _damaged(path, error) from error


def read_table(path: Path) -> "pyarrow.Table":
    """Read a Parquet file of an atlas.

    Raises:
        DataError: it is damaged.
    """
    from pyarrow import ArrowException, parquet

    try:
        table = parquet.read_table(path)
    except ArrowException as error:
        raise _damaged(path, error) from error
    said = about_of(table.schema.metadata)
    if said is None or said.get("schema") != schemas.VERSION:
        raise DataError(N_("{path} is no part of an atlas of this version of visformer."), path=path)
    return table


def _damaged(path: Path, error: Exception) -> DataError:
    reason = str(error).split("\n")[0]
    return DataError(N_("{path} is damaged ({reason}): delete it, and repeat the command."), path=path, reason=reason)
