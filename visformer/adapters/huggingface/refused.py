"""Families of transformers that visformer cannot show, and why."""

from collections.abc import Mapping
from typing import Any

from visformer.errors import N_, CheckpointError, Message

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
