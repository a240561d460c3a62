"""vf.moments and vf.load(moment=) of a folder as transformers' Trainer fills it."""

import json

import pytest
import torch
from transformers.trainer_callback import TrainerState

import visformer as vf
from tests.adapters.huggingface.hub import tiny_module, tokenizer
from visformer.adapters.load import nbytes_of
from visformer.adapters.names import require_model
from visformer.errors import CheckpointError
from visformer.figures import source_of
from visformer.pictures.attention import HISTORY

STEPS = (50, 500, 1000)  # as text, 1000 would come first


@pytest.fixture
def out(tmp_path):
    """Three checkpoints of a training, of which the last two were evaluated and two counted their tokens."""
    log = []
    for step in STEPS:
        folder = tmp_path / "out" / f"checkpoint-{step}"
        tiny_module("gpt2", seed=step).save_pretrained(folder)
        tokenizer().save_pretrained(folder)
        log.append({"loss": 9 - step / 200, "learning_rate": 1e-4, "epoch": step / 500, "step": step})
        if step > 50:
            log.append({"eval_loss": 8 - step / 200, "eval_runtime": 1.5, "epoch": step / 500, "step": step})
        state = TrainerState(global_step=step, log_history=log, num_input_tokens_seen=10 * step if step < 1000 else 0)
        state.save_to_json(folder / "trainer_state.json")
    (tmp_path / "out" / "checkpoint-best").mkdir()
    (tmp_path / "out" / "checkpoint-7").touch()
    return tmp_path / "out"


def test_checkpoints_are_moments_with_what_was_logged(out):
    table = vf.moments(out)
    assert list(table.columns) == ["moment", "step", "tokens", "loss", "train_loss"]
    assert table.step.tolist() == [*STEPS]
    assert table.train_loss.tolist() == [8.75, 6.5, 4.0]
    assert table.loss[1:].tolist() == [5.5, 3.0] and table.loss.isna()[0]
    assert table.tokens[:2].tolist() == [500, 5000] and table.tokens.isna()[2]


def test_an_evaluation_of_another_step_is_not_this_moments_loss(out):
    state = TrainerState(global_step=1000, log_history=[{"eval_loss": 2.0, "step": 900}])
    state.save_to_json(out / "checkpoint-1000" / "trainer_state.json")
    assert vf.moments(out).loss.isna().tolist() == [True, False, True]


@pytest.mark.parametrize(("moment", "step"), [(0, 50), (2, 1000), (-2, 500)])
def test_a_moment_is_the_checkpoint_of_its_step(out, moment, step):
    model = vf.load(out, moment=moment)
    assert (model.info.name, model.info.moment) == (f"out@{moment % 3}", moment % 3)
    theirs = tiny_module("gpt2", seed=step)
    assert all(torch.equal(p, q) for p, q in zip(model.module.parameters(), theirs.parameters(), strict=True))
    assert model.trace("I went").meta["moment"] == moment % 3


@pytest.mark.parametrize("moment", [None, 0])
def test_the_history_is_found_from_any_of_its_moments(out, moment):
    history = HISTORY.make(source_of(vf.load(out, moment=moment), "I went"))
    assert [trace.meta["moment"] for trace in history.traces] == [0, 1, 2]
    assert tuple(figures["step"] for figures in history.figures) == STEPS


def test_a_folder_that_holds_only_checkpoints_is_the_last_of_them(out):
    require_model(str(out))
    theirs = tiny_module("gpt2", seed=1000)
    own = vf.load(out)
    assert all(torch.equal(p, q) for p, q in zip(own.module.parameters(), theirs.parameters(), strict=True))
    tiny_module("gpt2", seed=3).save_pretrained(out)
    tokenizer().save_pretrained(out)
    own = vf.load(out)
    assert not torch.equal(next(own.module.parameters()), next(theirs.parameters())), "it holds a model itself"


def test_checkpoints_without_a_log_have_their_steps_and_sizes(out):
    for path in out.glob("*/trainer_state.json"):
        path.unlink()
    table = vf.moments(out)
    assert list(table.columns) == ["moment", "step", "tokens", "loss"]
    assert table.step.tolist() == [*STEPS] and table.loss.isna().all()
    assert nbytes_of(f"{out}@1") == nbytes_of(str(out / "checkpoint-500")) > 10_000
    require_model(f"{out}@1")


@pytest.mark.parametrize("content", ["", "[]", '{"log_history": 3}', '{"log_history": [{"loss": "x"}]}'])
def test_a_damaged_log_is_reported(out, content):
    path = out / "checkpoint-500" / "trainer_state.json"
    path.write_text(content)
    with pytest.raises(CheckpointError, match=f"^{path} cannot be read"):
        vf.moments(out)


def test_a_log_may_hold_what_is_no_number_in_json(out):
    """A loss that diverged: Python writes NaN."""
    path = out / "checkpoint-500" / "trainer_state.json"
    state = json.loads(path.read_text())
    state["log_history"].append({"loss": float("nan"), "step": 500})
    path.write_text(json.dumps(state))
    assert vf.moments(out).train_loss.isna().tolist() == [False, True, False]
