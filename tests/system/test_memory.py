import gc
import os
import resource
import subprocess
import sys
import weakref

import numpy as np
import pytest

from visformer.errors import ShortageError
from visformer.system.memory import enough_memory, keep_freed_memory


def fresh_pages():
    before = resource.getrusage(resource.RUSAGE_SELF).ru_minflt
    blocks = [np.ones(2**18) for _ in range(10)]  # 2 MB each, 5120 pages together
    del blocks
    return resource.getrusage(resource.RUSAGE_SELF).ru_minflt - before


def test_freed_memory_is_used_again():
    kept = keep_freed_memory()
    fresh_pages()
    assert not kept or min(fresh_pages() for _ in range(5)) < 500


SHORT = """
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
    # A hundred: one alone may fit into what malloc still has free
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


def test_running_out_of_memory_is_one_sentence_and_work_goes_on():
    environment = {**os.environ, "OMP_NUM_THREADS": "1", "MALLOC_ARENA_MAX": "1"}
    done = subprocess.run(
        [sys.executable, "-c", SHORT], env=environment, capture_output=True, text=True, timeout=120, check=True
    )
    lines = done.stdout.splitlines()
    assert len(lines) == 10
    assert all(said.startswith("ShortageError There was not enough memory for this.") for said in lines[::2])
    assert len(set(lines[1::2])) == 1 and lines[1]


def test_what_the_failed_work_held_is_freed():
    class Held:
        pass

    def work():
        held = Held()
        seen.append(weakref.ref(held))
        raise MemoryError

    seen = []
    with pytest.raises(ShortageError) as caught, enough_memory():
        work()
    gc.collect()
    assert seen[0]() is None
    assert caught.value.__cause__ is None


@pytest.mark.parametrize("error", [ValueError("out of memory"), RuntimeError("shapes"), OSError(2, "gone"), KeyError()])
def test_other_errors_stay_what_they_are(error):
    with pytest.raises(type(error)) as caught, enough_memory():
        raise error
    assert caught.value is error
