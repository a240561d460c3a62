"""Traces saved by earlier versions still open, with the same content. See ``tests/golden/record.py``."""

import pytest

from tests import pseudo
from tests.golden.likeness import SAVED, hold, read
from tests.golden.traces import meaning, saved_traces
from visformer import Trace
from visformer.i18n import translations
from visformer.trace import old_reasons

TRACES = {one["file"]: one for one in read("traces.json")}


@pytest.mark.parametrize("path", saved_traces(), ids=lambda path: path.name)
def test_a_trace_holds_what_it_held(path, tmp_path):
    expected = TRACES[path.name]
    hold(expected, meaning(path))
    Trace.load(path).save(tmp_path / path.name)
    hold(expected, meaning(tmp_path / path.name))  # saved and opened once more


def test_every_old_file_is_held():
    assert [*TRACES] == [path.name for path in saved_traces()]


def test_a_reason_in_an_old_file_is_translated():
    reason = Trace.load(SAVED / "decoder-alone.safetensors").lacks("decoder.0.cross_attn.pattern")
    assert translations("zh").gettext(reason) == "只有解码器的模型没有可关注的原文"
    assert {*old_reasons._SINCE.values()} <= pseudo.messages(), "the table follows what is said today"
