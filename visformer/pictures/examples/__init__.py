"""Worked examples as data: what may be changed, what course notes print, and what the arithmetic gives."""

from visformer.pictures.examples import attention, heads, masks, norms, positions

WORKED = (
    *positions.EXAMPLES,
    *attention.EXAMPLES,
    *heads.EXAMPLES,
    *norms.EXAMPLES,
    *masks.EXAMPLES,
)
"""Every worked example of the lab, in the order of its list."""
