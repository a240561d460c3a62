"""One torch thread and reproducible examples, so that a failure on one machine is a failure on all."""

import pytest
import torch
from hypothesis import HealthCheck, settings

settings.register_profile(
    "visformer",
    deadline=None,
    derandomize=True,
    database=None,
    max_examples=40,
    suppress_health_check=[HealthCheck.too_slow],
)
settings.load_profile("visformer")
torch.set_num_threads(1)


@pytest.fixture(autouse=True)
def _seeded():
    torch.manual_seed(0)
