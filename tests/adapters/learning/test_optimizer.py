"""AdamW: the steps of torch's own, without its compiler."""

import os
import subprocess
import sys

import torch
from torch import nn

from visformer.adapters.learning.optimizer import AdamW

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


def test_a_training_imports_no_compiler_and_makes_no_folder(tmp_path):
    """torch's compiler makes one in the folder for temporary files, and without that it raises."""
    environ = {**os.environ, "TMPDIR": str(tmp_path), "OMP_NUM_THREADS": "1"}
    said = subprocess.run([sys.executable, "-c", TRAIN], capture_output=True, text=True, env=environ, check=True)
    assert said.stdout.strip() == "[]"
    assert not [*tmp_path.iterdir()]
