"""Masks: True = may attend."""

import numpy as np
import torch
from hypothesis import given
from hypothesis import strategies as st

from visformer import formulas
from visformer.model.masks import padding_mask


@given(st.lists(st.lists(st.integers(0, 3), min_size=4, max_size=4), min_size=1, max_size=3), st.integers(0, 3))
def test_the_padding_mask_is_true_for_tokens_and_equals_the_formula(ids, pad_id):
    mask = padding_mask(torch.tensor(ids), pad_id)
    assert mask.dtype == torch.bool and mask.shape == (len(ids), 1, 1, 4)
    assert mask[:, 0, 0].tolist() == [[i != pad_id for i in row] for row in ids]
    np.testing.assert_array_equal(mask.numpy(), formulas.padding_mask(ids, pad_id))
