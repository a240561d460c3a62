"""What inspection cannot see of a family of transformers: how it tells positions, and why some cannot be shown."""

from collections.abc import Mapping
from typing import Any, Literal

from visformer.errors import N_, CheckpointError, Message

Kind = Literal["encoder", "decoder", "encoder-decoder"]

POSITIONS: Mapping[str, str] = {
    model_type: position
    for position, types in {
        "learned": (
            "bert roberta xlm-roberta camembert electra ernie distilbert albert mpnet gpt2 gpt_bigcode gpt_neo opt "
            "bart mbart blenderbot blenderbot-small plbart"
        ),
        "rotary": "deepseek_v2 deepseek_v3",
        "disentangled": "deberta deberta-v2",
        "alibi": "bloom",
        "sinusoidal": "marian m2m_100 pegasus",
        "relative": "t5 mt5 umt5",
    }.items()
    for model_type in types.split()
}
"""transformers' model_type to its positional encoding, a key of :data:`visformer.model.positions.DESCRIBED`.

Rotation by the position is seen in queries and keys, unless these are computed through narrower vectors.
"""

PARALLEL = N_(
    "in a parallel block, attention and feed-forward read the same input and their outputs are added together"
)
PATTERNS_ONLY = N_("this family has its own attention code, which exposes patterns but no intermediate values")
DIFFERS = N_(
    "with visformer's attention function in place of its own, the model computes something else on a short text, so "
    "only its patterns are shown"
)
NO_TOKENS = N_("an attention of this model is not one softmax from tokens to tokens, so only its patterns are shown")
NOT_SEEN = N_("no module of this model was seen to read or return it, when visformer looked at it with a short text")
NO_MATRIX = N_(
    "no module of this model was seen to make it as x W + b, when visformer looked at it with a short text: what lies "
    "between (a norm, a gate, a rotation that begins elsewhere) is no matrix"
)
NO_ATTENTION = N_("this layer computes no attention weights: the model mixes attention with layers of other kinds")
NO_SOURCE = N_("a decoder-only model has no source to read")
NO_HEAD = N_("this encoder has no head that predicts tokens or labels")
NO_WEIGHTS = N_(
    "each of its layers has w_q, w_k, w_v and w_o, and whichever of the biases b_q to b_o it was trained with"
)
NO_END = N_("its stacks may end with norm.gamma and norm.beta, and a decoder with output.w and output.b")

_STATE_SPACE = N_("its layers are state-space models, which compute no attention weights")
_WINDOWS = N_("it attends within windows, and returns a weight for each place in the window, not for each key")
_BLOCKS = N_(
    "it attends in blocks and returns no weights; loaded with attention_type='original_full', vf.wrap takes it"
)
_NO_TOKENS = N_("it shortens the text between its layers, so that queries and keys are no longer tokens")

REFUSED: Mapping[str, Message] = {
    "mamba": _STATE_SPACE,
    "mamba2": _STATE_SPACE,
    "falcon_mamba": _STATE_SPACE,
    "rwkv": N_("its layers are recurrent, and compute no attention weights"),
    "fnet": N_("its layers mix tokens by a Fourier transform, and compute no attention weights"),
    "yoso": N_("it estimates attention by hashing, and computes no attention weights"),
    "longformer": _WINDOWS,
    "led": _WINDOWS,
    "longt5": _WINDOWS,
    "reformer": N_("it attends within chunks and hash buckets, not from each query to each key"),
    "big_bird": _BLOCKS,
    "bigbird_pegasus": _BLOCKS,
    "funnel": _NO_TOKENS,
    "canine": _NO_TOKENS,
    "xlnet": N_(
        "it is trained on permuted texts: its tokens attend to later ones, so its logits do not predict the next token"
    ),
    "prophetnet": N_("its decoder attends once for each of several future tokens"),
    "squeezebert": N_("it returns scores in place of attention weights"),
}
"""transformers' model_type to the reason, which completes "... cannot be shown: ..."."""


def refuse(config: Any) -> None:
    """Refuse a model of these families, before its weights are loaded.

    Raises:
        CheckpointError: the message says why.
    """
    if config.model_type in REFUSED and getattr(config, "attention_type", None) != "original_full":
        raise CheckpointError(
            N_("Models of the family {family!r} cannot be shown: {reason}."),
            family=config.model_type,
            reason=REFUSED[config.model_type],
        )
