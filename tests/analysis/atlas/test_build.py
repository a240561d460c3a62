"""From a file to an atlas: planted heads are found, runs resume, and nothing of another atlas is overwritten."""

import random
from copy import deepcopy
from pathlib import Path

import numpy as np
import pandas as pd
import pyarrow.parquet
import pytest
from click.testing import CliRunner
from tokenizers import processors

from tests.adapters.huggingface import hub
from tests.analysis.atlas.planted import INDUCTION, PREVIOUS, PUNCTUATION, planted_gpt
from tests.support import tiny_gpt, tiny_tokenizer, tiny_translator
from visformer.adapters.load import wrap
from visformer.analysis import head_effects, mean_head_scores
from visformer.analysis.atlas import MEASURES, Atlas, Data, build, histogram, parts
from visformer.analysis.atlas.data import Columns
from visformer.analysis.atlas.parts import fingerprint
from visformer.analysis.atlas.run import effects_table
from visformer.analysis.heads import SCORES
from visformer.cli import main
from visformer.errors import DataError, VisformerError
from visformer.model.checkpoints import save_checkpoint

WORDS = ("I", "went", "to", "school", "She", "likes", "the", "school.", "to,")
RNG = random.Random(0)
TEXTS = [" ".join(RNG.choices(WORDS, k=RNG.randint(2, 9))) for _ in range(20)]
TOO_LONG = "school " * 40


def written(path, texts):
    path.write_text("".join(f"{text}\n" for text in texts))
    return str(path)


@pytest.fixture
def data(tmp_path):
    return written(tmp_path / "texts.txt", TEXTS)


@pytest.fixture(scope="module")
def built(tmp_path_factory):
    """An atlas of all texts in shards of 8, with the effects on the first five; its folder and its data."""
    path = tmp_path_factory.mktemp("built")
    data = written(path / "texts.txt", TEXTS)
    return build(tiny_gpt(), data, path / "out", shard=8, effects=5), path / "out", data


def files(folder):
    return {path.relative_to(folder): path.read_bytes() for path in sorted(Path(folder).rglob("*.parquet"))}


def test_planted_heads_are_found(data, tmp_path):
    model = planted_gpt()
    save_checkpoint(tmp_path / "planted", model.module, tiny_tokenizer())
    arguments = ["atlas", "--data", data, "--model", tmp_path / "planted", "--out", tmp_path / "out", "--shard", 8]
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
    assert TEXTS[best.line - 1] == best.text


def test_an_atlas_has_the_scores_of_the_explorer(data, tmp_path):
    model = tiny_translator()
    atlas = build(model, data, tmp_path / "out", shard=len(TEXTS))
    for stack, part in atlas.heads.groupby("stack"):
        for name, mean in mean_head_scores(model.trace_many(TEXTS), stack).items():
            assert part[name].to_numpy().reshape(mean.shape) == pytest.approx(mean, rel=1e-9)
    assert set(atlas.heads["stack"]) == {"encoder.self_attn", "decoder.self_attn", "decoder.cross_attn"}
    assert {measure.name for measure in MEASURES} > {score.name for score in SCORES}


def test_spread_histograms_and_effects_are_those_of_the_texts(built):
    atlas, *_ = built
    scores = [mean_head_scores(trace, "decoder.self_attn") for trace in tiny_gpt().trace_many(TEXTS)]
    entropies = np.stack([score["entropy"] for score in scores])
    assert atlas.heads["entropy_sd"].to_numpy() == pytest.approx(entropies.std(axis=0, ddof=1).ravel(), rel=1e-6)
    assert (atlas.heads["entropy_texts"] == len(TEXTS)).all()

    values = [score["first"][1, 0] for score in scores]
    found = histogram(atlas, "first", "decoder.self_attn", 1, 0)
    assert found["texts"].tolist() == np.histogram(values, np.linspace(0, 1, 21))[0].tolist()
    assert found.attrs["mean"] == pytest.approx(np.mean(values))
    assert found["others"].sum() == pytest.approx(1)
    assert not len(histogram(atlas, "alignment", "decoder.self_attn", 1, 0))
    with pytest.raises(DataError, match="has no head 9"):
        histogram(atlas, "first", "decoder.self_attn", 1, 9)

    pd.testing.assert_frame_equal(atlas.effects, head_effects(tiny_gpt(), TEXTS[:5]))


def test_tables_read_with_pandas_have_a_schema_that_does_not_depend_on_the_data(built, data, tmp_path):
    _, folder, _ = built
    build(tiny_translator(), data, tmp_path / "other", limit=3)
    for name in ("heads", "histograms", "offsets", "positions", "examples", "broken"):
        one, other = (pyarrow.parquet.read_schema(each / f"{name}.parquet") for each in (folder, tmp_path / "other"))
        assert one.remove_metadata() == other.remove_metadata()
    offsets = pd.read_parquet(folder / "offsets.parquet")
    assert offsets["cells"].sum() == 4 * sum(len(tiny_gpt().tokenize(text)) ** 2 for text in TEXTS)


def test_other_shards_give_the_same_to_the_precision_of_a_pass(built, data, tmp_path):
    """Which texts share a batch decides on the last bits of a float32."""
    other = build(tiny_gpt(), data, tmp_path / "out", shard=20)
    pd.testing.assert_frame_equal(built[0].heads, other.heads, rtol=1e-5, atol=1e-6)


class _Stop(Exception):
    """Stands in for Ctrl+C, whose exception pytest would take for its own."""


def test_an_interrupted_run_goes_on_and_gives_the_same_bytes(built, tmp_path):
    """First while texts are counted, then while heads are silenced."""
    _, whole, data = built
    out, counted, silenced = tmp_path / "out", [], []

    def again(*, counting=0, silencing=0):
        """Go on with the atlas until something was reported so many times."""

        def told(reports, most):
            def tell(*report):
                reports.append(report)
                if len(reports) == most:
                    raise _Stop

            reports.clear()
            return tell

        build(
            tiny_gpt(), data, out, shard=8, effects=5,
            progress=told(counted, counting), silencing=told(silenced, silencing),
        )  # fmt: skip

    with pytest.raises(_Stop):
        again(counting=18)
    assert [path.name for path in files(out)] == ["00000.parquet", "00001.parquet"]
    with pytest.raises(DataError, match="is unfinished: repeat the command"):
        Atlas.read(out)
    with pytest.raises(_Stop):
        again(silencing=3)
    assert counted == [(8, False)] * 2 + [(1, True)] * 4
    assert len([*(out / "effects").iterdir()]) == 3
    again()
    assert counted == [(8, False)] * 2 + [(4, False)]
    assert silenced == [(4, 5), (5, 5)]
    assert files(out) == files(whole)
    assert not [*out.rglob("*.part")]


def test_effects_are_merged_in_any_order(built):
    tables = [pyarrow.parquet.read_table(path) for path in sorted((built[1] / "effects").iterdir())]
    in_order = effects_table(tables)
    for seed in range(20):
        assert effects_table(random.Random(seed).sample(tables, len(tables))).equals(in_order)


def refused(message, folder, *arguments, **keywords):
    before = files(folder)
    with pytest.raises(DataError, match=message) as error:
        build(*arguments, folder, **keywords)
    assert "\n" not in str(error.value)
    assert files(folder) == before


def test_another_model_other_data_another_schema_and_other_shards_are_refused(data, tmp_path, monkeypatch):
    out = tmp_path / "out"
    build(tiny_gpt(), data, out, shard=8)
    refused(r"\.parquet is of another model \(tiny\): choose", out, tiny_gpt(seed=1), data, shard=8)
    refused("of 8 rows a shard, this would have 5", out, tiny_gpt(), data, shard=5)
    Path(data).write_text(Path(data).read_text().replace("went", "go"))
    refused("00000.parquet is of other data than rows 1 to 8", out, tiny_gpt(), data, shard=8)
    monkeypatch.setattr(parts, "SCHEMA", 3)
    refused("of the schema 2, this is 3", out, tiny_gpt(), data, shard=8)
    (out / "histograms.parquet").unlink()  # as in an atlas of an earlier version
    with pytest.raises(DataError, match=r"heads.parquet is of the schema 2, this is 3: make the atlas again"):
        Atlas.read(out)


def test_files_that_are_no_atlas_are_not_overwritten_and_a_damaged_shard_is_named(data, tmp_path):
    pd.DataFrame({"a": [1]}).to_parquet(tmp_path / "heads.parquet")
    refused("heads.parquet is no part of an atlas", tmp_path, tiny_gpt(), data)
    out = tmp_path / "out"
    build(tiny_gpt(), data, out, shard=8)
    path = out / "shards" / "00001.parquet"
    path.write_bytes(path.read_bytes()[:-40])
    refused("00001.parquet is damaged .*delete it", out, tiny_gpt(), data, shard=8)


def test_rows_that_the_model_cannot_take_are_skipped_named_and_counted(data, tmp_path):
    lines = list(TEXTS)
    lines[3], lines[10], lines[11] = TOO_LONG, "", "to " * 99
    Path(data).write_bytes("\n".join(lines).encode().replace(b"likes", b"\xff", 1))
    atlas = build(tiny_gpt(), data, tmp_path / "out", shard=8)
    assert {4, 12} < set(atlas.broken["line"]) and len(atlas.broken) == 3
    assert set(atlas.broken["file"]) == {data}
    reasons = atlas.broken.set_index("line")["reason"]
    assert "tokens long and the limit is 32" in reasons[4]
    assert "text is not UTF-8" in set(reasons)
    assert (atlas.heads["texts"] == 16).all()
    good = written(tmp_path / "good.txt", [text for i, text in enumerate(lines, 1) if i not in {*reasons.index, 11}])
    pd.testing.assert_frame_equal(build(tiny_gpt(), good, tmp_path / "good").heads, atlas.heads, rtol=1e-5)


def test_strict_ends_at_the_first_broken_row(tmp_path):
    data = written(tmp_path / "texts.txt", [*TEXTS[:13], TOO_LONG, *TEXTS[14:]])
    with pytest.raises(VisformerError, match=rf"^{data}, line 14: The text is 41 tokens long"):
        build(tiny_gpt(), data, tmp_path / "a", shard=8, strict=True)
    assert len(files(tmp_path / "a")) == 1
    build(tiny_gpt(), data, tmp_path / "a", shard=8)
    with pytest.raises(VisformerError, match="line 14"):
        build(tiny_gpt(), data, tmp_path / "a", shard=8, strict=True)


def test_data_of_which_nothing_can_be_used_are_refused(data, tmp_path):
    with pytest.raises(DataError, match=r"No row of .*a\.txt can be used: .*line 1: The text is 41"):
        build(tiny_gpt(), written(tmp_path / "a.txt", [TOO_LONG]), tmp_path / "out")
    with pytest.raises(DataError, match=r"b\.txt holds no text"):
        build(tiny_gpt(), written(tmp_path / "b.txt", ["", " "]), tmp_path / "out2")
    with pytest.raises(VisformerError, match="effects=201 is more than 200"):
        build(tiny_gpt(), data, tmp_path / "out3", effects=201)
    with pytest.raises(VisformerError, match="tiny takes no pair"):
        build(tiny_gpt(), Data(data, Columns(pair="2")), tmp_path / "out4")


def test_effects_are_not_measured_again_and_skip_texts_that_cannot_be_used(tmp_path):
    data = written(tmp_path / "a.txt", [TOO_LONG, *TEXTS[:3]])
    with pytest.raises(DataError, match="cannot be silenced on any of the first texts: ask for more"):
        build(tiny_gpt(), data, tmp_path / "none", effects=1)
    counted = []
    first, second = (
        build(tiny_gpt(), data, tmp_path / "out", effects=3, silencing=lambda *count: counted.append(count))
        for _ in range(2)
    )
    pd.testing.assert_frame_equal(first.effects, head_effects(tiny_gpt(), TEXTS[:2]))
    assert counted == [(done, 3) for done in range(1, 4)]  # none of the second run
    pd.testing.assert_frame_equal(second.effects, first.effects)
    assert (build(tiny_gpt(), data, tmp_path / "out", effects=4).effects["n"] == 3).all()


def test_a_single_token_has_no_effects(tmp_path):
    plain = deepcopy(hub.tokenizer())  # which other tests use, too
    plain.backend_tokenizer.post_processor = processors.Sequence([])  # no special tokens, as GPT-2's
    model = wrap(hub.tiny_module("gpt2"), plain)
    atlas = build(model, written(tmp_path / "a.txt", ["you", "I went to school"]), tmp_path / "out", effects=2)
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


def test_a_fingerprint_tells_models_apart_and_is_the_same_each_time():
    one = fingerprint(tiny_gpt())
    assert one == fingerprint(tiny_gpt()) != fingerprint(tiny_gpt(seed=1))
    assert len(one) == 64, "a SHA-256"


def test_folders_without_an_atlas_and_those_that_cannot_be_made_are_named(data, tmp_path):
    with pytest.raises(DataError, match="There is no atlas in"):
        Atlas.read(tmp_path)
    (tmp_path / "file").write_text("")
    with pytest.raises(OSError, match="file/out/shards"):
        build(tiny_gpt(), data, tmp_path / "file" / "out")
