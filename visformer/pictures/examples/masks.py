"""Worked example of a mask: all zeros."""

import numpy as np

from visformer import formulas
from visformer.errors import N_
from visformer.formulas import Floats
from visformer.pictures.examples.worked import Arrays, Worked, allowed, matrix


def _zero_mask(given: Arrays) -> dict[str, Floats]:
    mask = allowed(given["mask"], given["scores"])
    filled = np.where(mask, given["scores"], -1e9)
    return {
        N_("scores where the mask is 1, else −1e9"): filled,
        N_("softmax of that"): formulas.softmax(filled),
        N_("visformer's rule"): formulas.softmax(given["scores"], mask),
    }


EXAMPLES = (
    Worked(
        name="zero-mask",
        title=N_("A mask of zeros: uniform, not empty"),
        section="3.2.3",
        formula=r"""&\sym{heads}{F}_{ij} = \begin{cases} \sym{scores}{S}_{ij} & \sym{mask}{M}_{ij} = 1 \\
-10^9 & \sym{mask}{M}_{ij} = 0 \end{cases} \\[4pt]
&\sym{pattern}{A} = \mathrm{softmax}(\sym{heads}{F})""",
        code=(("pictures/examples/masks.py", "_zero_mask"), ("formulas.py", "softmax")),
        inputs={N_("scores"): matrix([2, 1, 0.5], [0.3, 2, 1], [1, 0.2, 2]), N_("mask"): np.zeros((3, 3))},
        compute=_zero_mask,
        remarks={
            "softmax of that": N_(
                "Every score is −1e9, so all are equal: the row spreads evenly over what it may not see."
            ),
            "visformer's rule": N_("A row that may see nothing gives zeros."),
        },
    ),
)
