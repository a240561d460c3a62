"""The attention function compared with torch's and with the formulas in NumPy."""

import numpy as np
import pytest
import torch
from torch.nn import functional as F

from visformer import formulas
from visformer.errors import ShapeError, VisformerError
from visformer.model.attention import attention
from visformer.model.masks import causal_mask

TOLERANCE = {torch.float64: 1e-12, torch.float32: 1e-5}
SHAPES = {
    "heads": ((2, 3, 5, 4), (2, 3, 7, 4), (2, 3, 7, 6)),
    "one head": ((5, 4), (7, 4), (7, 4)),
    "one query": ((2, 3, 1, 8), (2, 3, 7, 8), (2, 3, 7, 8)),
    "odd width": ((1, 1, 4, 3), (1, 1, 4, 3), (1, 1, 4, 5)),
}
MASKS = ("none", "causal", "padding", "random")


def tensors(name, dtype=torch.float64):
    generator = torch.Generator().manual_seed(3)
    return [2 * torch.randn(shape, generator=generator, dtype=torch.float64).to(dtype) for shape in SHAPES[name]]


def make_mask(kind, query, key):
    n, m = query.shape[-2], key.shape[-2]
    if kind == "none":
        return None
    if kind == "causal":
        return causal_mask(max(n, m))[:n, :m]
    if kind == "padding":
        return torch.arange(m).expand(*query.shape[:-2], 1, m) < m - 2
    full = torch.rand(*query.shape[:-2], n, m, generator=torch.Generator().manual_seed(4)) < 0.5
    full[..., 0] = True  # torch gives NaN for a row that may attend to nothing
    return full


@pytest.mark.parametrize("kind", MASKS)
@pytest.mark.parametrize("shapes", SHAPES)
def test_attention_equals_torch_and_the_formulas(shapes, kind):
    for dtype, tolerance in TOLERANCE.items():
        query, key, value = tensors(shapes, dtype)
        mask = make_mask(kind, query, key)
        output, pattern = attention(query, key, value, mask=mask)
        expected = F.scaled_dot_product_attention(query, key, value, attn_mask=mask)
        torch.testing.assert_close(output, expected, rtol=0, atol=tolerance)
        if dtype == torch.float64:
            written_out = formulas.attention(query, key, value, mask=None if mask is None else mask.numpy())
            for ours, theirs, atol in zip((output, pattern), written_out, (1e-13, 1e-14), strict=True):
                np.testing.assert_allclose(ours.numpy(), theirs, rtol=0, atol=atol)


@pytest.mark.parametrize("dtype", [torch.float64, torch.float32, torch.bfloat16, torch.float16], ids=str)
def test_fully_masked_rows_and_their_gradients_are_zero(dtype):
    query, key, value = (t.requires_grad_() for t in tensors("heads", dtype))
    mask = torch.ones(2, 1, 5, 7, dtype=torch.bool)
    mask[0, :, 2], mask[1] = False, False
    output, pattern = attention(query, key, value, mask=mask)
    masked = ~mask.any(-1).expand(2, 3, 5)
    assert (pattern[masked] == 0).all() and (output[masked] == 0).all()
    ones = torch.ones(12, dtype=dtype)
    torch.testing.assert_close(pattern[~masked].sum(-1), ones, rtol=0, atol=1e-2 if dtype.itemsize == 2 else 1e-6)
    output.square().sum().backward()
    for leaf in (query, key, value):
        assert leaf.grad.isfinite().all()
    assert (query.grad[masked] == 0).all() and query.grad[~masked].abs().sum() > 0
    assert (value.grad[1] == 0).all()


def test_a_tap_gets_scores_mask_pattern_and_heads_in_this_order():
    query, key, value = tensors("heads")
    tapped = {}

    def tap(name, tensor):
        tapped[name] = tensor
        return tensor

    output, pattern = attention(query, key, value, mask=causal_mask(7)[:5], tap=tap)
    assert list(tapped) == ["scores", "mask", "pattern", "heads"]
    assert tapped["heads"] is output and tapped["pattern"] is pattern
    torch.testing.assert_close(tapped["scores"], query @ key.mT / 2, rtol=0, atol=1e-14)
    assert tapped["mask"].dtype == torch.bool and tapped["mask"].shape == (2, 3, 5, 7)
    assert torch.equal(tapped["mask"][1, 2], causal_mask(7)[:5])
    attention(query, key, value, tap=tap)
    assert tapped["mask"].shape == (2, 3, 5, 7) and tapped["mask"].all(), "without a mask, all of it is True"


@pytest.mark.parametrize(
    ("shapes", "message"),
    [(((2, 3), (3, 2), (3, 2)), r"\(2, 3\), \(3, 2\) and \(3, 2\)"), (((5, 2), (3, 2), (4, 2)), r"\(4, 2\)")],
    ids=["widths", "lengths"],
)
def test_shapes_that_do_not_fit_are_refused(shapes, message):
    with pytest.raises(ShapeError, match=message):
        attention(*map(torch.zeros, shapes))


@pytest.mark.parametrize(
    ("shape", "dtype"),
    [((3, 3), torch.bool), ((2, 3, 4), torch.bool), ((3, 4), torch.float32), ((3, 4), torch.int64)],
    ids=["sizes", "more dimensions", "float", "int"],
)
def test_masks_of_another_shape_or_dtype_are_refused(shape, dtype):
    mask = torch.ones(shape, dtype=dtype)
    query, key = torch.zeros(3, 2), torch.zeros(4, 2)
    with pytest.raises(ShapeError, match="mask"):
        attention(query, key, key, mask=mask)
    with pytest.raises(ShapeError, match="mask"):
        formulas.attention(query, key, key, mask=mask.numpy())
    assert issubclass(ShapeError, VisformerError) and issubclass(ShapeError, ValueError)
