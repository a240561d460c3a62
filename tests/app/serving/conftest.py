"""What tests of the server share: a clock that stands still, and worker processes that start without torch."""

import time
from types import SimpleNamespace

import pytest

from visformer.app.serving import admission

_WITHOUT_TORCH = '''\
"""Runs first in each Python that is started: a worker loads this model, not one of torch, which takes seconds."""

import os
import sys
import time
from types import ModuleType, SimpleNamespace


class Model:
    def reading(self, source):
        return self

    def trace(self, source, **_):
        return SimpleNamespace(meta={"source": source})

    def translate(self, *_, **__):  # for ever
        while True:
            time.sleep(0.001)

    def tokenize(self, text):
        return text.split()


def load_to_serve(name):
    from visformer.errors import CheckpointError

    if os.path.isabs(name) and not os.path.exists(f"{name}/model.safetensors"):
        raise CheckpointError("{path} cannot be read", path=f"{name}/model.safetensors")
    return Model()


sys.modules["visformer.adapters.load"] = ModuleType("visformer.adapters.load")
sys.modules["visformer.adapters.load"].load_to_serve = load_to_serve
'''


@pytest.fixture
def clock(monkeypatch):
    """The clock of admission: ``now``, in seconds, passes only as the test sets it."""
    clock = SimpleNamespace(now=1000.0)
    stopped = SimpleNamespace(perf_counter=lambda: clock.now, sleep=time.sleep)
    monkeypatch.setattr(admission, "time", stopped)
    return clock


@pytest.fixture
def without_torch(tmp_path, monkeypatch):
    """Worker processes that are started have a model of a few lines, so that they are there at once."""
    folder = tmp_path / "without_torch"
    folder.mkdir()
    (folder / "sitecustomize.py").write_text(_WITHOUT_TORCH, encoding="utf-8")
    monkeypatch.syspath_prepend(str(folder))
