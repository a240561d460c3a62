"""What every head does over a whole corpus: small sums that are added up text by text and merged in any order."""

from visformer.analysis.atlas.archive import bundled_names, pack
from visformer.analysis.atlas.data import Columns, Data
from visformer.analysis.atlas.likeness import difference, distances, histogram, similar_heads
from visformer.analysis.atlas.measures import MEASURES, Measure, edges
from visformer.analysis.atlas.roles import ROLES, interval, roles, values, with_token
from visformer.analysis.atlas.run import build
from visformer.analysis.atlas.tables import Atlas
from visformer.system.arguments import check_public

__all__ = [
    "MEASURES",
    "ROLES",
    "Atlas",
    "Columns",
    "Data",
    "Measure",
    "build",
    "bundled_names",
    "difference",
    "distances",
    "edges",
    "histogram",
    "interval",
    "pack",
    "roles",
    "similar_heads",
    "values",
    "with_token",
]

check_public(__name__)
