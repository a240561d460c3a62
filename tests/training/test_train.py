"""Training: the loss, dropout, optimizer and schedule, and runs that stop, resume and average."""

import csv
from dataclasses import replace

import pytest
import torch
from safetensors.torch import save_file
from torch.nn import functional as F

from tests.support import tiny_config, tiny_tokenizer
from visformer.errors import CheckpointError
from visformer.model.transformer import Transformer
from visformer.training.data import Pair, to_examples
from visformer.training.optimizer import Muon, orthogonalised
from visformer.training.train import (
    FastDropout,
    TrainingPlan,
    average,
    learning_rate,
    smoothed_loss,
    train,
    use_fast_dropout,
    validation_loss,
)

PAIRS = [Pair("I went to school.", "我去学校。"), Pair("She likes school.", "她喜欢学校。")] * 4
PLAN = TrainingPlan(
    epochs=3, batch_tokens=60, learning_rate=1e-2, warmup_steps=2, bpe_dropout=0.1, patience=9, average=2
)


def run(folder, plan=PLAN, **settings):
    return train(
        plan,
        tiny_config(dropout=0.1, tie_embeddings=True),
        tiny_tokenizer(),
        pairs=PAIRS,
        stop_pairs=PAIRS[:2],
        supplement=lambda epoch: [Pair(f"{epoch}", f"{epoch}", "zh-en")],
        folder=folder,
        **settings,
    )


def assert_equal_parameters(model, other):
    for p, q in zip(model.parameters(), other.parameters(), strict=True):
        assert torch.equal(p, q)


def curve(folder):
    """Return the rows of a training curve."""
    with (folder / "curve.csv").open() as file:
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
    rates = [learning_rate(replace(PLAN, warmup_steps=10), step, 100) for step in range(101)]
    assert rates.index(max(rates)) in (9, 10)
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


def test_training_lowers_the_loss_is_reproducible_and_keeps_the_best_model(tmp_path):
    model = run(tmp_path / "a")
    assert_equal_parameters(model, run(tmp_path / "b"))
    rows = curve(tmp_path / "a")
    assert [row["epoch"] for row in rows] == ["1", "2", "3"]
    losses = [float(row["stop_loss"]) for row in rows]
    assert losses[-1] < losses[0]
    assert validation_loss(model, to_examples(tiny_tokenizer(), PAIRS[:2])) <= min(losses) + 1e-6


def test_an_interrupted_run_resumes(tmp_path, monkeypatch):
    uninterrupted = run(tmp_path / "a")
    calls = []

    def interrupted(*args):
        calls.append(1)
        if len(calls) == 2:
            raise KeyboardInterrupt
        return validation_loss(*args)

    monkeypatch.setattr("visformer.training.train.validation_loss", interrupted)
    with pytest.raises(KeyboardInterrupt):
        run(tmp_path / "b")
    monkeypatch.undo()
    assert_equal_parameters(uninterrupted, run(tmp_path / "b"))


def test_training_stops_when_the_loss_no_longer_falls(tmp_path, monkeypatch):
    losses = iter([3.0, 2.0, 2.5, 2.6, 2.7, *[9.0] * 20])
    monkeypatch.setattr("visformer.training.train.validation_loss", lambda *args: next(losses))
    run(tmp_path, replace(PLAN, epochs=10, patience=2))
    assert len(curve(tmp_path)) == 4


def test_average_is_the_mean_of_the_weights(tmp_path):
    for i, value in enumerate((1.0, 4.0)):
        save_file({"w": torch.full((2,), value)}, tmp_path / f"{i}.safetensors")
    assert average(sorted(tmp_path.iterdir()))["w"].tolist() == [2.5, 2.5]


def test_a_damaged_state_is_reported_with_a_remedy(tmp_path):
    (tmp_path / "state.safetensors").write_bytes(b"nothing")
    with pytest.raises(CheckpointError, match=r"state\.safetensors.*remove it to start over"):
        run(tmp_path)
