"""JavaScript decodes the parts of a head as Python computes them."""

import base64

import numpy as np
import pytest

import visformer as vf
from benchmarks.messages import decode
from visformer.trace.tokens import sentences_of
from visformer.web import tiles
from visformer.web.codes import encode

HEAD = "encoder.self_attn/1/2"


@pytest.fixture(scope="module")
def trace():
    model = vf.untrained(d_model=32, n_heads=4, n_encoder_layers=2, n_decoder_layers=1, d_ff=16, position="rotary")
    ids = np.random.default_rng(0).integers(10, 400, 700)
    return model.trace(ids, ids[:300], record="overview")


READ = """
  const bytes = Uint8Array.from(atob(args.bytes), (c) => c.charCodeAt(0)).buffer
  const { shape, tiles: { side } } = args.stack
  const part = m.readPart(args.path, bytes, { shape, side })
  const listed = ([name, value]) => [name, value?.length === undefined ? value : [...value]]
  return part.length === undefined ? Object.fromEntries(Object.entries(part).map(listed)) : [...part]
"""


def stack_of(trace, name):
    part, kind = name.split(".")
    shape = trace[f"{part}.0.{kind}.pattern"].shape
    return {"name": name, "shape": shape[1:], "tiles": tiles.describe()}


def read(node, trace, path):
    """Decode a part in JavaScript."""
    data = base64.b64encode(tiles.part_of(trace, path)).decode()
    stack = stack_of(trace, path.split("/")[0])
    return node.run("explorer/parts.js", READ, {"path": path, "bytes": data, "stack": stack})


@pytest.mark.parametrize("name", ["encoder.self_attn", "decoder.cross_attn"])
def test_tiles_hold_the_largest_and_the_mean_of_their_cells(node, trace, name):
    stack = stack_of(trace, name)
    n_queries, n_keys = stack["shape"]
    part, kind = name.split(".")
    weights = trace[f"{part}.0.{kind}.pattern"].value[2]
    levels = node.run(
        "explorer/parts.js", "return m.levelsOf(args.shape, args.side)", {"shape": stack["shape"], **stack["tiles"]}
    )
    assert levels == tiles.levels_of(n_queries, n_keys)
    for level in range(levels):
        step, side = 1 << level, tiles.SIDE << level
        for row, column in np.ndindex(-(-n_queries // side), -(-n_keys // side)):
            tile = read(node, trace, f"{name}/0/2/tile/{level}/{row}/{column}")
            block = weights[row * side : (row + 1) * side, column * side : (column + 1) * side]
            down, across = (np.arange(0, size, step) for size in block.shape)
            largest = np.maximum.reduceat(np.maximum.reduceat(block, down, 0), across, 1)
            assert (tile["rows"], tile["columns"]) == largest.shape
            codes = np.array(tile["largest"], np.uint16).reshape(largest.shape)
            np.testing.assert_allclose(decode(codes), decode(encode(largest)), rtol=2e-3, atol=1e-6)
            mean = np.add.reduceat(np.add.reduceat(block, down, 0), across, 1)
            mean /= np.add.reduceat(np.add.reduceat(np.ones_like(block), down, 0), across, 1)
            np.testing.assert_allclose(decode(np.array(tile["mean"], np.uint16)), mean.ravel(), rtol=2e-3, atol=1e-6)


def test_edges_sentences_and_sums_of_rows(node, trace):
    weights = trace["encoder.1.self_attn.pattern"].value[2]
    edges = read(node, trace, f"{HEAD}/edges")
    own = np.diagonal(weights)
    np.testing.assert_allclose(edges["gives"], weights.sum(1) - own, atol=1e-5)
    np.testing.assert_allclose(edges["gets"], weights.sum(0) - own, rtol=1e-4, atol=1e-5)
    np.testing.assert_allclose(read(node, trace, f"{HEAD}/rows/3/290"), weights[3:290].sum(0), rtol=1e-4)
    assert sum(read(node, trace, f"{HEAD}/sentences")) == pytest.approx(
        len(set(sentences_of(trace.tokens["src"], trace.special["src"]))), rel=1e-4
    )


BLOCK = """
  const { stack } = args
  const parts = new m.Parts({ address: "", stacks: [stack], shapeOf: () => stack.shape, ask: null, arrived() {} })
  for (const [path, bytes] of Object.entries(args.parts)) {
    parts.keep(path, Uint8Array.from(atob(bytes), (c) => c.charCodeAt(0)).buffer)
  }
  const [block, far] = [args.range, { rows: [0, 1], columns: [0, 1] }].map((range) => parts.block(args.head, range))
  const [exact, coarse] = [[255, 300], [3, 698]].map((cell) => parts.finest(args.head, ...cell))
  return { block: [...block], far, exact, coarse, none: parts.finest("encoder.self_attn/0/0", 3, 3) }
"""


def test_a_block_is_cut_from_its_tiles_and_the_finest_cell_is_found(node, trace):
    paths = [f"{HEAD}/tile/0/{row}/{column}" for row in (0, 1) for column in (1,)] + [f"{HEAD}/tile/2/0/0"]
    held = {path: base64.b64encode(tiles.part_of(trace, path)).decode() for path in paths}
    args = {"stack": stack_of(trace, "encoder.self_attn"), "parts": held, "head": HEAD}
    args["range"] = {"rows": [250, 260], "columns": [256, 270]}
    found = node.run("explorer/parts.js", BLOCK, args)
    weights = trace["encoder.1.self_attn.pattern"].value[2]
    np.testing.assert_allclose(found["block"], decode(encode(weights[250:260, 256:270])).ravel(), rtol=2e-3)
    assert found["far"] is None
    assert found["none"] is None
    assert found["exact"]["step"] == 1
    assert found["exact"]["weight"] == pytest.approx(float(weights[255, 300]), rel=2e-3)
    assert found["coarse"]["step"] == 4
    assert found["coarse"]["weight"] == pytest.approx(float(weights[0:4, 696:700].max()), rel=2e-3)
