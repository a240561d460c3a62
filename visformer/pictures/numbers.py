"""How pages and pictures write numbers for people; static/shared/numbers.js does in the browser."""

LEAST = 0.0005
"""What is smaller has no digit among three decimals."""


def probability(share: float) -> str:
    """Write a probability with three decimals; "0" is exactly 0, and what three decimals cannot show is "<0.001"."""
    return "0" if share == 0 else f"{share:.3f}" if share >= LEAST else "<0.001"
