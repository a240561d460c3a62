"""Everything that the comparison knows of visformer's own canvas: its bytes, its page, and its pixels."""

import json
import math
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import numpy.typing as npt

from benchmarks.messages import read_message
from benchmarks.peers.subjects import Subject
from visformer.pictures.style import SEQUENTIAL
from visformer.trace import Trace, TracedTensor
from visformer.trace.names import axes_of
from visformer.web.bundle import script, stylesheet
from visformer.web.chunks import wanted_from
from visformer.web.payload import pack, pack_rest

PAGE = """<!doctype html><html lang="en"><head><meta charset="utf-8"><style>{css}</style></head>
<body><div class="vf-host"></div><script type="module">
import {{ mountAttention }} from "./canvas.js"
import {{ readMessage }} from "./message.js"
const bytes = async (address) => new Uint8Array(await (await fetch(address)).arrayBuffer())
const message = async (address) => readMessage(await bytes(address))
window.pending = 0
const onNeed = async (names) => {{
  window.pending++
  view.update(await message("./need?" + encodeURIComponent(JSON.stringify(names))))
  window.pending--
}}
const view = mountAttention(document.querySelector(".vf-host"), await message("./trace"), {{ onNeed }})
const rest = await bytes("./rest")
if (rest.length) view.update(readMessage(rest))
</script></body></html>"""

# window.expected: {layer: [[query, key, [red, green, blue]], ...]} of the first head of each layer.
TOOL = """
window.tools.visformer = {
  root: () => bench.find(".vf-root"),
  head: () => bench.find("canvas.vf-large"),
  thumbs: () => bench.find("canvas.vf-thumbs"),

  ready() {
    return Boolean(this.root()?.dataset.painted) && this.isAsTraced(0)
  },

  /** Position and size of the cells in the large head, in CSS pixels. */
  cells({ dataset }) {
    const [left, top, width, height] = [dataset.left, dataset.top, dataset.cellWidth, dataset.cellHeight].map(Number)
    return { left, top, width, height }
  },

  /** Whether the large head's pixels are those of the Trace; labels end where the cells begin. */
  isAsTraced(layer) {
    const head = this.head()
    const { left, top, width, height } = this.cells(head)
    if (width < 3 || height < 3) return true // a pixel may cover several cells: the readouts are checked instead
    const ratio = head.width / head.getBoundingClientRect().width
    const image = head.getContext("2d").getImageData(0, 0, head.width, head.height)
    const within = width > 20 ? 0.12 : 0.5 // avoids the number that is written in large cells
    return window.expected[layer].every(([query, key, colour]) => {
      const x = Math.floor((left + (key + within) * width) * ratio)
      const y = Math.floor((top + (query + within) * height) * ratio)
      const at = 4 * (y * image.width + x)
      return colour.every((value, i) => Math.abs(image.data[at + i] - value) <= 6)
    })
  },

  switchTo(layer) {
    const steps = layer - Number(this.root().dataset.layer)
    const key = steps > 0 ? "ArrowDown" : "ArrowUp"
    for (let i = 0; i < Math.abs(steps); i++) {
      this.thumbs().dispatchEvent(new KeyboardEvent("keydown", { key, bubbles: true, composed: true }))
    }
  },
  switched(layer) {
    return !window.pending && this.root().dataset.layer === String(layer) && this.isAsTraced(layer)
  },

  hover(n) {
    const head = this.head()
    const box = head.getBoundingClientRect()
    const { left, top, width, height } = this.cells(head)
    const spots = Array.from({ length: 400 }, (_, i) => [
      box.left + left + (((i * 37) % n) + 0.5) * width,
      box.top + top + (((i * 53) % n) + 0.5) * height,
    ])
    return spots.filter(([x, y]) => x < innerWidth && y < innerHeight)
  },
  /** Where the pointer is, and the weight there. */
  readout() {
    const { layer, head, query, key, weight } = this.root().dataset
    return [layer, head, query, key, weight].join(" ")
  },
}
"""


def trace_of(tokens: Sequence[str], patterns: npt.NDArray[np.float32]) -> Trace:
    """Build a Trace from an encoder's attention (layer, head, query, key)."""
    names = [f"encoder.{layer}.self_attn.pattern" for layer in range(len(patterns))]
    return Trace(
        tokens={"src": tuple(tokens)},
        special={"src": tuple(token in ("[CLS]", "[SEP]") for token in tokens)},
        words={"src": tuple(range(len(tokens)))},
        tensors={
            name: TracedTensor(name, pattern, axes_of(name) or ())
            for name, pattern in zip(names, patterns, strict=True)
        },
        meta={"model": "MiniLM", "kind": "encoder"},
    )


@dataclass
class Side:
    """Our page for one subject, and the addresses that it requests.

    Args:
        subject: subject to show.
        asked: how often the page requested weights that it lacked.
        sent: bytes of the Trace that the page received, including labels.
    """

    subject: Subject
    asked: int = field(default=0, init=False)
    sent: int = field(default=0, init=False)

    def __post_init__(self) -> None:
        self.build()

    def build(self) -> None:
        """Turn tokens and patterns into the first bytes; this is timed as building."""
        self.trace = trace_of(self.subject.tokens, self.subject.patterns)
        self.payload = pack(self.trace)

    @property
    def labels(self) -> int:
        """Bytes of the header: tokens, words, offsets."""
        return len(self.payload) - 4 - len(read_message(self.payload)[1])

    @property
    def overview(self) -> int:
        """Bytes of the thumbnails of all heads, without labels."""
        header, _ = read_message(self.payload)
        sizes = [(*stack["shape"][:2], *stack["thumb"]) for stack in header["stacks"]]
        return sum(math.prod(size) for size in sizes)

    def answer(self, path: str, query: str) -> tuple[str, bytes] | None:
        """Return (content type, body) of an address, or None if there is nothing."""
        if path == "page":
            return "text/html", PAGE.format(css=stylesheet()).encode()
        if path == "canvas.js":
            return "text/javascript", script(
                "export { mountAttention }", mountAttention="explorer/explorer.js"
            ).encode()
        if path == "message.js":
            return "text/javascript", script("export { readMessage }", readMessage="shared/message.js").encode()
        if path == "trace":
            return self._send(self.payload)
        if path == "rest":
            return self._send(pack_rest(self.trace) or b"")
        if path == "need":
            self.asked += 1
            return self._send(pack_rest(self.trace, wanted=wanted_from({"wanted": json.loads(query)})) or b"")
        return None

    def _send(self, payload: bytes) -> tuple[str, bytes]:
        self.sent += len(payload)
        return "application/octet-stream", payload


def readout_is_true(readout: str, subject: Subject) -> bool:
    """Whether TOOL's readout is the Trace's weight, to four digits."""
    layer, head, query, key, weight = readout.split(" ")
    if "" in (query, key, weight):
        return False
    true = float(subject.patterns[int(layer), int(head), int(query), int(key)])
    return float(weight) == float(f"{true:.3e}") or abs(float(weight) - true) < 1e-8  # two digits below 1e-7


def expected(patterns: npt.NDArray[np.float32], n_samples: int = 40) -> dict[int, list[Any]]:
    """Return colours that the first head of each layer must show: the strongest cells, and random others."""
    ramp = _ramp(SEQUENTIAL["light"])
    colours: dict[int, list[Any]] = {}
    for layer, weights in enumerate(patterns[:, 0]):
        n = len(weights)
        strongest = np.argsort(weights, axis=None)[-n_samples // 2 :]
        others = np.random.default_rng(layer).integers(n * n, size=n_samples // 2)
        cells = np.unique([*strongest, *others])
        colours[layer] = [
            [int(cell // n), int(cell % n), ramp[round(255 * float(weights.flat[cell]) ** 0.5)]] for cell in cells
        ]
    return colours


def _ramp(stops: Sequence[str]) -> list[list[int]]:
    """Interpolate 256 colours between evenly spaced "#rrggbb"."""
    marks = np.array([[int(stop[i : i + 2], 16) for i in (1, 3, 5)] for stop in stops])
    places = np.linspace(0, len(stops) - 1, 256)
    channels = [np.interp(places, np.arange(len(stops)), marks[:, channel]) for channel in range(3)]
    ramp: list[list[int]] = np.rint(np.stack(channels, axis=1)).astype(int).tolist()
    return ramp
