"""The folder of an atlas: shards/00000.parquet and so on, written whole or not at all, and the tables beside them."""

from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Any

from visformer.analysis.atlas.parts import About, Task, about_of, require_version, to_parquet
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

    def holds(self, task: Task) -> bool:
        """Whether the part of a task is there already.

        Raises:
            DataError: it is of another model, another version or other data.
        """
        path = self.folder / task.name
        if not path.exists():
            return False
        said = about_of(_schema(path).metadata)
        self._require_ours(path, said)
        if said is None or said.get("digest") != task.digest:
            first, last = task.first + 1, task.first + len(task.rows)
            raise _other(path, DataError(N_("of other data than rows {first} to {last}"), first=first, last=last))
        return True

    def write(self, name: str, content: bytes) -> None:
        """Write a part."""
        path = self.folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        write_whole(path, content)

    def read(self, name: str) -> "pyarrow.Table":
        """Read a part.

        Raises:
            DataError: it is damaged.
        """
        return read_table(self.folder / name)

    def write_table(self, name: str, table: "pyarrow.Table") -> None:
        """Write a table of the whole corpus."""
        write_whole(self.folder / f"{name}.parquet", to_parquet(table, asdict(self.about)))

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
    if (said := about_of(table.schema.metadata)) is None:
        raise DataError(N_("{path} is no part of an atlas."), path=path)
    require_version(str(path), said)
    return table


def _damaged(path: Path, error: Exception) -> DataError:
    reason = str(error).split("\n")[0]
    return DataError(N_("{path} is damaged ({reason}): delete it, and repeat the command."), path=path, reason=reason)
