"""The facts of a lesson on the page without a server are those of the app, and so is the row that a step is about."""

import base64
from dataclasses import replace

import pytest

import visformer as vf
from benchmarks.messages import read_message
from visformer.app.lessons import facts, lesson_file
from visformer.app.session.url_state import SHORT
from visformer.pictures.examples import EXAMPLES
from visformer.pictures.map import RECORD
from visformer.web.map import pack_map
from visformer.web.payload import pack

FILLED = """
  const read = ({ header, numbers }) => ({ ...header, numbers: Uint8Array.from(Buffer.from(numbers, "base64")).buffer })
  const messages = { attention: read(args.attention), map: read(args.map) }
  const given = { trace: args.trace, messages }
  const { names, place, keepsRow } = args
  const texts = names === null ? Object.keys(m.FACTS) : names
  const text = m.filled(texts.map((name) => `{${name}}`).join(" | "), given, place, keepsRow)
  return [text, texts, m.aimed(given, place, keepsRow)]
"""


@pytest.fixture(scope="module")
def model():
    return vf.load("en-zh")


def asked(node, trace, selection, *, keeps_row, names=None):
    def as_json(message):
        header, numbers = read_message(message)
        return {"header": header, "numbers": base64.b64encode(numbers).decode()}

    special = {side: [bool(flag) for flag in flags] for side, flags in trace.special.items()}
    place = {name: getattr(selection, name) for name in ("stack", "layer", "head", "query", "key")}
    args = {
        "trace": {"tokens": dict(trace.tokens), "special": special, "meta": {"target": trace.meta["target"]}},
        "attention": as_json(pack(trace)),
        "map": as_json(pack_map(trace)),
        "place": place,
        "keepsRow": keeps_row,
        "names": names,
    }
    return node.run("site/facts.js", FILLED, args)


@pytest.mark.parametrize("sentence", [EXAMPLES[0], "He lives near the river in Shenyang.", "他喜欢猫。"])
def test_facts_are_pythons(node, model, sentence):
    trace = model.trace(sentence, record=tuple(glob for glob in RECORD if glob != "*.map"))
    for step in lesson_file.load(SHORT).steps:
        keeps_row, selection = sentence == EXAMPLES[0], step.state.selection
        text, names, cell = asked(node, trace, selection, keeps_row=keeps_row)
        if selection.stack:
            assert dict(zip(names, text.split(" | "), strict=True)) == facts.told(
                names, trace, selection, keeps_row=keeps_row
            )
            aimed = facts.aimed(replace(selection, key=0), trace, keeps_row=keeps_row, sets_row=True)
            assert cell["query"] == aimed.query


def test_every_fact_of_the_lesson_is_one(node, model):
    trace = model.trace("Thanks!", record=tuple(glob for glob in RECORD if glob != "*.map"))
    steps = lesson_file.load(SHORT).steps
    _, names, _ = asked(node, trace, steps[0].state.selection, keeps_row=False)
    assert {name for step in steps for name in step.fields} <= {*names}
