"""Runs in the peers' own environment: the model's attention, and each tool's page.

The job comes in a JSON file, which the result then replaces, since the tools may print anything.
"""

import json
import sys
import time
from collections.abc import Callable
from pathlib import Path

import numpy as np

from benchmarks.peers.libraries import CDN

PAGE = '<!doctype html><html><head><meta charset="utf-8"></head><body>{}</body></html>'


def attend(job: dict) -> dict:
    """Save the tokens of a text and the model's attention on it."""
    from benchmarks.peers.minilm import Encoder
    from benchmarks.peers.subjects import save

    tokens, patterns = Encoder().attend(job["text"])
    save(Path(job["out"]), tokens, patterns)
    return {}


def build(job: dict) -> dict:
    """Write the tool's page for a file of tokens and patterns; returns the seconds of each round, without imports."""
    with np.load(job["subject"]) as subject:
        tokens, patterns = subject["tokens"].tolist(), subject["patterns"]
    make = TOOLS[job["tool"]]()
    make(tokens[:2], patterns[:, :, :2, :2])  # triggers lazy imports
    html, seconds = "", []
    while not seconds or (len(seconds) < job["rounds"] and sum(seconds) < job["seconds"]):
        begin = time.perf_counter()
        html = make(tokens, patterns)
        seconds.append(time.perf_counter() - begin)
    Path(job["out"]).write_text(PAGE.format(html.replace(CDN, "")), encoding="utf-8")
    return {"seconds": seconds}


_Make = Callable[[list[str], np.ndarray], str]


def _per_layer(patterns: np.ndarray) -> list:
    """Return a tensor (1, head, query, key) for each layer, as transformers does."""
    import torch

    return [torch.from_numpy(layer)[None] for layer in patterns]


def bertviz_head() -> _Make:
    from bertviz import head_view

    return lambda tokens, patterns: head_view(_per_layer(patterns), tokens, html_action="return").data


def bertviz_model() -> _Make:
    from bertviz import model_view

    return lambda tokens, patterns: model_view(_per_layer(patterns), tokens, html_action="return").data


def inspectus() -> _Make:
    """Inspectus can only display, so its call to the notebook is intercepted."""
    import inspectus
    import IPython.display

    def make(tokens: list[str], patterns: np.ndarray) -> str:
        shown: list[str] = []
        IPython.display.display = lambda html: shown.append(html.data)
        inspectus.attention(_per_layer(patterns), tokens)
        return "\n".join(shown)

    return make


def circuitsvis() -> _Make:
    """All heads, with its own bundle inside the page, as it does without a network."""
    from circuitsvis.attention import attention_heads

    def make(tokens: list[str], patterns: np.ndarray) -> str:
        n_layers, n_heads, n = patterns.shape[:3]
        names = [f"L{layer}H{head}" for layer in range(n_layers) for head in range(n_heads)]
        heads = patterns.reshape(n_layers * n_heads, n, n)
        return attention_heads(heads, tokens, attention_head_names=names, mask_upper_tri=False).local_src

    return make


TOOLS = {
    "bertviz-head": bertviz_head,
    "bertviz-model": bertviz_model,
    "inspectus": inspectus,
    "circuitsvis": circuitsvis,
}


if __name__ == "__main__":
    command, job_file = sys.argv[1:]
    job = json.loads(Path(job_file).read_text(encoding="utf-8"))
    result = {"attend": attend, "build": build}[command](job)
    Path(job_file).write_text(json.dumps(result), encoding="utf-8")
