"""Claims of the course notes, and computations that support their corrections."""

import copy
import math

import numpy as np
import pytest
import torch

from visformer import formulas
from visformer.pictures.claims import CLAIMS, claims_of


def claim(page, beginning):
    (match,) = [claim for claim in claims_of(page) if claim.printed.startswith(beginning)]
    return match


@pytest.mark.parametrize("claim", CLAIMS, ids=lambda claim: claim.printed)
def test_every_claim_has_a_page_a_correction_and_a_reason(claim):
    assert claim.page in ("", "positions", "masks", "head", "block")
    assert claim.printed != claim.right
    assert claim.why.endswith(".")
    for text in (claim.printed, claim.right, claim.why):
        assert text.count("$") % 2 == 0
        assert text.count("{") == text.count("}")


@pytest.mark.parametrize(
    ("page", "beginning", "right"),
    [
        ("positions", "$2 / 10000", "= 0.02$"),
        ("positions", "$i", r"$i \cdot 10000^{-2j/d}$"),
        ("positions", "odd", "even dimensions (2i): sine, odd ones (2i + 1): cosine"),
        ("masks", "an example", "uniform"),
        ("block", "LayerNorm", "γ and β: 2 × d_model numbers"),
    ],
)
def test_a_claim_is_corrected_to_what_other_tests_compute(page, beginning, right):
    """In test_formulas.py, test_worked.py ("zero-mask") and test_pictures.py (the parameters of a layer norm)."""
    assert claim(page, beginning).right.endswith(right)


def test_masked_fill_hides_where_the_mask_is_0():
    mask = torch.tensor([[1, 0, 1]])
    pattern = torch.zeros(1, 3).masked_fill(mask == 0, -1e9).softmax(dim=-1)
    assert np.allclose(pattern, [[0.5, 0, 0.5]])
    assert claim("masks", "0 = visible").right.startswith("1 = may attend")


def test_the_standard_deviation_of_products_is_the_root_of_d_k():
    """The reason for dividing scores by it; the vectors hold independent standard normal numbers."""
    rng = np.random.default_rng(0)
    for d_k in (4, 64, 256):
        products = (rng.normal(size=(20_000, d_k)) * rng.normal(size=(20_000, d_k))).sum(axis=-1)
        assert products.std() == pytest.approx(math.sqrt(d_k), rel=0.03)


def test_clones_begin_with_the_same_numbers():
    """As the notes' clones() makes them."""
    first, *others = [copy.deepcopy(layer) for layer in [torch.nn.Linear(4, 4)] * 4]
    assert all(torch.equal(first.weight, other.weight) for other in others)


def test_what_the_notes_encoder_returns_has_the_mean_1():
    """It ends with their LayerNorm, whose b2 starts as ones."""
    x = np.random.default_rng(0).normal(size=(8, 512))
    assert np.allclose(formulas.layer_norm_sample_std(x, bias=1.0).mean(axis=-1), 1)


def test_torch_multiplies_no_weights_with_whole_numbers():
    """The last line of the notes' example of a tensor of four dimensions."""
    value = torch.tensor([[1, 2], [3, 4], [5, 6]])
    with pytest.raises(RuntimeError, match="same dtype"):
        torch.matmul(torch.full((3, 3), 1 / 3), value)


def test_column_and_row_vectors_give_the_same_query_so_the_claim_is_a_convention():
    rng = np.random.default_rng(0)
    x, w = rng.normal(size=4), rng.normal(size=(3, 4))
    assert np.allclose(w @ x, x[None] @ w.T)
    assert claim("head", "$q = W_Q").convention
    assert [one.printed for one in CLAIMS if one.convention] == ["$q = W_Q\\, x$", "x + Dropout(Sublayer(LN(x)))"]
