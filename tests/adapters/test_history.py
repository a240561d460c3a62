"""vf.moments and vf.load(moment=): histories of our own trainings, as kept and as packed."""

import json
import shutil
import subprocess
import sys
from dataclasses import replace
from functools import partial

import pytest
import torch

import visformer as vf
from scripts import bundle
from tests.support import tiny_config, tiny_tokenizer
from visformer.adapters.checkpoints import folder_of, head_scores
from visformer.adapters.load import nbytes_of
from visformer.adapters.names import require_model
from visformer.errors import CheckpointError
from visformer.model.checkpoints import load_checkpoint, pack, save_checkpoint
from visformer.system.files import damaged, write_sums
from visformer.training.data import Pair, pair_batches
from visformer.training.evaluation.alignment import read_aligned
from visformer.training.train import TrainingPlan, train, validation_loss

PAIRS = [Pair("I went to school.", "我去学校。"), Pair("She likes school.", "她喜欢学校。")] * 4
LOOKED_AT, HELD_OUT = PAIRS[:2], PAIRS[1:3]
PLAN = TrainingPlan(epochs=3, batch_tokens=60, learning_rate=1e-2, warmup_steps=2, keep_moments=5, seed=3)


def trained_in(folder, plan=PLAN):
    """Train a tiny model as ``visformer train`` does, and return it."""
    model = train(
        plan,
        tiny_config(dropout=0.1, tie_embeddings=True),
        epoch_batches=lambda epoch: pair_batches(tiny_tokenizer(), PAIRS, tokens=60, seed=epoch),
        valid=pair_batches(tiny_tokenizer(), LOOKED_AT, tokens=6000),
        folder=folder,
    )
    save_checkpoint(folder / "checkpoint", model, tiny_tokenizer())
    return model


def same_weights(model, other):
    return all(torch.equal(p, q) for p, q in zip(model.parameters(), other.parameters(), strict=True))


@pytest.fixture(scope="module")
def own(tmp_path_factory):
    """The checkpoint of a training that kept five moments."""
    folder = tmp_path_factory.mktemp("run")
    trained_in(folder)
    return folder / "checkpoint"


def bundle_moments(source, target, most_bytes=10**6):
    """Pack the moments; a few of the aligned pairs will do."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(bundle, "read_aligned", lambda path: read_aligned(path)[:4])
        bundle.bundle_moments(source, target, LOOKED_AT, HELD_OUT, most_bytes=most_bytes)


@pytest.fixture(scope="module")
def bundled(own, tmp_path_factory):
    """A copy of it, packed and measured as the bundled model is."""
    target = tmp_path_factory.mktemp("bundled")
    save_checkpoint(target, *load_checkpoint(own))
    bundle_moments(own, target)
    return target


@pytest.fixture
def packed(bundled, tmp_path):
    """The same, for tests to damage."""
    return shutil.copytree(bundled, tmp_path / "packed")


def test_the_first_moment_is_what_training_began_with(tmp_path):
    """Bit for bit: with a learning rate of 0 the weights at the end are those at the beginning."""
    model = trained_in(tmp_path, replace(PLAN, learning_rate=0.0))
    assert same_weights(vf.load(tmp_path / "checkpoint", moment=0).module, model)


def test_the_moments_of_a_training_with_their_figures(own):
    table = vf.moments(own)
    assert list(table.columns) == ["moment", "step", "tokens", "loss"]
    assert table.moment.tolist() == [0, 1, 2, 3, 4]
    steps, tokens = table.step.tolist(), table.tokens.tolist()
    assert steps[0] == tokens[0] == 0
    assert steps == sorted(set(steps)) and tokens == sorted(set(tokens))
    assert table.loss.isna().tolist() == [True, False, False, False, False]
    batches = pair_batches(tiny_tokenizer(), LOOKED_AT, tokens=6000)
    for number, loss in zip(table.moment[1:], table.loss[1:], strict=True):
        model = vf.load(own, moment=number)
        assert validation_loss(model.module, batches) == pytest.approx(loss, abs=2e-3), "the weights are float16"


def test_a_moment_tells_which_it_is(own):
    model = vf.load(own, moment=2)
    assert (model.info.name, model.info.moment) == (f"{own.parent.name}/checkpoint@2", 2)
    trace = model.trace("I went to school.", "我去学校。")
    assert (trace.meta["model"], trace.meta["moment"]) == (model.info.name, 2)
    plain = vf.load(own)
    assert "@" not in plain.info.name and plain.info.moment is None
    assert "moment" not in plain.trace("I went to school.", "我去学校。").meta


def test_numbers_count_as_in_a_list(own):
    last = vf.load(own, moment=-1)
    assert last.info.moment == 4
    assert same_weights(last.module, vf.load(own).module)
    assert not same_weights(vf.load(own, moment=-2).module, last.module)
    assert same_weights(vf.load(own, moment=-5).module, vf.load(own, moment=0).module)


def test_a_name_may_contain_the_moment(own, tmp_path, monkeypatch):
    assert same_weights(vf.load(f"{own}@1").module, vf.load(own, moment=1).module)
    assert vf.load(f"{own}@1").info == vf.load(own, moment=1).info
    assert nbytes_of(f"{own}@1") == nbytes_of(str(own)) > 10_000
    require_model(f"{own}@4")
    for use in (vf.load, require_model):
        with pytest.raises(CheckpointError, match=r"^moment=5: .*has the moments 0 to 4"):
            use(f"{own}@5")
    assert nbytes_of(f"{own}@5") == 0
    (tmp_path / "mine@1").symlink_to(own)
    monkeypatch.chdir(tmp_path)
    assert vf.load("mine@1").info.name == "mine@1", "a folder may have such a name"
    assert vf.load("mine@1").info.moment is None


@pytest.mark.parametrize("moment", [5, -6, 2.0, "2"])
def test_there_is_no_such_moment(own, moment):
    with pytest.raises(CheckpointError, match=rf"^moment={moment!r}: .*has the moments 0 to 4; -1 is the last one\.$"):
        vf.load(own, moment=moment)


@pytest.mark.parametrize("name", ["untrained", "nobody/nothing", "checkpoint without moments"])
def test_a_model_without_a_history(name, tmp_path):
    if name not in ("untrained", "nobody/nothing"):
        name = str(tmp_path)
        save_checkpoint(tmp_path, vf.Transformer(tiny_config()), tiny_tokenizer())
    for ask in (vf.moments, lambda name: vf.load(name, moment=0), lambda name: vf.load(f"{name}@0")):
        with pytest.raises(CheckpointError, match=f"^'{name}' has no history: there is one of .*--keep-moments"):
            ask(name)


def test_a_text_that_names_no_file_is_an_error_of_ours():
    for name in ("x" * 300, "x" * 300 + "@1", "x/" * 3000):
        for look_up in (vf.load, vf.moments, require_model, head_scores, partial(vf.load, moment=1)):
            with pytest.raises(CheckpointError, match="cannot be the name of a model"):
                look_up(name)


def test_a_running_training_has_the_moments_so_far(own, tmp_path):
    (tmp_path / "moments").symlink_to(own / "moments")
    assert vf.moments(tmp_path).equals(vf.moments(own)[:-1])


# Packed, as the bundled models are ------------------------------------------------------------------------------------


@pytest.mark.full
def test_packed_moments_have_the_figures_of_what_is_shipped(own, packed):
    trained, shipped = vf.moments(own), vf.moments(packed)
    figures = ["loss", "bleu_en_zh", "bleu_zh_en", "aer_en_zh", "aer_zh_en"]
    assert list(shipped.columns) == ["moment", "step", "tokens", *figures, "kl"]
    assert shipped[["moment", "step", "tokens"]].equals(trained[["moment", "step", "tokens"]])
    assert not shipped[figures].isna().any(axis=None)
    assert shipped.kl.isna().tolist() == [True, False, False, False, True], "the first and the last are not rounded"
    assert 0 < shipped.kl.min() <= shipped.kl.max() <= bundle.MOST_DIVERGENCE
    batches = pair_batches(tiny_tokenizer(), LOOKED_AT, tokens=6000)
    for number, loss in enumerate(shipped.loss):
        model = vf.load(packed, moment=number)
        assert validation_loss(model.module, batches) == pytest.approx(loss, rel=1e-6)
        assert same_weights(model.module, vf.load(own, moment=number).module) == (number in (0, 4))


def test_a_history_is_read_without_torch(own, packed):
    code = "import sys, visformer as vf; print(*map(len, map(vf.moments, sys.argv[1:])), 'torch' in sys.modules)"
    command = [sys.executable, "-c", code, str(own), str(packed)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=300, check=True)
    assert done.stdout.split() == ["5", "5", "False"]


def test_checksums_cover_the_moments(packed):
    write_sums(packed)
    assert list(damaged(packed)) == []
    for path in (packed / "moments").iterdir():
        content = path.read_bytes()
        path.write_bytes(content + b" ")
        assert [file for file, _ in damaged(packed)] == [path]
        path.write_bytes(content)


@pytest.mark.parametrize("damage", ["missing", "cut off", "another model's"])
def test_a_damaged_moment_is_reported_with_its_file_and_a_remedy(packed, damage):
    path = sorted((packed / "moments").glob("*.z"))[1]
    if damage == "missing":
        path.unlink()
    else:
        other = pack({"output.weight": torch.ones(2, 3)})
        path.write_bytes(path.read_bytes()[:-9] if damage == "cut off" else other)
    with pytest.raises(
        CheckpointError, match=rf"{path.name} cannot be read \(.*\): copy it anew from where it comes from\.$"
    ):
        vf.load(packed, moment=2)
    assert len(vf.moments(packed)) == 5
    vf.load(packed, moment=1)


@pytest.mark.parametrize("content", [b"", b"{}", b"\xff", b'{"seed": 1, "moments": []}', b"[" * 100_000])
def test_a_damaged_list_of_moments_is_reported_with_a_remedy(packed, content):
    path = packed / "moments" / "moments.json"
    path.write_bytes(content)
    for ask in (vf.moments, lambda name: vf.load(name, moment=1)):
        with pytest.raises(CheckpointError, match=rf"^{path} cannot be read \(.*\): copy it anew .*\.$"):
            ask(packed)
    vf.load(packed)


@pytest.mark.full
@pytest.mark.parametrize(("most_bytes", "divergence"), [(1, bundle.MOST_DIVERGENCE), (10**6, 1e-9)])
def test_moments_too_large_or_too_coarse_are_not_bundled(own, packed, most_bytes, divergence, monkeypatch):
    monkeypatch.setattr(bundle, "MOST_DIVERGENCE", divergence)
    with pytest.raises(ValueError, match="more than may be shipped"):
        bundle_moments(own, packed, most_bytes)


@pytest.mark.parametrize("name", bundle.MOST_BYTES)
def test_bundled_moments_are_small_and_close_to_the_trained_ones(name):
    folder = folder_of(name) / "moments"
    assert sum(path.stat().st_size for path in folder.iterdir()) <= bundle.MOST_BYTES[name]
    told = json.loads((folder / "moments.json").read_text(encoding="utf-8"))["moments"]
    assert len(told) == 10
    assert max(row["kl"] for row in told[1:-1]) <= bundle.MOST_DIVERGENCE


def test_only_the_trained_model_itself_is_unsure_by_the_threshold_of_its_evaluation(own, tmp_path):
    folder = shutil.copytree(own, tmp_path / "checkpoint")
    (folder / "evaluation.json").write_text('{"calibration": {"threshold": 0.4}}', encoding="utf-8")
    assert [vf.load(folder, moment=i).unsure_below for i in (0, 1, -1)] == [None, None, 0.4]
