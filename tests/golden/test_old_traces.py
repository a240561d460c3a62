"""Traces saved by earlier versions still open, with the same content. See ``tests/golden/record.py``."""

import pytest

from tests.golden.compare import assert_alike, read
from tests.golden.traces import content, saved_traces
from visformer import Trace

TRACES = {one["file"]: one for one in read("traces.json")}


@pytest.mark.parametrize("path", saved_traces(), ids=lambda path: path.name)
def test_an_old_trace_has_its_recorded_content_also_when_saved_again(path, tmp_path):
    expected = TRACES[path.name]
    assert_alike(expected, content(path))
    Trace.load(path).save(tmp_path / path.name)
    assert_alike(expected, content(tmp_path / path.name))


def test_every_old_trace_is_recorded():
    assert [*TRACES] == [path.name for path in saved_traces()]
