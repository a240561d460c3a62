"""Why a model has no tensor, as Traces of earlier versions say it: a file keeps the text, catalogues only today's."""

_SINCE = {
    "a decoder alone has no source to read": "a decoder-only model has no source to read",
    "this family is not in visformer's table; patterns can be shown of any": (
        "this family is not in visformer's table, so only its patterns can be shown"
    ),
    "this family computes its attention in a way of its own, which shows patterns and nothing between": (
        "this family has its own attention code, which exposes patterns but no intermediate values"
    ),
    "in a parallel block attention and feed-forward read the same input, and both are added at once": (
        "in a parallel block, attention and feed-forward read the same input and their outputs are added together"
    ),
    "this model holds it in no place of its own": ("in this model it is neither the input nor the output of a module"),
    "nothing is added: queries and keys are turned by an angle that grows with the place (rotary)": (
        "nothing is added: queries and keys are rotated by an angle that grows with the position (rotary)"
    ),
    "nothing is added: scores have terms of their own for content and for relative place": (
        "nothing is added: scores have separate terms for content and relative position"
    ),
    "nothing tells it the order of tokens, but for the mask of a decoder": (
        "nothing tells it the order of tokens, except a decoder's mask"
    ),
    "where this family keeps its positions is not in visformer's table": (
        "visformer's table does not say how this family encodes positions"
    ),
}


def today(reason: str) -> str:
    """Return today's words for a reason; one that has not changed, or that others wrote, unchanged."""
    return _SINCE.get(reason, reason)
