"""A Trace of made-up attention, and its weights as the browser reads them."""

import numpy as np

from benchmarks.messages import decode
from visformer.trace import Trace, TracedTensor
from visformer.trace.names import axes_of


def made_up_trace(n_src=5, n_tgt=4, n_layers=2, n_heads=3, seed=0, tokens=None, n_decoder_layers=None, words=None):
    """Patterns whose rows sum to 1, the decoder's own masked; "a0 a1 ... </s>" reads like a sentence.

    Args:
        tokens: the source's, in place of those.
        words: side to the word of each token; by default each is its own.
    """
    rng = np.random.default_rng(seed)
    src = (*(tokens or [f"a{i}" for i in range(n_src - 1)]), "</s>")
    following = (*(f"b{i}" for i in range(n_tgt - 1)), "</s>")
    sides = {"src": src, "tgt": ("<zh>", *following[:-1]), "next": following}
    tensors = {}
    for stack, kind in (("encoder", "self_attn"), ("decoder", "self_attn"), ("decoder", "cross_attn")):
        for layer in range(n_layers if stack == "encoder" else n_decoder_layers or n_layers):
            name = f"{stack}.{layer}.{kind}.pattern"
            axes = axes_of(name)
            rows, columns = len(sides[axes[1].side]), len(sides[axes[2].side])
            weights = rng.random((n_heads, rows, columns)) ** 4
            if (stack, kind) == ("decoder", "self_attn"):
                weights *= np.tri(rows)
            pattern = (weights / weights.sum(-1, keepdims=True)).astype(np.float32)
            tensors[name] = TracedTensor(name, pattern, axes)
    return Trace(
        tokens=sides,
        special={side: tuple(token in ("</s>", "<zh>") for token in row) for side, row in sides.items()},
        words={side: tuple((words or {}).get(side, range(len(row)))) for side, row in sides.items()},
        tensors=tensors,
        meta={"source": " ".join(src[:-1]), "target": " ".join(following[:-1]), "to": "zh", "forced": False},
    )


def heads_of(header, numbers, shapes):
    """The decoded weights of every head that a message holds, (stack, layer, head) to (query, key).

    Args:
        header: of either message.
        numbers: of the same.
        shapes: stack to (layer, head, query, key), from the first message's header.
    """
    found = {}
    for chunk in header["chunks"]:
        rows, columns = shapes[chunk["stack"]][2:]
        codes = np.frombuffer(numbers, "<u2", chunk["n"] * rows * columns, chunk["at"])
        for i, weights in enumerate(decode(codes).reshape(chunk["n"], rows, columns)):
            head = chunk["head"] if isinstance(chunk["head"], str) else chunk["head"] + i
            key = (chunk["stack"], chunk["layer"], head)
            assert key not in found, "a head is sent once"
            found[key] = weights
    return found


def shapes_of(header):
    """Stack to (layer, head, query, key), of a first message."""
    return {stack["name"]: tuple(stack["shape"]) for stack in header["stacks"]}


def digits(weights):
    """As they are read out: four significant digits, two below 1e-7."""
    return [
        f"{weight:.3e}" if weight >= 1e-7 else f"{float(f'{weight:.1e}'):.3e}"
        for weight in np.asarray(weights, dtype=float).ravel().tolist()
    ]
