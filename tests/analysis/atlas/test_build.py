"""From a file to an atlas: planted heads are found, runs resume, and nothing of another atlas is overwritten."""

import hashlib
import random
from copy import deepcopy
from pathlib import Path

import numpy as np
import pandas as pd
import pyarrow.parquet
import pytest
from click.testing import CliRunner
from hypothesis import given
from hypothesis import strategies as st
from tokenizers import processors

from tests.adapters.huggingface import hub
from tests.analysis.atlas.planted import INDUCTION, PREVIOUS, PUNCTUATION, planted_gpt
from tests.support import tiny_gpt, tiny_tokenizer, tiny_translator
from visformer.adapters.load import wrap
from visformer.analysis import head_effects, mean_head_scores
from visformer.analysis.atlas import MEASURES, Atlas, Data, build, histogram, schemas
from visformer.analysis.atlas.data import Columns
from visformer.analysis.atlas.effects import effects_table
from visformer.analysis.atlas.parts import fingerprint
from visformer.analysis.heads import SCORES
from visformer.cli import main
from visformer.errors import DataError, VisformerError
from visformer.model.checkpoints import save_checkpoint

WORDS = ("I", "went", "to", "school", "She", "likes", "the", "school.", "to,")


@pytest.fixture
def data(tmp_path):
    rng = random.Random(0)
    path = tmp_path / "texts.txt"
    path.write_text("".join(" ".join(rng.choices(WORDS, k=rng.randint(2, 9))) + "\n" for _ in range(50)))
    return str(path)


def files(folder):
    return {path.relative_to(folder): path.read_bytes() for path in sorted(Path(folder).rglob("*.parquet"))}


def test_planted_heads_are_found(data, tmp_path):
    model = planted_gpt()
    save_checkpoint(tmp_path / "planted", model.module, tiny_tokenizer())
    arguments = ["atlas", "--data", data, "--model", tmp_path / "planted", "--out", tmp_path / "out", "--shard", 20]
    result = CliRunner().invoke(main, [*map(str, arguments)])
    assert result.exit_code == 0, result.output
    atlas = Atlas.read(tmp_path / "out")
    heads = atlas.heads.set_index(["layer", "head"])
    for measure, place, least in (
        ("previous", PREVIOUS, 0.8),
        ("induction", INDUCTION, 0.7),
        ("punctuation", PUNCTUATION, 0.3),
    ):
        ranked = heads[measure].sort_values(ascending=False)
        assert ranked.index[0] == place, ranked
        assert ranked.iloc[0] > least > 1.2 * ranked.iloc[1], ranked
    best = atlas.examples.set_index(["layer", "head", "rank"]).loc[(*INDUCTION, 1)]
    tokens = model.trace(best.text).tokens["tgt"]
    assert tokens[best.query] == best.query_token == tokens[best.key - 1]
    assert best.weight > 0.9
    assert Path(data).read_text().splitlines()[best.line - 1] == best.text


def test_an_atlas_has_the_scores_of_the_explorer(data, tmp_path):
    model = tiny_translator()
    atlas = build(model, data, tmp_path / "out", shard=50)
    texts = Path(data).read_text().splitlines()
    for stack, part in atlas.heads.groupby("stack"):
        for name, mean in mean_head_scores(model.trace_many(texts), *stack.split(".")).items():
            assert part[name].to_numpy().reshape(mean.shape) == pytest.approx(mean, rel=1e-9)
    assert set(atlas.heads["stack"]) == {"encoder.self_attn", "decoder.self_attn", "decoder.cross_attn"}
    assert {measure.name for measure in MEASURES} > {score.name for score in SCORES}


def test_the_spread_is_that_of_the_means_of_texts(data, tmp_path):
    model = tiny_gpt()
    atlas = build(model, data, tmp_path / "out")
    texts = Path(data).read_text().splitlines()
    means = np.stack([mean_head_scores(trace, "decoder")["entropy"] for trace in model.trace_many(texts)])
    assert atlas.heads["entropy_sd"].to_numpy() == pytest.approx(means.std(axis=0, ddof=1).ravel(), rel=1e-6)
    assert (atlas.heads["entropy_texts"] == 50).all()


def test_tables_read_with_pandas_have_a_schema_that_does_not_depend_on_the_data(data, tmp_path):
    build(tiny_gpt(), data, tmp_path / "a")
    build(tiny_translator(), data, tmp_path / "b", limit=3)
    for name in ("heads", "histograms", "offsets", "positions", "examples", "broken"):
        one, other = (pyarrow.parquet.read_schema(tmp_path / each / f"{name}.parquet") for each in "ab")
        assert one.remove_metadata() == other.remove_metadata()
    offsets = pd.read_parquet(tmp_path / "a" / "offsets.parquet")
    assert offsets["cells"].sum() == 4 * sum(
        len(tiny_gpt().tokenize(text)) ** 2 for text in Path(data).read_text().splitlines()
    )


def test_other_shards_give_the_same_to_the_precision_of_a_pass(data, tmp_path):
    """Which texts share a batch decides on the last bits of a float32."""
    one, other = (build(tiny_gpt(), data, tmp_path / str(size), shard=size) for size in (7, 50))
    pd.testing.assert_frame_equal(one.heads, other.heads, rtol=1e-5, atol=1e-6)


class _Stop(Exception):
    """Stands in for Ctrl+C, whose exception pytest would take for its own."""


def test_an_interrupted_run_goes_on_and_gives_the_same_bytes(data, tmp_path):
    build(tiny_gpt(), data, tmp_path / "whole", shard=10)
    computed = []

    def stop(rows, now):
        computed.append((rows, now))
        if len(computed) == 25:
            raise _Stop

    with pytest.raises(_Stop):
        build(tiny_gpt(), data, tmp_path / "halves", shard=10, progress=stop)
    kept = files(tmp_path / "halves")
    assert [path.name for path in kept] == ["00000.parquet", "00001.parquet"]
    with pytest.raises(DataError, match="is unfinished: repeat the command"):
        Atlas.read(tmp_path / "halves")
    counted = []
    build(tiny_gpt(), data, tmp_path / "halves", shard=10, progress=lambda *count: counted.append(count))
    assert counted == [(10, False)] * 2 + [(1, True)] * 30
    assert files(tmp_path / "halves") == files(tmp_path / "whole")
    assert not [*(tmp_path / "halves").rglob("*.part")]


def refused(message, folder, *arguments, **keywords):
    before = files(folder)
    with pytest.raises(DataError, match=message) as error:
        build(*arguments, folder, **keywords)
    assert "\n" not in str(error.value)
    assert files(folder) == before


def test_another_model_other_data_another_schema_and_other_shards_are_refused(data, tmp_path, monkeypatch):
    out = tmp_path / "out"
    build(tiny_gpt(), data, out, shard=20)
    refused(r"\.parquet is of another model \(tiny\): choose", out, tiny_gpt(seed=1), data, shard=20)
    refused("of 20 rows a shard, this would have 10", out, tiny_gpt(), data, shard=10)
    Path(data).write_text(Path(data).read_text().replace("went", "go"))
    refused("00000.parquet is of other data than rows 1 to 20", out, tiny_gpt(), data, shard=20)
    monkeypatch.setattr(schemas, "VERSION", 3)
    refused("of the schema 2, this is 3", out, tiny_gpt(), data, shard=20)
    (out / "histograms.parquet").unlink()  # as in an atlas of an earlier version
    with pytest.raises(DataError, match=r"heads.parquet is of the schema 2, this is 3: make the atlas again"):
        Atlas.read(out)


def test_files_that_are_no_atlas_are_not_overwritten(data, tmp_path):
    pd.DataFrame({"a": [1]}).to_parquet(tmp_path / "heads.parquet")
    refused("heads.parquet is no part of an atlas", tmp_path, tiny_gpt(), data)


def test_a_damaged_shard_is_named(data, tmp_path):
    out = tmp_path / "out"
    build(tiny_gpt(), data, out, shard=20)
    path = out / "shards" / "00001.parquet"
    path.write_bytes(path.read_bytes()[:-40])
    refused("00001.parquet is damaged .*delete it", out, tiny_gpt(), data, shard=20)


def test_rows_that_the_model_cannot_take_are_skipped_named_and_counted(data, tmp_path):
    lines = Path(data).read_text().splitlines()
    lines[3], lines[30] = "school " * 40, ""
    lines[31] = "to " * 99
    Path(data).write_bytes("\n".join(lines).encode().replace(b"likes", b"\xff", 1))
    atlas = build(tiny_gpt(), data, tmp_path / "out", shard=20)
    assert sorted(atlas.broken["line"])[-2:] == [4, 32] or {4, 32} < set(atlas.broken["line"])
    assert len(atlas.broken) == 3
    assert set(atlas.broken["file"]) == {data}
    reasons = atlas.broken.set_index("line")["reason"]
    assert "tokens long and the limit is 32" in reasons[4]
    assert "text is not UTF-8" in set(reasons)
    assert (atlas.heads["texts"] == 46).all()
    good = tmp_path / "good.txt"
    good.write_text("\n".join(line for i, line in enumerate(lines, 1) if i not in {*reasons.index, 31}))
    pd.testing.assert_frame_equal(build(tiny_gpt(), str(good), tmp_path / "good").heads, atlas.heads, rtol=1e-5)


def test_strict_ends_at_the_first_broken_row(data, tmp_path):
    lines = Path(data).read_text().splitlines()
    lines[33] = "school " * 40
    Path(data).write_text("\n".join(lines))
    with pytest.raises(VisformerError, match=rf"^{data}, line 34: The text is 41 tokens long"):
        build(tiny_gpt(), data, tmp_path / "a", shard=20, strict=True)
    assert len(files(tmp_path / "a")) == 1
    build(tiny_gpt(), data, tmp_path / "a", shard=20)
    with pytest.raises(VisformerError, match="line 34"):
        build(tiny_gpt(), data, tmp_path / "a", shard=20, strict=True)


def test_data_of_which_nothing_can_be_used_are_refused(tmp_path):
    (tmp_path / "a.txt").write_text("school " * 40)
    with pytest.raises(DataError, match=r"No row of .*a\.txt can be used: .*line 1: The text is 41"):
        build(tiny_gpt(), str(tmp_path / "a.txt"), tmp_path / "out")
    (tmp_path / "b.txt").write_text("\n \n")
    with pytest.raises(DataError, match=r"b\.txt holds no text"):
        build(tiny_gpt(), str(tmp_path / "b.txt"), tmp_path / "out2")


def test_effects_of_silenced_heads_are_those_of_the_first_texts(data, tmp_path):
    atlas = build(tiny_gpt(), data, tmp_path / "out", shard=20, effects=3)
    expected = head_effects(tiny_gpt(), Path(data).read_text().splitlines()[:3])
    pd.testing.assert_frame_equal(atlas.effects, expected)
    with pytest.raises(VisformerError, match="effects=201 is more than 200"):
        build(tiny_gpt(), data, tmp_path / "out", effects=201)


def test_a_histogram_is_of_the_values_of_texts(data, tmp_path):
    model = tiny_gpt()
    atlas = build(model, data, tmp_path / "out", shard=20)
    values = [mean_head_scores(trace, "decoder")["first"][1, 0] for trace in model.trace_many(lines(data))]
    found = histogram(atlas, "first", "decoder.self_attn", 1, 0)
    assert found["texts"].tolist() == np.histogram(values, np.linspace(0, 1, 21))[0].tolist()
    assert found.attrs["mean"] == pytest.approx(np.mean(values))
    assert found["others"].sum() == pytest.approx(1)
    assert not len(histogram(atlas, "alignment", "decoder.self_attn", 1, 0))
    with pytest.raises(DataError, match="has no head 9"):
        histogram(atlas, "first", "decoder.self_attn", 1, 9)


def lines(path):
    return Path(path).read_text().splitlines()


def test_silencing_goes_on_text_by_text_and_gives_the_same_bytes(data, tmp_path):
    build(tiny_gpt(), data, tmp_path / "whole", shard=20, effects=5)

    def stop(done, _total):
        if done == 3:
            raise _Stop

    with pytest.raises(_Stop):
        build(tiny_gpt(), data, tmp_path / "halves", shard=20, effects=5, silencing=stop)
    assert len([*(tmp_path / "halves" / "effects").iterdir()]) == 3
    counted = []
    build(tiny_gpt(), data, tmp_path / "halves", shard=20, effects=5, silencing=lambda *count: counted.append(count))
    assert counted == [(4, 5), (5, 5)]
    assert files(tmp_path / "halves") == files(tmp_path / "whole")


@given(st.permutations(range(6)))
def test_effects_are_merged_in_any_order(silenced, order):
    tables = [silenced[i] for i in order]
    assert effects_table(tables).equals(effects_table(silenced))


@pytest.fixture(scope="module")
def silenced(tmp_path_factory):
    folder = tmp_path_factory.mktemp("silenced")
    (folder / "a.txt").write_text("".join("I went to school the".rsplit(" ", i % 3)[0] + "\n" for i in range(6)))
    build(tiny_gpt(), str(folder / "a.txt"), folder / "out", effects=6)
    return [pyarrow.parquet.read_table(path) for path in sorted((folder / "out" / "effects").iterdir())]


def test_effects_of_texts_that_cannot_be_used_are_refused(tmp_path):
    (tmp_path / "a.txt").write_text("school " * 40 + "\nI went\n")
    with pytest.raises(DataError, match="cannot be silenced on any of the first texts: ask for more"):
        build(tiny_gpt(), str(tmp_path / "a.txt"), tmp_path / "out", effects=1)
    assert (build(tiny_gpt(), str(tmp_path / "a.txt"), tmp_path / "out", effects=2).effects["n"] == 1).all()


def test_effects_are_not_measured_again_and_skip_texts_that_cannot_be_used(data, tmp_path):
    texts = Path(data).read_text().splitlines()
    texts[1] = "school " * 40
    Path(data).write_text("\n".join(texts))
    counted = []
    first, second = (
        build(tiny_gpt(), data, tmp_path / "out", shard=20, effects=4, silencing=lambda *count: counted.append(count))
        for _ in range(2)
    )
    pd.testing.assert_frame_equal(first.effects, head_effects(tiny_gpt(), [texts[0], *texts[2:4]]))
    assert counted == [(done, 4) for done in range(1, 5)]  # none of the second run
    pd.testing.assert_frame_equal(second.effects, first.effects)
    assert (build(tiny_gpt(), data, tmp_path / "out", shard=20, effects=6).effects["n"] == 5).all()


def test_a_single_token_has_no_effects(tmp_path):
    plain = deepcopy(hub.tokenizer())  # which other tests use, too
    plain.backend_tokenizer.post_processor = processors.Sequence([])  # no special tokens, as GPT-2's
    model = wrap(hub.tiny_module("gpt2"), plain)
    (tmp_path / "a.txt").write_text("you\nI went to school\n")
    atlas = build(model, str(tmp_path / "a.txt"), tmp_path / "out", effects=2)
    pd.testing.assert_frame_equal(atlas.effects, head_effects(model, ["I went to school"]))


def test_a_target_is_forced_and_aligned(tmp_path):
    path = tmp_path / "pairs.tsv"
    path.write_text("text\ttarget\talignment\nI went\t我去\t0-0 1-1\n")
    atlas = build(tiny_translator(), str(path), tmp_path / "out")
    trace = tiny_translator().trace("I went", "我去")
    heads = atlas.heads[atlas.heads["stack"] == "decoder.cross_attn"]
    assert (heads["entropy_rows"] == len(trace.tokens["tgt"])).all()
    assert (heads["alignment_rows"] > 0).all()
    assert set(atlas.examples["target"]) == {"我去"}


def test_columns_that_the_model_has_no_use_for_are_refused(data, tmp_path):
    with pytest.raises(VisformerError, match="tiny takes no pair"):
        build(tiny_gpt(), Data(data, Columns(pair="2")), tmp_path / "out")


def test_a_fingerprint_tells_models_apart_and_is_the_same_each_time():
    one = fingerprint(tiny_gpt())
    assert one == fingerprint(tiny_gpt())
    assert one != fingerprint(tiny_gpt(seed=1))
    assert len(one) == hashlib.sha256().digest_size * 2


def test_reading_where_there_is_no_atlas(tmp_path):
    with pytest.raises(DataError, match="There is no atlas in"):
        Atlas.read(tmp_path)


def test_a_folder_that_cannot_be_made_is_named(data, tmp_path):
    (tmp_path / "file").write_text("")
    with pytest.raises(OSError, match="file/out/shards"):
        build(tiny_gpt(), data, tmp_path / "file" / "out")
