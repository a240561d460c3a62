"""Export of a Trace or a picture to a file, whose ending selects the format. Needs neither torch nor Streamlit.

``save`` writes a file, ``site`` the translator as a page of its own. The other functions return their content as text
or bytes: ``page`` (HTML), ``to_pdf``, ``to_png``, and those whose names end in ``_svg``, ``_csv``, ``_json`` and
``_tensors``. A Trace as safetensors is :meth:`visformer.trace.Trace.to_bytes`.

The functions are imported on first use: the command line and the pages import :mod:`visformer.export.formats` before
NumPy.
"""

import importlib
from typing import TYPE_CHECKING, Any

from visformer.system.arguments import public

_PLACES = {
    "visformer.export.attention": "arcs_svg attention_svg pair_svg tokens_svg",
    "visformer.export.curves": "figure_svg",
    "visformer.export.saving": "save",
    "visformer.export.svg": "heads_svg panels_svg to_pdf to_png",
    "visformer.export.tables": "figure_csv figure_json panels_csv panels_json panels_tensors to_csv to_json",
    "visformer.web.page": "history_page model_page page pair_page",
    "visformer.web.site": "site",
}
_PUBLIC = {name: place for place, names in _PLACES.items() for name in names.split()}
__all__ = sorted(_PUBLIC)

if TYPE_CHECKING:
    from visformer.export.attention import arcs_svg as arcs_svg
    from visformer.export.attention import attention_svg as attention_svg
    from visformer.export.attention import pair_svg as pair_svg
    from visformer.export.attention import tokens_svg as tokens_svg
    from visformer.export.curves import figure_svg as figure_svg
    from visformer.export.saving import save as save
    from visformer.export.svg import heads_svg as heads_svg
    from visformer.export.svg import panels_svg as panels_svg
    from visformer.export.svg import to_pdf as to_pdf
    from visformer.export.svg import to_png as to_png
    from visformer.export.tables import figure_csv as figure_csv
    from visformer.export.tables import figure_json as figure_json
    from visformer.export.tables import panels_csv as panels_csv
    from visformer.export.tables import panels_json as panels_json
    from visformer.export.tables import panels_tensors as panels_tensors
    from visformer.export.tables import to_csv as to_csv
    from visformer.export.tables import to_json as to_json
    from visformer.web.page import history_page as history_page
    from visformer.web.page import model_page as model_page
    from visformer.web.page import page as page
    from visformer.web.page import pair_page as pair_page
    from visformer.web.site import site as site


def __getattr__(name: str) -> Any:
    if name in _PUBLIC:
        return public(getattr(importlib.import_module(_PUBLIC[name]), name), __name__)
    raise AttributeError(f"module 'visformer.export' has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted(__all__)
