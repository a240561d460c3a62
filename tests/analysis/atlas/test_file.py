"""An atlas as one file: it holds what the folder does, and whatever is wrong with it gets one sentence."""

import io
import json
import zipfile
from dataclasses import fields

import pandas as pd
import pyarrow as pa
import pytest
from pyarrow import parquet

from tests.support import tiny_gpt, tiny_translator
from visformer.adapters.checkpoints import OF_TEXT, folder_of
from visformer.analysis.atlas import Atlas, build, bundled_names, pack
from visformer.analysis.atlas.parts import KEY, fingerprint
from visformer.errors import DataError
from visformer.system import limits

TEXTS = "I went to school\nShe likes the river\nI like the school\n"


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    path = tmp_path_factory.mktemp("atlas")
    (path / "texts.txt").write_text(TEXTS)
    build(tiny_gpt(), str(path / "texts.txt"), path / "out", effects=2)
    return path / "out"


def tables(content):
    archive = zipfile.ZipFile(io.BytesIO(content))
    return {name: archive.read(name) for name in archive.namelist()}


def zipped(files, method=zipfile.ZIP_STORED):
    content = io.BytesIO()
    with zipfile.ZipFile(content, "w", method) as archive:
        for name, data in files.items():
            archive.writestr(name, data)
    return content.getvalue()


def changed(content, name, change, more=(), **about):
    """Return the file with another table in place of one of its own."""
    files = tables(content)
    table = parquet.read_table(io.BytesIO(files[f"{name}.parquet"]))
    said = {**json.loads(table.schema.metadata[KEY]), **about}
    sink = io.BytesIO()
    parquet.write_table(change(table).replace_schema_metadata({KEY: json.dumps(said), **dict(more)}), sink)
    return zipped({**files, f"{name}.parquet": sink.getvalue()})


def same(one, other):
    assert one.about == other.about
    for field in fields(Atlas)[1:]:
        pd.testing.assert_frame_equal(getattr(one, field.name), getattr(other, field.name))


def test_the_file_holds_what_the_folder_does(folder, tmp_path):
    (tmp_path / "a.zip").write_bytes(pack(folder))
    same(Atlas.read(tmp_path / "a.zip"), Atlas.read(folder))
    assert pack(folder) == pack(folder)


def test_a_zip_of_the_whole_folder_is_read_too(folder):
    files = {f"out/{path.relative_to(folder)}": path.read_bytes() for path in folder.rglob("*.parquet")}
    assert any("shards" in name for name in files)
    same(Atlas.unpack(zipped(files, zipfile.ZIP_DEFLATED)), Atlas.read(folder))


def column(table, name, value):
    i = table.column_names.index(name)
    return table.set_column(i, table.schema[i], pa.array([value] * len(table), table.schema[i].type))


def many(table, n, reason="x"):
    columns = [["a"] * n, [1] * n, [reason] * n]
    return pa.table([pa.array(each, kind.type) for each, kind in zip(columns, table.schema, strict=True)], table.schema)


def test_a_table_that_is_not_as_it_should_be_is_refused(folder):
    damaged, content = "is no atlas, or damaged", pack(folder)
    for i, (said, name, change, about) in enumerate(
        (
            ("heads.parquet is of the schema 1, this is 2: make the atlas again", "heads", None, {"schema": 1}),
            (damaged, "examples", lambda table: table.drop_columns(["rank"]), {}),
            (f"{damaged}: visformer", "heads", lambda table: pa.concat_tables([table, table]), {}),
            (damaged, "heads", lambda table: column(table, "layer", None), {}),
            (damaged, "heads", lambda table: column(table, "entropy", float("inf")), {}),
            (damaged, "heads", lambda table: column(table, "stack", "x"), {}),
            (damaged, "heads", lambda table: table.slice(0, 0), {}),
            (damaged, "examples", lambda table: column(table, "head", 9), {}),
            (damaged, "heads", None, {"model": "a\nb"}),
            (damaged, "heads", None, {"kind": "rnn"}),
            ("is larger than 200,000", "broken", lambda table: many(table, 200_001), {}),
            ("is larger than 32,000,000", "broken", lambda table: many(table, 40, "x" * 10**6), {}),
        )
    ):
        wrong = changed(content, name, change or (lambda table: table), **about)
        with pytest.raises(DataError) as error:
            pytest.fail(f"row {i} is read: {Atlas.unpack(wrong)}")
        assert said in str(error.value), i


def test_texts_are_utf_8_and_the_metadata_of_pandas_are_not_read(folder):
    def broken(table):
        reason = pa.array([b"\xff"]).view("string")
        return pa.table([["a"], pa.array([1]), reason], table.schema)

    with pytest.raises(DataError, match="is no atlas, or damaged"):
        Atlas.unpack(changed(pack(folder), "broken", broken))
    content = changed(pack(folder), "effects", lambda table: table, more={b"pandas": b"\xff"})
    same(Atlas.unpack(content), Atlas.read(folder))


def test_a_file_that_is_no_atlas_is_refused(folder, monkeypatch):
    content = pack(folder)
    for wrong in (b"", b"PK", content[:-40], content[:2000] + bytes(40) + content[2040:]):
        with pytest.raises(DataError, match="is no atlas, or damaged"):
            Atlas.unpack(wrong)
    files = tables(content)
    del files["offsets.parquet"]
    with pytest.raises(DataError, match=r"mine.zip has no offsets.parquet"):
        Atlas.unpack(zipped(files), "mine.zip")
    with pytest.raises(DataError, match=r"heads.parquet is larger than 4,000,000"):
        Atlas.unpack(zipped({**files, "heads.parquet": bytes(limits.ATLAS_BYTES + 1)}, zipfile.ZIP_DEFLATED))
    monkeypatch.setattr(limits, "ATLAS_HEADS", 3)
    with pytest.raises(DataError, match="is larger than 3"):
        Atlas.unpack(content)


def test_the_bundled_atlases_are_of_the_bundled_models_and_small():
    import visformer as vf

    assert {*OF_TEXT} < {*bundled_names()}
    for name in OF_TEXT:
        atlas = Atlas.bundled(name)
        assert (atlas.about["model"], atlas.about["data"]) == (name, "sentences.jsonl")
        assert atlas.heads["texts"].unique().tolist() == [2000] and not len(atlas.broken)
        assert atlas.effects is not None and atlas.effects["n"].unique().tolist() == [200]
        assert atlas.about["fingerprint"] == fingerprint(vf.load(name))
        assert atlas.heads["syntactic_head_texts"].max() > 800
    assert sum(path.stat().st_size for name in OF_TEXT for path in folder_of(name).glob("atlas*.zip")) < 4_000_000
    with pytest.raises(DataError, match=r"No atlas of gpt2 is bundled: en-zh, mini-gpt"):
        Atlas.bundled("gpt2")


@pytest.mark.full
def test_what_is_bundled_is_what_the_script_makes():
    from scripts import bundle_atlas

    rows = bundle_atlas.rows(tiny_translator())
    assert len(rows) == len({row["text"] for row in rows}) == 2000
    atlas = Atlas.bundled("en-zh")
    for row in atlas.examples.sample(50, random_state=0).itertuples():
        assert (rows[row.number]["text"], rows[row.number]["target"]) == (row.text, row.target)
