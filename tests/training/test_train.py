"""Training: the loss, dropout, optimizer and schedule, and runs that resume and keep moments."""

import csv
import json
import shutil
from dataclasses import replace

import pytest
import torch
from safetensors import safe_open
from torch.nn import functional as F

from tests.support import tiny_config, tiny_tokenizer
from visformer.errors import CheckpointError, VisformerError
from visformer.model.config import GPTConfig
from visformer.model.gpt import GPT
from visformer.model.kinds import initial_model
from visformer.model.transformer import Transformer
from visformer.training.data import Batch, Pair, pair_batches
from visformer.training.train import (
    FastDropout,
    Muon,
    TrainingPlan,
    learning_rate,
    moment_steps,
    orthogonalised,
    smoothed_loss,
    train,
    use_fast_dropout,
    validation_loss,
)

PAIRS = [Pair("I went to school.", "我去学校。"), Pair("She likes school.", "她喜欢学校。")] * 4
PLAN = TrainingPlan(epochs=3, learning_rate=1e-2, warmup_steps=2)
CONFIG = tiny_config(dropout=0.1, tie_embeddings=True)


def epoch_batches(epoch):
    pairs, bpe_dropout = [*PAIRS, Pair(f"{epoch}", f"{epoch}", "zh-en")], 0.1 if epoch < 2 else 0.0
    return pair_batches(tiny_tokenizer(), pairs, tokens=60, seed=epoch, bpe_dropout=bpe_dropout)


def run(folder, plan=PLAN):
    valid = pair_batches(tiny_tokenizer(), PAIRS[:2], tokens=6000)
    return train(plan, CONFIG, epoch_batches=epoch_batches, valid=valid, folder=folder)


@pytest.fixture(scope="module")
def finished(tmp_path_factory):
    """The model of a run that was never interrupted, and its folder."""
    folder = tmp_path_factory.mktemp("finished")
    return run(folder), folder


@pytest.fixture
def copied(finished, tmp_path):
    """A folder like that of the finished run, which a test may change."""
    return shutil.copytree(finished[1], tmp_path / "copied")


def assert_equal_parameters(model, other):
    for p, q in zip(model.parameters(), other.parameters(), strict=True):
        assert torch.equal(p, q)


def curve(folder):
    """Return the rows of a training curve."""
    with (folder / "checkpoint" / "curve.csv").open() as file:
        return list(csv.DictReader(file))


@pytest.mark.parametrize("smoothing", [0.0, 0.1])
@pytest.mark.parametrize(("dtype", "tolerance"), [(torch.float64, 1e-12), (torch.bfloat16, 1e-2)])
def test_the_smoothed_loss_and_its_gradient_equal_torch(smoothing, dtype, tolerance):
    logits = torch.randn(300, 31, dtype=dtype, requires_grad=True)  # more rows than in one chunk
    target = torch.randint(0, 31, (300,))  # some of them 0, padding
    ours = smoothed_loss(logits, target, smoothing)
    theirs = F.cross_entropy(logits.double(), target, label_smoothing=smoothing, ignore_index=0)
    assert ours.item() == pytest.approx(theirs.item(), abs=tolerance)
    grads = [torch.autograd.grad(loss, logits)[0] for loss in (ours, theirs)]
    torch.testing.assert_close(*grads, atol=tolerance / 100, rtol=tolerance)


def test_fast_dropout_drops_its_share_and_keeps_the_mean():
    x, drop = torch.ones(1000, 333), FastDropout(0.25)
    y = drop(x)
    assert (y == 0).float().mean().item() == pytest.approx(0.25, abs=0.003)
    assert y.mean().item() == pytest.approx(1.0, abs=0.005)
    assert y.unique().tolist() == pytest.approx([0.0, 4 / 3])
    assert not torch.equal(drop(x), y)
    assert torch.equal(drop.eval()(x), x)


def test_fast_dropout_replaces_every_dropout():
    model = Transformer(tiny_config(dropout=0.25))
    use_fast_dropout(model)
    kinds = [type(module) for module in model.modules()]
    assert torch.nn.Dropout not in kinds
    assert kinds.count(FastDropout) == 2 + 2 + 3  # embeddings, encoder blocks, decoder blocks


def test_the_learning_rate_rises_during_warmup_and_then_falls_to_zero():
    rates = [learning_rate(replace(PLAN, warmup_steps=10), step, step / 100) for step in range(101)]
    assert rates.index(max(rates)) in (8, 9)
    assert rates[0] == pytest.approx(PLAN.learning_rate / 10)
    assert rates[100] == 0
    assert rates[:10] == sorted(rates[:10])
    assert rates[10:] == sorted(rates[10:], reverse=True)


@pytest.mark.parametrize("shape", [(1, 8, 8), (3, 8, 20)])
def test_an_orthogonalised_matrix_has_singular_values_near_one(shape):
    """Five steps of the published polynomial give 0.7 to 1.2, less for tiny singular values."""
    values = torch.linalg.svdvals(orthogonalised(torch.randn(shape)))
    assert values.min() > 0.3
    assert values.max() < 1.3


def test_muon_finds_the_minimum_of_a_quadratic():
    weight, goal = torch.nn.Parameter(torch.zeros(6, 4)), torch.randn(6, 4)
    optimizer = Muon([weight], lr=0.05)
    for step in range(300):
        optimizer.param_groups[0]["lr"] = 0.05 * (1 - step / 300)
        optimizer.zero_grad()
        (weight - goal).square().sum().backward()
        optimizer.step()
    assert (weight - goal).abs().max() < 0.05


def test_training_lowers_the_loss(finished):
    rows = curve(finished[1])
    assert [row["epoch"] for row in rows] == ["1", "2", "3"]
    assert float(rows[-1]["valid_loss"]) < float(rows[0]["valid_loss"])


def test_an_interrupted_run_resumes_and_is_reproducible(finished, tmp_path, monkeypatch):
    calls = []

    def interrupted(*args):
        calls.append(1)
        if len(calls) == 2:
            raise KeyboardInterrupt
        return validation_loss(*args)

    monkeypatch.setattr("visformer.training.train.validation_loss", interrupted)
    with pytest.raises(KeyboardInterrupt):
        run(tmp_path)
    monkeypatch.undo()
    assert_equal_parameters(finished[0], run(tmp_path))


def test_a_decoder_only_model_is_trained_in_the_same_way(tmp_path):
    batch = Batch((torch.tensor([[1, 5, 6, 7]]),), torch.tensor([[0, 6, 7, 0]]))
    plan = TrainingPlan(epochs=30, learning_rate=1e-2, warmup_steps=2, label_smoothing=0.0)
    model = train(
        plan,
        GPTConfig(9, d_model=8, n_heads=2, n_layers=1, d_ff=8, max_len=4, dropout=0.0),
        epoch_batches=lambda epoch: [batch],
        valid=[batch],
        folder=tmp_path,
        measure=lambda model: {"of mine": float(model.training)},
    )
    assert isinstance(model, GPT)
    with torch.inference_mode():
        assert model(*batch.inputs).argmax(dim=-1)[0, 1:3].tolist() == [6, 7]
    rows = curve(tmp_path)
    assert float(rows[-1]["valid_loss"]) < 1 < 2 < float(rows[0]["valid_loss"])
    assert {row["of mine"] for row in rows} == {"0.0"}, "measured without dropout"
    assert rows[-1]["tokens"] == str(4 * 30)


def test_the_steps_of_moments_grow_by_one_factor():
    steps = moment_steps(10, 10**9)
    assert steps == [10**i for i in range(1, 9)]
    assert moment_steps(10, 12_000) == [3, 8, 23, 65, 185, 524, 1488, 4226]
    assert moment_steps(10, 20) == [1, 2, 3, 4, 5, 7, 10, 14], "none twice"


def test_moments_are_kept_without_changing_the_run_or_mixing_with_those_of_another(finished, tmp_path):
    assert_equal_parameters(finished[0], run(tmp_path, replace(PLAN, keep_moments=5)))
    files = sorted((tmp_path / "checkpoint" / "moments").iterdir())
    assert len(files) == 3
    far, tokens = [], [0]
    for path in files:
        with safe_open(path, framework="pt") as file:
            told = {key: json.loads(value) for key, value in file.metadata().items()}
            name = "decoder.layers.0.ffn.w_1.weight"
            start = initial_model(CONFIG, PLAN.seed).get_parameter(name)
            far.append((file.get_tensor(name).float() - start).norm().item())
        assert path.name == f"step-{told['step']:07d}.safetensors"
        tokens.append(told["tokens"])
    assert far == sorted(far) and far[0] > 0
    tokens.append(int(curve(tmp_path)[-1]["tokens"]))
    assert tokens == sorted(set(tokens))
    (tmp_path / "state.safetensors").unlink()
    run(tmp_path, replace(PLAN, keep_moments=3))
    assert len(list((tmp_path / "checkpoint" / "moments").iterdir())) == 1, "those of the new run alone"


def test_a_state_of_a_model_of_other_sizes_is_refused_in_one_line(copied):
    valid = pair_batches(tiny_tokenizer(), PAIRS[:2], tokens=6000)
    with pytest.raises(CheckpointError, match=r"has the shape .* instead of .*: remove it to start over") as error:
        train(PLAN, replace(CONFIG, d_model=32), epoch_batches=epoch_batches, valid=valid, folder=copied)
    assert "\n" not in str(error.value)


def test_a_lost_curve_is_written_again(finished, copied):
    (copied / "checkpoint" / "curve.csv").unlink()
    run(copied)
    assert curve(copied) == curve(finished[1])


def test_a_loss_that_is_no_number_ends_the_training(tmp_path):
    with pytest.raises(VisformerError, match=r"The loss is nan in step 2, with the learning rate 1e\+30: train with a"):
        run(tmp_path, replace(PLAN, learning_rate=1e30))
    assert not (tmp_path / "state.safetensors").exists()


def test_a_damaged_state_is_reported_with_a_remedy(tmp_path):
    (tmp_path / "state.safetensors").write_bytes(b"nothing")
    with pytest.raises(CheckpointError, match=r"state\.safetensors.*remove it to start over"):
        run(tmp_path)
