"""JavaScript reads what Python packs, for Traces of any shape."""

from hypothesis import example, given, settings
from hypothesis import strategies as st

from tests.browser.bare import text_of
from tests.web.support import digits, made_up_trace
from visformer.web.payload import pack, pack_rest, thumbnail_side, thumbnails

READ = """
  const bytes = (text) => {
    const payload = Uint8Array.from(atob(text), (c) => c.charCodeAt(0))
    const all = new Uint8Array(payload.length + args.shift)
    all.set(payload, args.shift)
    return all.subarray(args.shift)
  }
  const { readMessage } = await load("shared/message.js")
  const { stacks, weights } = m.readPicture(readMessage(bytes(args.first)))
  if (args.rest) {
    const { chunks, numbers } = readMessage(bytes(args.rest))
    weights.add(chunks, numbers)
  }
  return stacks.map(({ name, shape: [nLayers, nHeads], thumbOf }) => {
    const heads = Array.from({ length: nLayers * nHeads }, (_, i) => ({ l: Math.floor(i / nHeads), h: i % nHeads }))
    return [name, heads.map(({ l, h }) => [[...weights.of(`${name}/${l}/${h}`)], [...thumbOf({ layer: l, head: h })]])]
  })
"""

shapes = st.fixed_dictionaries(
    {
        "n_src": st.integers(1, 12) | st.integers(60, 70),
        "n_tgt": st.integers(1, 12) | st.integers(60, 70),
        "n_layers": st.integers(1, 2),
        "n_decoder_layers": st.integers(1, 2),
        "n_heads": st.integers(1, 2),
        "seed": st.integers(0, 9),
    }
)

IN_TWO_MESSAGES = {"n_src": 120, "n_tgt": 115, "n_layers": 2, "n_decoder_layers": 2, "n_heads": 3, "seed": 0}


@settings(max_examples=15)
@given(shapes, st.integers(0, 3))
@example(IN_TWO_MESSAGES, 0)
def test_javascript_reads_what_python_packs(node, shape, shift):
    """Every head's weights and thumbnail, at any alignment: a host may pass a view into a larger buffer."""
    trace = made_up_trace(**shape)
    first, rest = pack(trace), pack_rest(trace)
    assert (rest is not None) == (shape == IN_TWO_MESSAGES)
    args = {"first": text_of(first), "rest": rest and text_of(rest), "shift": shift}
    stacks = node.run("explorer/picture.js", READ, args)
    patterns = {name: trace.stack(name) for name, _ in stacks}
    assert len(patterns) == 3
    side = thumbnail_side([pattern.shape for pattern in patterns.values()])
    for name, heads in stacks:
        pattern = patterns[name]
        thumbs = thumbnails(list(pattern), side=side)
        flat = pattern.reshape(-1, *pattern.shape[2:])
        assert len(heads) == len(flat)
        for (weights, thumb), expected, small in zip(heads, flat, thumbs.reshape(-1, *thumbs.shape[2:]), strict=True):
            assert digits(weights) == digits(expected)
            assert thumb == small.ravel().tolist()
