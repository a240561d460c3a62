"""The claims of the course notes, checked by computing each that can be computed."""

import math

import numpy as np
import pytest
import torch

from visformer.pictures.examples.claims import CLAIMS, claims_of


def claim(page, begins):
    (found,) = [claim for claim in claims_of(page) if claim.printed.startswith(begins)]
    return found


@pytest.mark.parametrize("claim", CLAIMS, ids=lambda claim: claim.printed)
def test_every_claim_is_whole(claim):
    assert claim.page in ("positions", "masks", "head", "block")
    assert claim.printed != claim.right
    assert claim.why.endswith(".")
    for text in (claim.printed, claim.right, claim.why):
        assert text.count("$") % 2 == 0
        assert text.count("{") == text.count("}")


@pytest.mark.parametrize(
    ("page", "begins", "right"),
    [
        ("positions", "$2 / 10000", "= 0.02$"),
        ("positions", "$i", r"$i \cdot 10000^{-2j/d}$"),
        ("positions", "odd", "even dimensions (2i): sine, odd ones (2i + 1): cosine"),
        ("masks", "an example", "uniform"),
        ("block", "LayerNorm", "γ and β: 2 × d_model numbers"),
    ],
)
def test_what_other_tests_compute_is_said(page, begins, right):
    """By test_formulas.py, test_worked.py ("zero-mask") and test_pictures.py (the parameters of a layer norm)."""
    assert claim(page, begins).right.endswith(right)


def test_masked_fill_hides_what_is_0():
    mask = torch.tensor([[1, 0, 1]])
    pattern = torch.zeros(1, 3).masked_fill(mask == 0, -1e9).softmax(dim=-1)
    assert np.allclose(pattern, [[0.5, 0, 0.5]])
    assert claim("masks", "0 = visible").right.startswith("1 = may attend")


def test_scores_spread_like_the_root_of_d_k():
    """Why they are divided by it: the products of unit normal vectors have deviation sqrt(d_k)."""
    rng = np.random.default_rng(0)
    for d_k in (4, 64, 256):
        products = (rng.normal(size=(20_000, d_k)) * rng.normal(size=(20_000, d_k))).sum(axis=-1)
        assert products.std() == pytest.approx(math.sqrt(d_k), rel=0.03)


def test_columns_and_rows_are_a_convention():
    """The same numbers either way, so neither is called right."""
    rng = np.random.default_rng(0)
    x, w = rng.normal(size=4), rng.normal(size=(3, 4))
    assert np.allclose(w @ x, x[None] @ w.T)
    assert claim("head", "$q = W_Q").convention
    assert [one.printed for one in CLAIMS if one.convention] == ["$q = W_Q\\, x$"]
