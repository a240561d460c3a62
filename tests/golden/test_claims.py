"""The claims of the course notes, checked by computing each that can be computed."""

import math

import numpy as np
import pytest
import torch

from visformer import formulas
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


def test_two_over_the_root():
    assert 2 * float(formulas.frequencies(4)[1]) == pytest.approx(0.02)
    assert claim("positions", "$2 / 10000").right.endswith("= 0.02$")


def test_the_frequencies_have_2j_in_their_power():
    d, theirs, ours = 8, [10000 ** (-j / 8) for j in range(4)], [10000 ** (-2 * j / 8) for j in range(4)]
    assert np.allclose(formulas.frequencies(d), ours)
    assert not np.allclose(formulas.frequencies(d), theirs)
    assert claim("positions", "$i").right == r"$i \cdot 10000^{-2j/d}$"


def test_even_dimensions_take_the_sine():
    table = formulas.sinusoidal_encoding(7, 6)
    rates = [10000 ** (-i / 6) for i in (0, 2, 4)]
    assert np.allclose(table[5, 0::2], [math.sin(5 * rate) for rate in rates])
    assert np.allclose(table[5, 1::2], [math.cos(5 * rate) for rate in rates])
    assert claim("positions", "odd").right.startswith("even dimensions (2i): sine")


def test_masked_fill_hides_what_is_0():
    mask = torch.tensor([[1, 0, 1]])
    pattern = torch.zeros(1, 3).masked_fill(mask == 0, -1e9).softmax(dim=-1)
    assert np.allclose(pattern, [[0.5, 0, 0.5]])
    assert claim("masks", "0 = visible").right.startswith("1 = may attend")


def test_a_mask_of_zeros_is_uniform():
    scores = torch.randn(3, 4, generator=torch.Generator().manual_seed(0))
    pattern = scores.masked_fill(torch.zeros(3, 4) == 0, -1e9).softmax(dim=-1)
    assert torch.equal(pattern, torch.full((3, 4), 0.25))
    assert claim("masks", "a decoder").right.endswith("uniform")


def test_scores_spread_like_the_root_of_d_k():
    """Why they are divided by it: the products of unit normal vectors have deviation sqrt(d_k)."""
    rng = np.random.default_rng(0)
    for d_k in (4, 64, 256):
        products = (rng.normal(size=(20_000, d_k)) * rng.normal(size=(20_000, d_k))).sum(axis=-1)
        assert products.std() == pytest.approx(math.sqrt(d_k), rel=0.03)


def test_layer_norm_has_two_rows_of_parameters():
    assert sum(p.numel() for p in torch.nn.LayerNorm(512).parameters()) == 2 * 512
    assert claim("block", "LayerNorm").right == "γ and β: 2 × d_model numbers"


def test_columns_and_rows_are_a_convention():
    """The same numbers either way, so neither is called right."""
    rng = np.random.default_rng(0)
    x, w = rng.normal(size=4), rng.normal(size=(3, 4))
    assert np.allclose(w @ x, x[None] @ w.T)
    assert claim("head", "$q = W_Q").convention
    assert [one.printed for one in CLAIMS if one.convention] == ["$q = W_Q\\, x$"]
