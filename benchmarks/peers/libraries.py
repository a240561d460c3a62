"""The libraries that a peer's page loads from a CDN, and their copies in the npm registry."""

from dataclasses import dataclass

CDN = "https://cdnjs.cloudflare.com"
"""The only CDN that the peers' pages use; CircuitsVis and Inspectus include their scripts."""


@dataclass(frozen=True)
class Library:
    """One file.

    Args:
        address: path on the CDN, as the page requests it.
        package: name and version on npm.
        file: path inside the package.
    """

    address: str
    package: str
    file: str


LIBRARIES = (
    # npm has no minified version: 87 kB instead of 18 kB.
    Library("/ajax/libs/require.js/2.3.6/require.min.js", "requirejs@2.3.6", "require.js"),
    Library("/ajax/libs/d3/5.7.0/d3.min.js", "d3@5.7.0", "dist/d3.min.js"),
    # 2.0.0, which BertViz requests, was never published there; this is the next release.
    Library("/ajax/libs/jquery/2.0.0/jquery.min.js", "jquery@2.1.0", "dist/jquery.min.js"),
)
