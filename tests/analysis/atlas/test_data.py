"""Every format gives the same rows; a broken row is named and the others are read."""

import io
import json
import sys

import pyarrow as pa
import pytest
from pyarrow import ipc, parquet

from visformer.analysis.atlas.data import FORMATS, Broken, Columns, Data, Record, digest
from visformer.errors import DataError

TEXTS = ("I went to school.", '他说："好", 再见。', "a\u2028b", "é")


def lines(texts):
    return "".join(text + "\n" for text in texts).encode()


def as_csv(texts):
    return lines(["id,text", *(f'{i},"{text.replace(chr(34), chr(34) * 2)}"' for i, text in enumerate(texts))])


def arrow(open_file):
    def made(texts):
        sink = io.BytesIO()
        table = pa.table({"id": range(len(texts)), "text": texts})
        with open_file(sink, table.schema) as writer:
            writer.write_table(table, max_chunksize=3)
        return sink.getvalue()

    return made


def as_parquet(**columns):
    sink = io.BytesIO()
    parquet.write_table(pa.table(columns), sink)
    return sink.getvalue()


def read(path, content, columns=None):
    """Write a file, and return the rows that are read from it."""
    path.write_bytes(content if isinstance(content, bytes) else content.encode())
    return list(Data(str(path), columns or Columns()).rows())


WRITTEN = {
    "a.txt": lines,
    "bom.txt": lambda texts: b"\xef\xbb\xbf" + lines(texts),
    "crlf.txt": lambda texts: lines(texts).replace(b"\n", b"\r\n"),
    "a.tsv": lambda texts: lines(f"{text}\tthe other column" for text in texts),
    "header.tsv": lambda texts: lines(["id\ttext", *(f"{i}\t{text}" for i, text in enumerate(texts))]),
    "a.csv": as_csv,
    "a.jsonl": lambda texts: lines(json.dumps({"text": text, "n": 1}) for text in texts),
    "strings.ndjson": lambda texts: lines(map(json.dumps, texts)),
    "a.parquet": lambda texts: as_parquet(text=texts, n=range(len(texts))),
    "stream.arrow": arrow(ipc.new_stream),
    "file.arrow": arrow(ipc.new_file),
}


def test_every_format_gives_the_same_texts(tmp_path):
    assert {name[name.index(".") :] for name in WRITTEN} == FORMATS.keys()
    for name, write in WRITTEN.items():
        path = tmp_path / name
        rows = read(path, write(TEXTS))
        assert [row.text for row in rows] == [*TEXTS], name
        first = 2 if name in ("header.tsv", "a.csv") else 1
        assert [(row.file, row.line) for row in rows] == [(str(path), first + i) for i in range(4)], name
        assert Data(str(path)).count() == 4 + first - 1, name  # a header is one more


BROKEN = {
    "a.txt": (b"one\n\n\xff\xfe\ntwo\n", {3: "text is not UTF-8"}),
    "a.tsv": (b"text\tid\none\t1\n\t2\ntwo\t3\n", {3: "no text"}),
    "short.tsv": (b"id\ttext\n1\tone\n2\n3\ttwo\n", {3: "1 columns, 2 are needed"}),
    "a.csv": (b'text,id\none,1\n"a"b,2\ntwo,3\n', {3: "not a row of a table: ',' expected after '\"'"}),
    "a.jsonl": (
        b'{"text": "one"}\n{"text"\n[1]\n{"n": 1, "m": 2}\n{"text": 3}\n{"text": "\\ud800"}\n"two"\n',
        {
            2: "not JSON: Expecting ':' delimiter",
            3: "neither a JSON object nor a text, but list",
            4: "no text: it has n, m, not text, sentence, source",
            5: "text is not a text, but int",
            6: "text is not UTF-8",
        },
    ),
}


@pytest.mark.parametrize("name", BROKEN)
def test_a_broken_row_is_named_and_the_others_are_read(name, tmp_path):
    content, expected = BROKEN[name]
    rows = read(tmp_path / name, content)
    assert [row.text for row in rows if isinstance(row, Record)] == ["one", "two"]
    assert {row.line: row.reason for row in rows if isinstance(row, Broken)} == expected
    assert {row.file for row in rows} == {str(tmp_path / name)}


def test_an_empty_cell_of_a_table_with_types_is_a_broken_row(tmp_path):
    rows = read(tmp_path / "a.parquet", as_parquet(text=["one", None, " ", "two"], target=["", "b", "c", "d"]))
    assert [(type(row), row.line) for row in rows] == [(Record, 1), (Broken, 2), (Broken, 3), (Record, 4)]
    assert rows[0].target is None
    assert rows[3].target == "d"


def test_a_folder_is_read_in_the_order_of_its_paths(tmp_path):
    """As datasets writes one: streams in numbered files, one folder for each split, and JSON beside them."""
    for split, texts in (("train", ["c", "d"]), ("test", ["a", "b"])):
        folder = tmp_path / split
        folder.mkdir()
        for i, text in enumerate(texts):
            (folder / f"data-{i:05}-of-00002.arrow").write_bytes(arrow(ipc.new_stream)([text]))
        (folder / "cache-0f.arrow").write_bytes(arrow(ipc.new_stream)([*texts, "left by map"]))
        (folder / "state.json").write_text("{}")
        (folder / "dataset_info.json").write_text("{}")
    (tmp_path / ".hidden").mkdir()
    (tmp_path / ".hidden" / "a.txt").write_text("no")
    data = Data(str(tmp_path))
    assert [row.text for row in data.rows()] == ["a", "b", "c", "d"]
    assert data.count() == 4


def test_standard_input_has_one_text_a_line(monkeypatch):
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(b"one\n\n\xff\ntwo")))
    rows = list(Data("-").rows())
    assert [row.line for row in rows] == [1, 3, 4]
    assert isinstance(rows[1], Broken)
    assert Data("-").count() is None


def test_columns_are_chosen_by_name_by_number_or_by_default(tmp_path):
    tree = {"heads": (2, 0)}
    for name, content, columns, line, said in (
        ("pairs.tsv", "I go.\t我去。\n", Columns(target="2"), 1, {"text": "I go.", "target": "我去。"}),
        ("named.tsv", "zh\ten\n我去。\tI go.\n", Columns(text="en", target="zh"), 2,
         {"text": "I go.", "target": "我去。"}),
        ("a.csv", "sentence,pair\na,b\n", None, 2, {"text": "a", "pair": "b"}),
        ("tree.tsv", "text\theads\talignment\na b\t2 0\t0-0 1-1\n", None, 2,
         {"text": "a b", "alignment": ((0, 0), (1, 1)), **tree}),
        ("a.jsonl", '{"source": "a b", "heads": [2, 0]}\n', None, 1, {"text": "a b", **tree}),
    ):  # fmt: skip
        assert read(tmp_path / name, content, columns) == [Record(str(tmp_path / name), line, **said)], name


def test_a_tree_or_links_that_cannot_be_read_are_a_broken_row(tmp_path):
    for heads, links in (("2 x", ""), ("9 0", ""), ("", "0"), ("", "0-0-0"), ("", "a-b"), ("", "-1-0")):
        (row,) = read(tmp_path / "a.tsv", f"text\theads\talignment\na b\t{heads}\t{links}\n")
        assert isinstance(row, Broken) and "not such as" in row.reason, (heads, links)


REFUSED = {
    "none.txt": (None, "There is no file or folder .*none.txt"),
    "a.doc": ("a", "a.doc does not say by its ending what it is: rename it to end in .txt"),
    "a.csv": ("id,words\n1,a\n", "a.csv has no column text: it has id, words"),
    "damaged.parquet": ("PAR1 is not enough", "damaged.parquet cannot be read: "),
    "a.arrow": ("no", "a.arrow cannot be read: "),
    "two.parquet": (as_parquet(en=["a"], zh=["b"], n=[1]), "has the columns en, zh: say with --text which"),
}


@pytest.mark.parametrize("name", REFUSED)
def test_what_cannot_be_read_at_all_is_refused_in_one_line(name, tmp_path):
    """Several columns of texts are not guessed between."""
    content, message = REFUSED[name]
    columns = Columns(text="text") if name == "a.csv" else None
    with pytest.raises(DataError, match=message) as error:
        list(Data(str(tmp_path / name)).rows()) if content is None else read(tmp_path / name, content, columns)
    assert "\n" not in str(error.value)


def test_a_folder_without_data_is_refused(tmp_path):
    (tmp_path / "README.md").write_text("no data")
    with pytest.raises(DataError, match=r"holds no data: no file in it ends in \.txt, \.tsv"):
        Data(str(tmp_path)).count()


def test_the_digest_is_of_what_rows_say_not_of_where_they_are():
    one, moved = [Record("a", 1, "x"), Broken("a", 2, "no")], [Record("b", 7, "x"), Broken("b", 8, "other")]
    assert digest(one) == digest(moved)
    others = [Record("a", 1, "y")], [Record("a", 1, "x", "y")], [Record("a", 1, "x", None, "y")], [Record("a", 1, "xy")]
    assert len({digest(rows) for rows in (one, one[:1], *others)}) == 6
