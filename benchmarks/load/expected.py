"""Compute the expected result of each sentence, in a process without visitors: ``python -m benchmarks.load.expected``.

Reads a JSON list of sentences, writes a JSON object of sentence to tokens, digest of all weights, and translation.
"""

import hashlib
import json
import os
import subprocess
import sys
from collections.abc import Iterable
from dataclasses import asdict, dataclass

import numpy as np

from benchmarks.messages import decode, read_message


@dataclass(frozen=True)
class Picture:
    """What a message for the canvas shows.

    Args:
        tokens: tokens of the source, and those that the decoder wrote.
        digest: digest of every head's weights, as displayed.
    """

    tokens: tuple[tuple[str, ...], ...]
    digest: str

    @classmethod
    def of(cls, message: bytes) -> "Picture":
        """Read a message of :func:`visformer.web.payload.pack`."""
        header, numbers = read_message(message)
        weights = hashlib.blake2b(digest_size=16)
        shapes = {stack["name"]: stack["shape"] for stack in header["stacks"]}
        for chunk in header["chunks"]:
            rows, columns = shapes[chunk["stack"]][2:]
            codes = np.frombuffer(numbers, "<u2", chunk["n"] * rows * columns, chunk["at"])
            weights.update(f"{chunk['stack']} {chunk['layer']} {chunk['head']} {rows} {columns}".encode())
            weights.update(decode(codes).tobytes())
        return cls(tuple(tuple(header["tokens"][side]) for side in ("src", "next")), weights.hexdigest())


@dataclass(frozen=True)
class Expected:
    """What the page of a sentence has to show."""

    picture: Picture
    translation: str


def expected(sentences: Iterable[str]) -> dict[str, Expected]:
    """Compute the expected results one after another in another process, on one thread."""
    sources = json.dumps(sorted(set(sentences)))
    environment = {**os.environ, "OMP_NUM_THREADS": "1"}
    done = subprocess.run(
        [sys.executable, "-m", __name__], input=sources, capture_output=True, text=True, check=True, env=environment
    )
    return {
        sentence: Expected(Picture(tuple(map(tuple, f["picture"]["tokens"])), f["picture"]["digest"]), f["translation"])
        for sentence, f in json.loads(done.stdout).items()
    }


def main() -> None:
    """Compute the expected results of the sentences on stdin."""
    from visformer.adapters.load import load_to_serve
    from visformer.app.serving.models import MODEL
    from visformer.web.payload import pack

    model = load_to_serve(MODEL)
    results = {}
    for sentence in json.load(sys.stdin):
        trace = model.trace(sentence)
        results[sentence] = asdict(Expected(Picture.of(pack(trace)), trace.meta["target"]))
    json.dump(results, sys.stdout)


if __name__ == "__main__":
    main()
