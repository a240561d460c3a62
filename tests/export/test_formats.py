"""Every declared format can be written, and the package has its public names."""

import pytest

import visformer as vf
from tests.web.support import made_up_trace
from visformer import figures
from visformer.export.formats import FORMATS
from visformer.pictures import positions

EXAMPLES = {
    "trace": made_up_trace,
    "panels": lambda: [positions.encoding(5, 6)],
    "figure": lambda: figures.position_waves(4, 4, [0]),
}


@pytest.mark.parametrize("kind", EXAMPLES)
def test_every_offered_format_can_be_written(tmp_path, kind):
    endings = [one.ending for one in FORMATS if kind in one.offers]
    for ending in endings:
        vf.export.save(EXAMPLES[kind](), tmp_path / f"x{ending}")
        assert (tmp_path / f"x{ending}").stat().st_size > 0
    assert len(endings) >= 4


def test_every_public_name_of_the_package_is_a_function():
    assert {*vf.export.__all__} <= {*dir(vf.export)}
    assert all(callable(getattr(vf.export, name)) for name in vf.export.__all__)
    with pytest.raises(AttributeError, match=r"visformer\.export.*nonsense"):
        vf.export.nonsense  # noqa: B018
