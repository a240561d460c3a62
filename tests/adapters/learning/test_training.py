"""Small models learn what the page says that they learn, by the steps of torch's own AdamW, without its compiler."""

import os
import subprocess
import sys

import numpy as np
import pytest
import torch
from torch import nn

import visformer as vf
from visformer.adapters.learning.recipe import Recipe
from visformer.adapters.learning.training import AdamW, Training, trained, watch


def last(recipe):
    *_, moment = watch(recipe)
    return moment


@pytest.mark.full
def test_induction_forms_with_drawn_periods():
    drawn = last(Recipe(step=200))
    previous, induction, answer = drawn.scores
    assert previous[0].max() > 0.25
    assert induction[1].max() > 0.5
    assert answer.max() == 0, "behind a causal mask"
    assert drawn.probed < 1


@pytest.mark.full
def test_with_one_period_positions_are_enough():
    fixed = last(Recipe(variant="fixed", step=160))
    assert fixed.loss < 0.3
    assert fixed.probed > 6, "nats: far worse than log 62, chance"
    assert fixed.scores[1].max() < 0.2


@pytest.mark.full
def test_without_a_mask_a_head_looks_at_the_answer():
    assert last(Recipe(variant="no-mask", step=200)).scores[2].max() > 0.5


def test_moments_are_those_of_the_model():
    training = Training(Recipe("sort", step=8))
    for _ in range(8):
        training.advance()
    moment = training.moment()
    model = vf.load(Recipe("sort", step=8).name)
    trace = model.trace(training.probe.batch.ids[0].tolist())
    assert np.abs(trace.stack("decoder.self_attn") - moment.patterns / 255).max() < 0.003
    assert moment.patterns.shape[2:] == (len(training.sight.queries), len(training.sight.keys))


def test_weights_handed_over_are_those_that_were_trained():
    recipe = Recipe(step=4)
    training = Training(recipe)
    for _ in range(4):
        training.advance()
    module, _tokenizer = trained(recipe, training.weights())
    for name, weight in training.module.state_dict().items():
        assert torch.equal(module.state_dict()[name], weight), name


@pytest.mark.full
def test_a_trained_model_can_be_typed_into():
    model = vf.load("trained-sort")
    assert [model.translate(text).text for text in ("kqbza>", "tsrq>")] == ["abkqz", "qrst"]


def test_a_model_of_attention_alone_says_so():
    model = vf.load(Recipe(step=0).name)
    trace = model.trace("abcab", record=("*",))
    assert "decoder.1.resid_post" in trace
    assert "attention alone" in trace.lacks("decoder.0.ffn.out")
    assert trace.blocks.decoder.sublayers == ("self_attn",)
    open_model = vf.load(Recipe(variant="no-mask", step=0).name)
    assert (open_model.trace("abcab").stack("decoder.self_attn")[..., 0, -1] > 0).all()


TRAIN = """\
import sys
from visformer.adapters.learning.recipe import Recipe
from visformer.adapters.learning.training import trained
trained(Recipe("sort", step=2))
print(sorted(name for name in sys.modules if name in ("torch._dynamo", "torch._inductor")))
"""


def test_its_steps_are_those_of_torch():
    torch.manual_seed(0)
    own, other = nn.Linear(5, 3), nn.Linear(5, 3)
    other.load_state_dict(own.state_dict())
    steps, theirs = AdamW(own.parameters()), torch.optim.AdamW(other.parameters(), betas=(0.9, 0.98), foreach=False)
    for number in range(1, 6):
        x, rate = torch.randn(7, 5), 0.1 / number
        for module in (own, other):
            module(x).square().sum().backward()
        steps.step(rate)
        for group in theirs.param_groups:
            group["lr"] = rate
        theirs.step()
        theirs.zero_grad()
        for weight, wanted in zip(own.parameters(), other.parameters(), strict=True):
            torch.testing.assert_close(weight, wanted)


@pytest.mark.full
def test_a_training_imports_no_compiler_and_makes_no_folder(tmp_path):
    """torch's compiler makes one in the folder for temporary files, and without that it raises."""
    environ = {**os.environ, "TMPDIR": str(tmp_path), "OMP_NUM_THREADS": "1"}
    said = subprocess.run([sys.executable, "-c", TRAIN], capture_output=True, text=True, env=environ, check=True)
    assert said.stdout.strip() == "[]"
    assert not [*tmp_path.iterdir()]
