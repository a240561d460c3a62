"""An SVG picture as a PNG file, without a browser."""

from visformer.errors import N_, VisformerError
from visformer.system import limits


def to_png(svg: str, *, scale: float = 3.0) -> bytes:
    """Draw an SVG with resvg and the fonts of this system.

    Args:
        svg: as from :func:`visformer.export.svg.panels_svg`.
        scale: pixels per CSS pixel: 3 is about 300 to the inch.

    Returns:
        A PNG file.

    Raises:
        VisformerError: the scale is not above 0, or the picture would be too large.
    """
    import re

    from resvg_py import svg_to_bytes

    size = re.match(r'<svg [^>]*?width="([0-9]+)" height="([0-9]+)"', svg)
    longest = max(map(int, size.groups())) if size else 0
    if not 0 < scale * longest <= limits.PNG_SIDE:
        raise VisformerError(
            N_("A picture of {longest} pixels at scale {scale:g} cannot be made: up to {limit} pixels a side are."),
            longest=longest,
            scale=scale,
            limit=limits.PNG_SIDE,
        )
    return bytes(svg_to_bytes(svg_string=svg, zoom=scale))
