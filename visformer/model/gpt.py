"""A decoder-only Transformer of GPT-2's type (Radford et al. 2019, section 2.3), to be read beside the paper's.

It has no encoder, and so no cross-attention: a block is the paper's encoder block behind a causal mask. Each sublayer's
input is normalised, not its sum; positions are learned (or there are none); the activation is GELU, not rounded to
tanh; embeddings are not scaled, and the output projection is a matrix of its own.
"""

import math
from typing import Any

import torch
from torch import Tensor, nn

from visformer.model import taps
from visformer.model.attention import NO_ORDER, KeyValueCache
from visformer.model.config import GPTConfig
from visformer.model.embedding import Embedding, sinusoidal_encoding
from visformer.model.layers import EncoderLayer
from visformer.model.masks import decoder_mask, key_mask
from visformer.model.transformer import Output
from visformer.system.arguments import checked_class


class Decoder(nn.Module):
    """A stack of blocks and a final LayerNorm."""

    def __init__(self, config: GPTConfig) -> None:
        super().__init__()
        self.layers = nn.ModuleList(EncoderLayer(config) for _ in range(config.n_layers))
        self.norm = nn.LayerNorm(config.d_model, eps=config.layer_norm_eps)

    def forward(self, x: Tensor, *, mask: Tensor | None, cache: list[KeyValueCache] | None = None) -> Tensor:
        """Read an embedded text.

        Args:
            x: (batch, token, d_model), already embedded.
            mask: bool, broadcastable to (batch, head, query, key), True = may attend.
            cache: one per layer, while generating; ``x`` then holds the new positions only.

        Returns:
            (batch, token, d_model).
        """
        tap = taps.current().at("decoder")
        for i, layer in enumerate(self.layers):
            x = layer(x, mask=mask, order=NO_ORDER, tap=tap.at(str(i)), cache=cache[i] if cache else None)
        return tap("out", self.norm(x))


@checked_class
class GPT(nn.Module):
    """Maps token ids to logits over the next token, at every position at once."""

    def __init__(self, config: GPTConfig) -> None:
        super().__init__()
        self.config = config
        self.embedding = Embedding(config.vocab, config, scale=1.0)
        self.decoder = Decoder(config)
        self.output = Output(config.d_model, config.vocab)
        for name, weight in self.named_parameters():  # as GPT-2: what adds to the residual stream begins smaller
            if weight.dim() > 1:
                adds = name.endswith(("w_o.weight", "w_2.weight"))
                nn.init.normal_(weight, std=0.02 / math.sqrt(2 * config.n_layers) if adds else 0.02)
        with torch.no_grad():  # induction heads form sooner where the position before is a rotation away ...
            if config.position == "learned":
                sinusoids = sinusoidal_encoding(config.max_len, config.d_model)
                self.embedding.position.copy_(0.02 * math.sqrt(2) * sinusoids)
            # ... and where a head that moves a token's embedding predicts that token.
            self.output.weight.copy_(self.embedding.token.weight)

    def forward(self, ids: Tensor, *, cache: list[KeyValueCache] | None = None) -> Tensor:
        """Row t of the result predicts the token after ``ids[:, t]``.

        Args:
            ids: integer (batch, token); 0 is padding, which nothing attends to. With a cache, only the tokens that it
                does not hold yet.
            cache: from :meth:`new_cache`; extended in place.

        Returns:
            logits (batch, token, vocab): unnormalised log-probabilities.
        """
        tap, start = taps.current(), len(cache[0]) if cache else 0
        x = self.embedding(ids, tap=tap.at("tgt"), start=start)  # (batch, token, d_model)
        mask = decoder_mask(ids, start) if self.config.causal else key_mask(ids)
        x = self.decoder(x, mask=mask, cache=cache)  # (batch, token, d_model)
        return tap("logits", self.output(x))  # (batch, token, vocab)

    def new_cache(self) -> list[KeyValueCache]:
        """An empty cache for one generation.

        Returns:
            One entry for each layer.
        """
        return [KeyValueCache() for _ in self.decoder.layers]

    def __call__(self, *args: Any, **kwargs: Any) -> Tensor:
        """``nn.Module.__call__``, typed."""
        logits: Tensor = super().__call__(*args, **kwargs)
        return logits
