"""How a model knows the order of its tokens, by what its Trace's ``meta["position"]`` says."""

from visformer.errors import N_, Message

TOKEN_ORDER = {
    "learned": N_("a learned vector for each place is added to the embedding"),
    "sinusoidal": N_("the sinusoidal encoding of the place is added to the embedding"),
    "rotary": N_("nothing is added: queries and keys are turned by an angle that grows with the place (rotary)"),
    "alibi": N_("nothing is added: scores fall off with the distance between query and key (ALiBi)"),
    "relative": N_("nothing is added: scores get a learned bias for each distance between query and key"),
    "disentangled": N_("nothing is added: scores have terms of their own for content and for relative place"),
    "unknown": N_("where this family keeps its positions is not in visformer's table"),
}


def described(kind: str) -> Message:
    """A message id, to be continued as "This model: ..."."""
    return TOKEN_ORDER.get(kind, TOKEN_ORDER["unknown"])
