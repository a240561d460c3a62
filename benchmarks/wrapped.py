"""Benchmarks of a wrapped model of transformers: its own passes between ours, and steering. fp32, random weights."""

from collections.abc import Iterator

import torch
from torch import Tensor
from transformers import GPT2Config, GPT2LMHeadModel

import visformer
from benchmarks.measure import Effort, Row, compare, require
from benchmarks.peers.minilm import Encoder
from visformer.edits import EachRow

N, NEW_TOKENS = 512, 30


def rows(effort: Effort) -> Iterator[Row]:
    """Yield what being wrapped costs a model while it is not traced, and what an edit of each row costs."""
    torch.manual_seed(0)
    tokenizer = Encoder().tokenizer
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
