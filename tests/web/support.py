"""A Trace with made-up attention, and weights decoded from messages to the browser."""

from dataclasses import replace

import numpy as np

from benchmarks.messages import decode
from visformer.trace import Trace, TracedTensor
from visformer.trace.names import axes_of


def made_up_trace(n_src=5, n_tgt=4, n_layers=2, n_heads=3, seed=0, tokens=None, n_decoder_layers=None, words=None):
    """Return a Trace with random patterns whose rows sum to 1, causal in the decoder, for the source "a0 a1 ... </s>".

    Args:
        tokens: replace the tokens of the source.
        words: side to the word index of each token; by default each token is a word.
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


def with_gaps(trace):
    """Return the Trace with layer i renamed to 2 i + 1, as if there were others before each."""
    renamed = {}
    for name, tensor in trace.tensors.items():
        part, layer, rest = name.split(".", 2)
        renamed[f"{part}.{2 * int(layer) + 1}.{rest}"] = tensor
    return replace(trace, tensors={name: replace(tensor, name=name) for name, tensor in renamed.items()})


def heads_of(header, numbers, shapes):
    """Decode the weights of every head in a message, as (stack, layer, head) to (query, key).

    Args:
        header: of either message.
        numbers: of the same message.
        shapes: stack to (layer, head, query, key), from the header of the first message.
    """
    heads = {}
    for chunk in header["chunks"]:
        rows, columns = shapes[chunk["stack"]][2:]
        codes = np.frombuffer(numbers, "<u2", chunk["n"] * rows * columns, chunk["at"])
        for i, weights in enumerate(decode(codes).reshape(chunk["n"], rows, columns)):
            head = chunk["head"] if isinstance(chunk["head"], str) else chunk["head"] + i
            key = (chunk["stack"], chunk["layer"], head)
            assert key not in heads, "a head is sent once"
            heads[key] = weights
    return heads


def shapes_of(header):
    """Return stack to (layer, head, query, key), from the header of a first message."""
    return {stack["name"]: tuple(stack["shape"]) for stack in header["stacks"]}


def digits(weights):
    """Format weights as displayed: four significant digits, two below 1e-7."""
    return [
        f"{weight:.3e}" if weight >= 1e-7 else f"{float(f'{weight:.1e}'):.3e}"
        for weight in np.asarray(weights, dtype=float).ravel().tolist()
    ]


def without_names(trace):
    """Return a Trace like those of before the names of the likeliest tokens were in it."""
    return replace(trace, meta={name: value for name, value in trace.meta.items() if name != "likeliest"})
