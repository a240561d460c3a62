"""Corrections of claims in course notes, shown on the pages that they concern. Formulas are between dollar signs."""

from dataclasses import dataclass

from visformer.errors import N_


@dataclass(frozen=True)
class Claim:
    """A sentence or formula of course notes that is wrong, or that is written differently here.

    Args:
        page: name of the page that it concerns.
        printed: the claim in the notes, abridged.
        right: the correct version.
        why: one line of explanation.
        convention: whether both are correct, and ``right`` is the convention used here.
    """

    page: str
    printed: str
    right: str
    why: str
    convention: bool = False


CLAIMS = (
    Claim(
        "positions",
        "$2 / 10000^{2/4} = 0.0002$",
        "$2 / 10000^{2/4} = 0.02$",
        N_("The exponent is 2/4 = 1/2: 10000^(1/2) is 100, and 2/100 is 0.02."),
    ),
    Claim(
        "positions",
        N_("odd dimensions: sine, even ones: cosine"),
        N_("even dimensions (2i): sine, odd ones (2i + 1): cosine"),
        N_("The formula next to that sentence says the opposite, and is right: dimensions count from 0."),
    ),
    Claim(
        "positions",
        r"$i \cdot 10000^{-j/d}$",
        r"$i \cdot 10000^{-2j/d}$",
        N_("Frequency j of the d/2 belongs to dimensions 2j and 2j + 1, so the exponent contains 2j."),
    ),
    Claim(
        "masks",
        N_("0 = visible, 1 = hidden; in the code beside it `masked_fill(mask == 0, -1e9)`"),
        N_("1 = may attend, 0 = hidden, as in that code"),
        N_("Sentence and code contradict each other. Here True always means “may attend”; “In a batch” shows both."),
    ),
    Claim(
        "masks",
        N_("an example that runs a decoder with a mask of zeros"),
        N_("every score becomes −1e9, and the pattern is uniform"),
        N_("Equal scores give equal weights, however low they are. Here a row that may see nothing gives zeros."),
    ),
    Claim(
        "head",
        "Q == K == V",
        "$Q = X W_Q, \\ K = X W_K, \\ V = X W_V$",
        N_("One sequence, three projections: the three are equal only if the three weights are."),
    ),
    Claim(
        "head",
        N_("V in the line for Q, in a vectorised formula"),
        "$Q = X W_Q$",
        N_("Without Q there is nothing to compare K with."),
    ),
    Claim(
        "head",
        r"$\mathrm{softmax}(Q K^T)\, V$",
        r"$\mathrm{softmax}(Q K^T / \sqrt{d_k})\, V$",
        N_("Products of d_k terms spread like √d_k; unscaled, softmax saturates and learns no more. The lab has both."),
    ),
    Claim(
        "head",
        r"$q = W_Q\, x$",
        r"$q^T = x^T\, W_Q^T$",
        N_(
            "Not a misprint but a convention: columns in the notes, rows in the paper's X W and here. The "
            "weights are each other's transpose."
        ),
        convention=True,
    ),
    Claim(
        "block",
        N_("LayerNorm has no parameters"),
        N_("γ and β: 2 × d_model numbers"),
        N_("The normalised values are multiplied by γ and shifted by β; both are learned."),
    ),
    Claim(
        "block",
        N_("the width d may change freely across the block"),
        N_("one width d_model through the whole block"),
        N_("x + Sublayer(x) adds number to number. Only inside a sublayer, as in the feed-forward, may it differ."),
    ),
    Claim(
        "block",
        N_("ChatGPT's GPT has an encoder and a decoder"),
        N_("GPT is decoder-only"),
        N_("It is the decoder's stack without cross-attention: there is no memory to read from."),
    ),
)


def claims_of(page: str) -> tuple[Claim, ...]:
    """Return the claims that concern a page."""
    return tuple(claim for claim in CLAIMS if claim.page == page)
