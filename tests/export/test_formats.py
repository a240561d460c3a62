"""Each format is declared once, and can be written."""

import pytest

import visformer as vf
from tests.web.support import made_up_trace
from visformer import figures
from visformer.export.formats import FORMATS
from visformer.pictures import positions

THINGS = {
    "trace": made_up_trace,
    "panels": lambda: [positions.encoding(5, 6)],
    "figure": lambda: figures.position_waves(4, 4, [0]),
}


@pytest.mark.parametrize("kind", THINGS)
def test_every_offered_format_can_be_written(tmp_path, kind):
    offered = [one for one in FORMATS if kind in one.offers]
    for one in offered:
        path = tmp_path / f"x{one.ending}"
        vf.export.save(THINGS[kind](), path)
        assert path.stat().st_size > 0
    assert len(offered) >= 4


def test_the_package_has_the_names_in_all():
    assert {*vf.export.__all__} <= {*dir(vf.export)}
    assert all(callable(getattr(vf.export, name)) for name in vf.export.__all__)
    with pytest.raises(AttributeError, match=r"visformer\.export.*nonsense"):
        vf.export.nonsense  # noqa: B018
