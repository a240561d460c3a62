"""How pages and pictures write numbers for people; static/shared/numbers.js does in the browser."""

LEAST = 0.001
"""What is smaller is not rounded up to it: a label of 0.001 says that this much is reached."""


def probability(share: float) -> str:
    """Write a probability with three decimals; "0" is exactly 0, and what does not reach 0.001 is "<0.001"."""
    return "0" if share == 0 else f"{share:.3f}" if share >= LEAST else "<0.001"
