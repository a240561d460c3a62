"""What every head does over a whole corpus: small sums that are added up text by text and merged in any order."""

from visformer.analysis.atlas.data import Columns, Data
from visformer.analysis.atlas.measures import MEASURES, Measure
from visformer.analysis.atlas.run import build
from visformer.analysis.atlas.tables import Atlas

__all__ = ["MEASURES", "Atlas", "Columns", "Data", "Measure", "build"]
