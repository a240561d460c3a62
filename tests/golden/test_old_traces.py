"""Traces saved by earlier versions still open, with the same content. See ``tests/golden/record.py``."""

import pytest

from tests.golden.likeness import hold, read
from tests.golden.traces import meaning, saved_traces
from visformer import Trace

TRACES = {one["file"]: one for one in read("traces.json")}


@pytest.mark.parametrize("path", saved_traces(), ids=lambda path: path.name)
def test_a_trace_holds_what_it_held(path, tmp_path):
    expected = TRACES[path.name]
    hold(expected, meaning(path))
    Trace.load(path).save(tmp_path / path.name)
    hold(expected, meaning(tmp_path / path.name))  # saved and opened once more


def test_every_old_file_is_held():
    assert [*TRACES] == [path.name for path in saved_traces()]
