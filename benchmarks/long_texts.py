"""Benchmarks of long texts: an overview of every head beside a pass that shows none, up to 4,096 tokens of 1,024 heads.

fp32, random weights, heads 32 wide; the feed-forward network is as narrow as a head, so that attention is what counts.
"""

from collections.abc import Callable, Iterator
from dataclasses import replace
from functools import partial
from time import perf_counter
from typing import Any

import torch
from transformers import LlamaConfig
from transformers.models.llama.modeling_llama import LlamaForCausalLM

import visformer
from benchmarks.measure import QUICK, Effort, Row, compare, peak_of
from benchmarks.peers.minilm import Encoder
from visformer.trace import Trace
from visformer.trace.overview import PatternOnDemand
from visformer.web.payload import pack
from visformer.web.tiles import levels_of, part_of

LAYERS, HEADS, WIDTH = 32, 32, 32
LENGTHS = (256, 512, 1024, 2048, 4096)
MAX_BYTES = 4 * 10**9
BESIDE = 300 * 10**6
"""Bytes that a pass may take besides q and k."""
SHOWN, FOCUSED = 1500.0, 400.0
"""Milliseconds from a Trace to its picture, and to a head that is clicked."""


def rows(effort: Effort) -> Iterator[Row]:
    """Yield what an overview costs in time and memory, and what a picture and a head of it cost."""
    torch.manual_seed(0)
    tokenizer = Encoder().tokenizer
    tokenizer.model_max_length = LENGTHS[-1]
    layers, lengths = (2, LENGTHS[:1]) if effort == QUICK else (LAYERS, LENGTHS)
    config = LlamaConfig(
        vocab_size=len(tokenizer),
        hidden_size=HEADS * WIDTH,
        intermediate_size=WIDTH,
        num_hidden_layers=layers,
        num_attention_heads=HEADS,
        max_position_embeddings=LENGTHS[-1],
        bos_token_id=None,
        eos_token_id=None,
    )
    module = LlamaForCausalLM(config).eval()
    model = visformer.wrap(module, tokenizer)
    for n in lengths:
        few = replace(effort, least=min(effort.least, 10 if n <= LENGTHS[1] else 2), seconds=0.0, warm_up=1)
        ids = torch.randint(1000, len(tokenizer), (1, n), generator=torch.Generator().manual_seed(n))
        trace = partial(model.trace, ids[0].tolist(), record="overview", max_bytes=MAX_BYTES)
        name = f"{layers} x {HEADS} heads"
        pairs = compare(trace, _plain(module, ids), few)
        yield Row(f"overview / sdpa, {name}", str(n), pairs, goal=3.5 if n == LENGTHS[-1] else None)
        held, peak = peak_of(trace)
        memory = [(peak / 1e6, (q_and_k(held) + BESIDE) / 1e6)]
        yield Row(f"overview's peak memory / q, k and 300 MB, {name}", str(n), memory, unit="MB", goal=1.0)
        yield Row(
            f"first picture of an overview / 1.5 s, {name}", str(n), [(_ms(partial(pack, held)), SHOWN)], goal=1.0
        )
        whole = partial(part_of, held, f"decoder.self_attn/0/0/tile/{levels_of(n, n) - 1}/0/0")
        yield Row(f"a head in focus / .4 s, {name}", str(n), [(_ms(whole), FOCUSED)], goal=1.0)


def q_and_k(trace: Trace) -> int:
    """Return the bytes of q and k that a Trace holds."""
    on_demand = [each for each in trace.tensors.values() if isinstance(each, PatternOnDemand)]
    return sum(x.nbytes for each in on_demand for x in (each.q, each.k) if x is not None)


def _plain(module: Any, ids: torch.Tensor) -> Callable[[], Any]:
    @torch.inference_mode()
    def run() -> Any:
        return module(ids, use_cache=False)

    return run


def _ms(run: Callable[[], Any]) -> float:
    start = perf_counter()
    run()
    return 1000 * (perf_counter() - start)
