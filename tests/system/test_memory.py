"""Memory: freed memory is used again, and running out of it is a single error."""

import gc
import os
import subprocess
import sys
import weakref

import numpy as np
import pytest
import torch

from visformer.errors import ShortageError
from visformer.system.memory import enough_memory

NEW_PAGES = """
import resource
import numpy as np
from visformer.system.memory import keep_freed_memory

def new_pages():
    before = resource.getrusage(resource.RUSAGE_SELF).ru_minflt
    blocks = [np.ones(2**18) for _ in range(10)]
    del blocks
    return resource.getrusage(resource.RUSAGE_SELF).ru_minflt - before

supported = keep_freed_memory()
new_pages()
print(min(new_pages() for _ in range(5)) if supported else 0)
"""
"""Prints how many pages the operating system adds for 20 MB, that is for 5120 pages."""


def test_freed_memory_is_used_again():
    """In a process of its own: what other tests left in the heap counts, too."""
    done = subprocess.run([sys.executable, "-c", NEW_PAGES], capture_output=True, text=True, check=True)
    assert int(done.stdout) < 500


RUN_OUT_OF_MEMORY = """
import resource, torch
import numpy
import visformer as vf
from pathlib import Path
from visformer.system.memory import enough_memory
model = vf.load("en-zh")
model.trace("I went to school.")
for work in (
    lambda: torch.zeros(2**28),
    lambda: bytearray(2**28),
    lambda: numpy.zeros(2**28),
    # A hundred: a single one may fit into the memory that malloc has kept
    lambda: [model.trace("the old school " * 66) for _ in range(100)],
    lambda: [vf.load("en-zh") for _ in range(100)],
):
    used = int(Path("/proc/self/statm").read_text().split()[0]) * resource.getpagesize()
    resource.setrlimit(resource.RLIMIT_AS, (used + 8 * 2**20, resource.RLIM_INFINITY))
    try:
        with enough_memory():
            work()
    except Exception as error:
        print(type(error).__name__, error)
    print(model.translate("I went to school.").text)
"""


@pytest.mark.parametrize(
    "work",
    [lambda: torch.zeros(2**60), lambda: bytearray(2**62), lambda: np.zeros(2**58)],
    ids=["torch", "python", "numpy"],
)
def test_running_out_of_memory_is_one_error(work):
    with pytest.raises(ShortageError, match="There was not enough memory for this"), enough_memory():
        work()


@pytest.mark.full
def test_running_out_of_memory_is_one_error_and_the_model_still_translates():
    environment = {**os.environ, "OMP_NUM_THREADS": "1", "MALLOC_ARENA_MAX": "1"}
    command = [sys.executable, "-c", RUN_OUT_OF_MEMORY]
    done = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=120, check=True)
    lines = done.stdout.splitlines()
    assert len(lines) == 10
    assert all(line.startswith("ShortageError There was not enough memory for this.") for line in lines[::2])
    assert len(set(lines[1::2])) == 1 and lines[1]


def test_memory_of_failed_work_is_freed():
    class Result:
        pass

    def work():
        result = Result()
        references.append(weakref.ref(result))
        raise MemoryError

    references = []
    with pytest.raises(ShortageError) as caught, enough_memory():
        work()
    gc.collect()
    assert references[0]() is None
    assert caught.value.__cause__ is None


@pytest.mark.parametrize("error", [ValueError("out of memory"), RuntimeError("shapes"), OSError(2, "gone"), KeyError()])
def test_other_errors_are_not_changed(error):
    with pytest.raises(type(error)) as caught, enough_memory():
        raise error
    assert caught.value is error
