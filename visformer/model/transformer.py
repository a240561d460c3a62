"""The encoder-decoder Transformer of "Attention Is All You Need", end to end (section 3, figure 1)."""

from typing import Any

import torch
from torch import Tensor, nn

from visformer.model import taps
from visformer.model.attention import Order
from visformer.model.config import EncoderDecoderConfig, VisionConfig
from visformer.model.embedding import Embedding
from visformer.model.layers import DecoderLayer, EncoderLayer, LayerCache
from visformer.model.masks import decoder_mask, key_mask
from visformer.model.patches import PatchEmbedding
from visformer.system.arguments import checked_class, require_whole


@checked_class
class Encoder(nn.Module):
    """A stack of encoder blocks (section 3.1); in torch ``nn.TransformerEncoder``."""

    def __init__(self, config: EncoderDecoderConfig) -> None:
        super().__init__()
        self.positions, self.n_heads = config.positions, config.n_heads
        self.layers = nn.ModuleList(EncoderLayer(config) for _ in range(config.n_encoder_layers))
        self.norm = _final_norm(config)

    def forward(self, x: Tensor, *, mask: Tensor | None = None) -> Tensor:
        """Read an embedded source sentence.

        Args:
            x: (batch, src, d_model), already embedded.
            mask: bool, broadcastable to (batch, head, query, key), True = may attend.

        Returns:
            memory (batch, src, d_model).
        """
        tap = taps.current().at("encoder")
        order = Order.of(self.positions, x, n_heads=self.n_heads)
        for i, layer in enumerate(self.layers):
            x = layer(x, mask=mask, order=order, tap=tap.at(str(i)))
        return tap("out", self.norm(x))


@checked_class
class Decoder(nn.Module):
    """A stack of decoder blocks (section 3.1); in torch ``nn.TransformerDecoder``."""

    def __init__(self, config: EncoderDecoderConfig) -> None:
        super().__init__()
        self.positions, self.n_heads = config.positions, config.n_heads
        self.layers = nn.ModuleList(DecoderLayer(config) for _ in range(config.n_decoder_layers))
        self.norm = _final_norm(config)

    def forward(
        self,
        y: Tensor,
        memory: Tensor,
        *,
        self_mask: Tensor | None = None,
        cross_mask: Tensor | None = None,
        cache: list[LayerCache] | None = None,
    ) -> Tensor:
        """Read an embedded target prefix and the encoder's memory.

        Args:
            y: (batch, tgt, d_model), already embedded.
            memory: (batch, src, d_model).
            self_mask: bool, broadcastable to (batch, head, tgt, tgt), True = may attend.
            cross_mask: bool, broadcastable to (batch, head, tgt, src).
            cache: one per layer, while generating; ``y`` then holds the new positions only.

        Returns:
            (batch, tgt, d_model).
        """
        tap = taps.current().at("decoder")
        order = Order.of(self.positions, y, n_heads=self.n_heads, start=len(cache[0].self_attn) if cache else 0)
        masks = {"self_mask": self_mask, "cross_mask": cross_mask}
        for i, layer in enumerate(self.layers):
            y = layer(y, memory, **masks, order=order, tap=tap.at(str(i)), cache=cache[i] if cache else None)
        return tap("out", self.norm(y))


@checked_class
class Output(nn.Linear):
    """The linear map from a decoder's output to logits, whose softmax is the prediction (section 3.4).

    Args:
        d_model: width of the decoder's output.
        vocab: number of token ids.
    """

    def __init__(self, d_model: int, vocab: int) -> None:
        require_whole("d_model", d_model)
        require_whole("vocab", vocab)
        super().__init__(d_model, vocab, bias=False)

    def forward(self, x: Tensor) -> Tensor:
        """Score every token of the vocabulary as the next one.

        Args:
            x: (batch, token, d_model).

        Returns:
            logits (batch, token, vocab): unnormalised log-probabilities.
        """
        return super().forward(x)


@checked_class
class Transformer(nn.Module):
    """Maps source ids and target ids to logits over the next target token, at every target position at once.

    With a :class:`visformer.model.config.VisionConfig` the source is a picture: wherever source ids are taken it takes
    pixels, floating (batch, channel, row, column) from 0 to 1, and "src" is the picture's patches, row by row.
    """

    def __init__(self, config: EncoderDecoderConfig) -> None:
        super().__init__()
        self.config = config
        self.src_embedding = (
            PatchEmbedding(config) if isinstance(config, VisionConfig) else Embedding(config.src_vocab, config)
        )
        self.tgt_embedding = Embedding(config.tgt_vocab, config)
        self.encoder = Encoder(config)
        self.decoder = Decoder(config)
        self.output = Output(config.d_model, config.tgt_vocab)
        for name, weight in self.named_parameters():
            if weight.dim() > 1 and "embedding" not in name:
                nn.init.xavier_uniform_(weight)
        if config.tie_embeddings:  # section 3.4
            self.output.weight = self.tgt_embedding.token.weight
        if isinstance(self.src_embedding, Embedding) and config.ties_all_three:
            self.src_embedding.token.weight = self.tgt_embedding.token.weight

    def forward(self, src_ids: Tensor, tgt_ids: Tensor) -> Tensor:
        """Teacher forcing: row t of the result predicts the target token after ``tgt_ids[:, t]``.

        Args:
            src_ids: integer (batch, src); 0 is padding.
            tgt_ids: integer (batch, tgt), the beginning-of-sentence token first; 0 is padding.

        Returns:
            logits (batch, tgt, tgt_vocab): unnormalised log-probabilities.
        """
        return self.decode(tgt_ids, self.encode(src_ids), src_ids)

    def encode(self, src_ids: Tensor) -> Tensor:
        """Encode a batch of source sentences.

        Args:
            src_ids: (batch, src) integer; 0 is padding, which nothing attends to.

        Returns:
            The memory, (batch, src, d_model).
        """
        x = self.src_embedding(src_ids, tap=taps.current().at("src"))  # (batch, src, d_model)
        memory: Tensor = self.encoder(x, mask=key_mask(src_ids))
        return memory

    def decode(
        self, tgt_ids: Tensor, memory: Tensor, src_ids: Tensor, *, cache: list[LayerCache] | None = None, start: int = 0
    ) -> Tensor:
        """Compute logits from target ids and memory.

        Args:
            tgt_ids: integer (batch, tgt); with a cache, only the tokens that it does not hold yet.
            memory: (batch, src, d_model), from :meth:`encode`.
            src_ids: integer (batch, src): tells which memory positions are padding.
            cache: from :meth:`new_cache`; extended in place.
            start: how many target tokens the cache holds.

        Returns:
            logits (batch, tgt, tgt_vocab).
        """
        tap = taps.current()
        y = self.read_target(tgt_ids, memory, src_ids, cache=cache, start=start)  # (batch, tgt, d_model)
        return tap("logits", self.output(y))  # (batch, tgt, tgt_vocab)

    def read_target(
        self, tgt_ids: Tensor, memory: Tensor, src_ids: Tensor, *, cache: list[LayerCache] | None = None, start: int = 0
    ) -> Tensor:
        """Compute what :meth:`decode` projects to logits; without those a short sentence takes a third less time.

        Args:
            tgt_ids: as in :meth:`decode`.
            memory: as in :meth:`decode`.
            src_ids: as in :meth:`decode`.
            cache: as in :meth:`decode`.
            start: as in :meth:`decode`.

        Returns:
            (batch, tgt, d_model).
        """
        tap = taps.current()
        y = self.tgt_embedding(tgt_ids, tap=tap.at("tgt"), start=start)  # (batch, tgt, d_model)
        self_mask, cross_mask = decoder_mask(tgt_ids, start), key_mask(src_ids)
        read: Tensor = self.decoder(y, memory, self_mask=self_mask, cross_mask=cross_mask, cache=cache)
        return read

    def new_cache(self) -> list[LayerCache]:
        """An empty cache for one generation.

        Returns:
            One entry for each layer of the decoder.
        """
        return [LayerCache() for _ in self.decoder.layers]

    @classmethod
    def from_torch(cls, nn_transformer: nn.Transformer, *, src_vocab: int, tgt_vocab: int) -> "Transformer":
        """Copy both stacks of a ``torch.nn.Transformer``; embeddings and output projection are initialised anew.

        See :func:`visformer.model.from_torch.copy_torch_transformer` for what cannot be copied.

        Args:
            nn_transformer: built by ``torch.nn.Transformer``, with biases and activation relu or gelu.
            src_vocab: number of source token ids.
            tgt_vocab: number of target token ids.

        Returns:
            A Transformer that computes what the two stacks do, and shares no storage with them.
        """
        from visformer.model.from_torch import copy_torch_transformer

        return copy_torch_transformer(cls, nn_transformer, src_vocab=src_vocab, tgt_vocab=tgt_vocab)

    def __call__(self, *args: Any, **kwargs: Any) -> Tensor:
        """``nn.Module.__call__``, typed."""
        logits: Tensor = super().__call__(*args, **kwargs)
        return logits


def _final_norm(config: EncoderDecoderConfig) -> nn.Module:
    if config.has_final_norm:
        return nn.LayerNorm(config.d_model, eps=config.layer_norm_eps)
    return nn.Identity()


def load_state(model: nn.Module, state: dict[str, Tensor]) -> None:
    """Load weights by name, in the model's own precision; a tied matrix needs only one of its names.

    Raises:
        RuntimeError: they are not those of the model; one line names the first that differs.
    """
    own = model.state_dict(keep_vars=True)
    tied = {
        name: state[other] for name, p in own.items() for other in state if name not in state and own.get(other) is p
    }
    given = {**state, **tied}
    faults = [f"{name} is missing" for name in own if name not in given]
    faults += [f"{name} is none of the model's weights" for name in given if name not in own]
    faults += [
        f"{name} has the shape {tuple(given[name].shape)} instead of {tuple(own[name].shape)}"
        for name in own
        if name in given and given[name].shape != own[name].shape
    ]
    if faults:
        more = f", and {len(faults) - 1} more" if len(faults) > 1 else ""
        raise RuntimeError(f"{faults[0]}{more}")
    with torch.no_grad():
        model.load_state_dict(given)
