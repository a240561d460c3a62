"""The head of a page."""

from dataclasses import replace

import visformer as vf
from visformer.app.shell import head


def test_a_translation_without_an_end_is_said_to_be_cut_off():
    trace = vf.load("en-zh").trace("I like cats.")
    assert head._hints(trace) == []
    cut = replace(trace, special={**trace.special, "next": (*trace.special["next"][:-1], False)})
    assert [line.split(":")[0] for line in head._hints(cut)] == ["The translation is cut off here, after 5 tokens"]
    assert head._hints(replace(cut, meta={**cut.meta, "forced": True})) == []
