"""Benchmarks of the model: recording, idle taps, torch.nn.Transformer, the cache. fp32, batch 1, inference mode."""

from collections.abc import Callable, Iterator
from typing import Any

import torch
from torch import Tensor, nn

from benchmarks.measure import Effort, Row, compare, require
from benchmarks.subjects import Sentences, encoded, random_ids, sentences
from benchmarks.untapped import without_taps
from visformer.adapters.own import Translator
from visformer.model.config import TransformerConfig
from visformer.model.decoding import NextToken, decode
from visformer.model.masks import causal_mask
from visformer.model.transformer import Transformer

LENGTHS = (16, 64, 256)
NEW_TOKENS = 30

_Pair = tuple[Callable[[], Any], Callable[[], Any]]


def rows(translator: Translator, effort: Effort) -> Iterator[Row]:
    """Yield all rows of the model."""
    with torch.inference_mode():
        for n in LENGTHS:
            pair = sentences(translator.tokenizer, n)
            yield Row(
                "recording all patterns / plain forward, both tokenise",
                str(n),
                compare(*_recording(translator, pair), effort),
                goal=1.15,
            )
            yield Row(
                "recording all patterns / plain forward on ready ids",
                str(n),
                compare(*_recording(translator, pair, ready=True), effort),
            )
        for n in LENGTHS:
            pair_of_runs = _idle_taps(translator.module, n)
            goal = 1.04 if n <= 16 else 1.02
            yield Row("idle taps / no taps", str(n), compare(*pair_of_runs, effort), goal=goal)
        ours, theirs = _both_transformers(translator.module.config)
        for n in LENGTHS:
            goal = 1.1 if n <= 64 else 1.25
            pairs = compare(*_stacks(ours, theirs, n), effort)
            yield Row("our stacks / torch.nn.Transformer, fast path", str(n), pairs, goal=goal)
        for n in LENGTHS:
            pairs = compare(*_greedy(translator.module, n), effort)
            yield Row(f"cached / uncached greedy, {NEW_TOKENS} new tokens", str(n), pairs, goal=0.6)


def _recording(translator: Translator, pair: Sentences, *, ready: bool = False) -> _Pair:
    """Recording, with labels and NumPy arrays. Tokenising counts on both sides, or with ``ready`` on ours only.

    Neither computes logits: a Trace of patterns does not need them, and they take a third of a short sentence's time.
    """
    module, tokenizer = translator.module, translator.tokenizer

    def recorded() -> object:
        return translator.trace(pair.source, pair.target, record=("*.pattern",))

    def plain() -> object:
        return forward(*encoded(tokenizer, pair.source, pair.target))

    def plain_on_ids() -> object:
        return forward(pair.src_ids, pair.tgt_ids)

    def forward(src_ids: Tensor, tgt_ids: Tensor) -> Tensor:
        return module.read_target(tgt_ids, module.encode(src_ids), src_ids)

    trace = translator.trace(pair.source, pair.target)
    lengths = (pair.src_ids.shape[1], pair.tgt_ids.shape[1])
    require((len(trace.tokens["src"]), len(trace.tokens["tgt"])) == lengths, "both run on the same ids")
    return recorded, plain_on_ids if ready else plain


def _idle_taps(model: Transformer, n: int) -> _Pair:
    untapped = without_taps(model)
    src = random_ids(model.config.src_vocab, n, seed=1)
    tgt = random_ids(model.config.tgt_vocab, n, seed=2)
    require(torch.equal(model(src, tgt), untapped(src, tgt)), "both give the same logits, bit for bit")
    return lambda: model(src, tgt), lambda: untapped(src, tgt)


def _both_transformers(config: TransformerConfig) -> tuple[Transformer, nn.Transformer]:
    """Make torch's Transformer in the bundled size, and ours with its weights."""
    torch.manual_seed(0)
    theirs = nn.Transformer(
        config.d_model,
        config.n_heads,
        config.n_encoder_layers,
        config.n_decoder_layers,
        config.d_ff,
        activation=config.activation,
        norm_first=config.norm == "pre",
        layer_norm_eps=config.layer_norm_eps,
        batch_first=True,
    ).eval()
    require(torch.backends.mha.get_fastpath_enabled(), "torch's fast path is on")
    return Transformer.from_torch(theirs, src_vocab=config.src_vocab, tgt_vocab=config.tgt_vocab), theirs


def _stacks(ours: Transformer, theirs: nn.Transformer, n: int) -> _Pair:
    """Encoder and decoder on embedded input, with causal masks made in advance."""
    generator = torch.Generator().manual_seed(n)
    x, y = (torch.randn(1, n, ours.config.d_model, generator=generator) for _ in range(2))
    may_attend = causal_mask(n)
    must_not = nn.Transformer.generate_square_subsequent_mask(n)

    def our_stacks() -> Tensor:
        memory = ours.encoder(x, mask=None)
        out: Tensor = ours.decoder(y, memory, self_mask=may_attend, cross_mask=None)
        return out

    def their_stacks() -> Tensor:
        out: Tensor = theirs(x, y, tgt_mask=must_not, tgt_is_causal=True)
        return out

    require(torch.allclose(our_stacks(), their_stacks(), atol=1e-4), "both compute the same")
    return our_stacks, their_stacks


def _greedy(model: Transformer, n: int) -> _Pair:
    """A source of n tokens and exactly NEW_TOKENS target tokens: the end token is never chosen."""
    src = random_ids(model.config.src_vocab, n, seed=3)
    start = random_ids(model.config.tgt_vocab, 1, seed=4)
    end_id = 1

    def choose(log_probabilities: Tensor) -> Tensor:
        log_probabilities[:, end_id] = -torch.inf
        return log_probabilities.argmax(dim=-1)

    def run(*, cached: bool) -> list[list[int]]:
        next_token = NextToken(model, src, cached=cached)
        return decode(next_token, start, choose=choose, end_ids=[end_id], max_new_tokens=NEW_TOKENS)

    with_cache, without = run(cached=True), run(cached=False)
    require(len(with_cache[0]) == NEW_TOKENS and with_cache == without, "both choose the same 30 tokens")
    return lambda: run(cached=True), lambda: run(cached=False)
