"""The Transformer of "Attention Is All You Need", in pure torch, written to be read beside the paper.

Its classes also work one by one, on a batch of your own: ``MultiHeadAttention(512, 8)(x, x, x)``. What other
texts call them, and torch:

==========================================  ======================================  ==============================
often                                       here                                    torch
==========================================  ======================================  ==============================
``attention(q, k, v, mask, dropout)``       :func:`visformer.attention`             ``scaled_dot_product_attention``
``MultiHeadedAttention``                    :class:`MultiHeadAttention`             ``MultiheadAttention``
``PositionwiseFeedForward``                 :class:`FeedForward`                    ``linear1``, ``linear2`` of a layer
``Embeddings`` and ``PositionalEncoding``   :class:`Embedding`                      ``Embedding``; no positions
``EncoderLayer`` with its                   :class:`EncoderLayer`                   ``TransformerEncoderLayer``
``SublayerConnection``
``DecoderLayer``                            :class:`DecoderLayer`                   ``TransformerDecoderLayer``
``Encoder``, ``Decoder``                    :class:`Encoder`, :class:`Decoder`      ``TransformerEncoder``,
                                                                                    ``TransformerDecoder``
``LayerNorm``                               torch's                                 ``LayerNorm``
``Generator``                               :class:`Output`, then ``log_softmax``   ``Linear``
``EncoderDecoder``                          :class:`visformer.Transformer`          ``Transformer``; no embeddings
==========================================  ======================================  ==============================

The classes are imported on first use.
"""

import importlib
from typing import TYPE_CHECKING, Any

from visformer.system.arguments import public

_PLACES = {
    "visformer.model.attention": "MultiHeadAttention",
    "visformer.model.embedding": "Embedding",
    "visformer.model.layers": "DecoderLayer EncoderLayer FeedForward",
    "visformer.model.transformer": "Decoder Encoder Output",
}
_PUBLIC = {name: place for place, names in _PLACES.items() for name in names.split()}
__all__ = sorted(_PUBLIC)

if TYPE_CHECKING:
    from visformer.model.attention import MultiHeadAttention as MultiHeadAttention
    from visformer.model.embedding import Embedding as Embedding
    from visformer.model.layers import DecoderLayer as DecoderLayer
    from visformer.model.layers import EncoderLayer as EncoderLayer
    from visformer.model.layers import FeedForward as FeedForward
    from visformer.model.transformer import Decoder as Decoder
    from visformer.model.transformer import Encoder as Encoder
    from visformer.model.transformer import Output as Output


def __getattr__(name: str) -> Any:
    if name in _PUBLIC:
        return public(getattr(importlib.import_module(_PUBLIC[name]), name), __name__)
    raise AttributeError(f"module 'visformer.model' has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted(__all__)
