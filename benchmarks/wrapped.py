"""Benchmarks of a wrapped model of transformers: what a Trace costs, its own passes between ours, steering.

fp32, random weights, token ids that are ready on both sides; a Trace also has its texts and labels.
"""

from collections.abc import Callable, Iterator
from functools import partial
from typing import Any

import torch
from torch import Tensor
from transformers import BertConfig, BertModel, GPT2Config, GPT2LMHeadModel, LlamaConfig
from transformers.models.llama.modeling_llama import LlamaForCausalLM

import visformer
from benchmarks.measure import Effort, Row, compare, peak_of, require
from benchmarks.peers.minilm import Encoder
from visformer.edits import EachRow

N, NEW_TOKENS = 512, 30

LENGTHS = (256, 512, 1024, 2048)
MAX_BYTES = 8 * 10**9
"""Enough for the largest Trace here, whose patterns take 4.3 GB: 16 layers of 16 heads at 2,048 tokens."""


def rows(effort: Effort) -> Iterator[Row]:
    """Yield what a Trace costs, what being wrapped costs while there is none, and what an edit of each row costs."""
    torch.manual_seed(0)
    tokenizer = Encoder().tokenizer
    tokenizer.model_max_length = LENGTHS[-1]
    yield from _traces(effort, tokenizer)
    config = GPT2Config(
        vocab_size=len(tokenizer), n_embd=256, n_layer=6, n_head=8, bos_token_id=None, eos_token_id=None
    )
    plain = GPT2LMHeadModel(config).eval()
    wrapped = GPT2LMHeadModel(config).eval()
    wrapped.load_state_dict(plain.state_dict())
    model = visformer.wrap(wrapped, tokenizer)
    ids = torch.randint(1000, len(tokenizer), (1, N), generator=torch.Generator().manual_seed(1))

    @torch.inference_mode()
    def logits(module: GPT2LMHeadModel) -> Tensor:
        out: Tensor = module(ids).logits
        return out

    require(torch.equal(logits(wrapped), logits(plain)), "a wrapped model computes what it computed before")
    pairs = compare(lambda: logits(wrapped), lambda: logits(plain), effort)
    yield Row("own pass of a wrapped model / of one that is not", str(N), pairs, goal=1.05)

    direction = torch.randn(config.n_embd, generator=torch.Generator().manual_seed(2))
    steer = EachRow(lambda name, x: x + direction if name == "decoder.3.resid_post" else x)
    text = ids[0, :16].tolist()
    edited = lambda: model.generate(text, edits=steer, max_new_tokens=NEW_TOKENS)  # noqa: E731
    unedited = lambda: model.generate(text, max_new_tokens=NEW_TOKENS)  # noqa: E731
    require(edited().ids != unedited().ids, "the edit changes what is generated")
    yield Row(f"steered / plain generation, {NEW_TOKENS} new tokens", "16", compare(edited, unedited, effort), goal=2.0)


def _traces(effort: Effort, tokenizer: Any) -> Iterator[Row]:
    """Yield what a Trace with all patterns, and one without any, cost beside transformers' own passes."""
    common = {"vocab_size": len(tokenizer), "max_position_embeddings": LENGTHS[-1]}
    small = BertConfig(hidden_size=384, num_hidden_layers=6, num_attention_heads=12, intermediate_size=1536, **common)
    wide = LlamaConfig(
        hidden_size=512, num_hidden_layers=16, num_attention_heads=16, intermediate_size=1024,
        bos_token_id=None, eos_token_id=None, **common,
    )  # fmt: skip
    made: dict[str, tuple[Callable[[], Any], str]] = {
        "6 x 12 heads": (lambda: BertModel(small), "encoder.out"),
        "16 x 16 heads, decoder": (lambda: LlamaForCausalLM(wide), "decoder.out"),
    }
    for name, (make, out) in made.items():
        module, wrapped = make().eval(), make().eval()
        wrapped.load_state_dict(module.state_dict())
        model = visformer.wrap(wrapped, tokenizer)
        for n in LENGTHS:
            ids = torch.randint(1000, len(tokenizer), (1, n), generator=torch.Generator().manual_seed(n))
            for record, other, implementation, goal in (
                ("*.pattern", "eager, output_attentions", "eager", 1.2),
                (out, "sdpa", "sdpa", 1.1),
            ):
                module.set_attn_implementation(implementation)
                theirs = _pass(module, ids, output_attentions=implementation == "eager")
                ours = partial(model.trace, ids[0].tolist(), record=record, max_bytes=MAX_BYTES)
                yield Row(f"Trace of {record} / {other}, {name}", str(n), compare(ours, theirs, effort), goal=goal)
                if implementation == "eager":
                    memory = [tuple(peak_of(run)[1] / 1e6 for run in (ours, theirs))]
                    yield Row(f"  peak memory, {name}", str(n), memory, unit="MB", goal=1.0)


def _pass(module: Any, ids: Tensor, **given: Any) -> Callable[[], Any]:
    """Return what runs a model on ids."""

    @torch.inference_mode()
    def run() -> Any:
        return module(ids, **given)

    return run
