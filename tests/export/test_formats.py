"""Every declared format can be written, and the package has its public names."""

import pytest

import visformer as vf
from benchmarks.messages import read_message
from tests.web.support import made_up_trace
from tests.web.test_page import messages
from visformer import figures
from visformer.export.drawables import Options
from visformer.export.formats import FORMATS, file_of
from visformer.pictures import positions
from visformer.pictures.map import RECORD, WholeModel
from visformer.pictures.sides import Sides

EXAMPLES = {
    "trace": made_up_trace,
    "panels": lambda: [positions.encoding(5, 6)],
    "figure": lambda: figures.position_waves(4, 4, [0]),
    "pair": lambda: Sides(made_up_trace(seed=1), made_up_trace(seed=2), ("one", "other")),
}


@pytest.mark.parametrize("kind", EXAMPLES)
def test_every_offered_format_can_be_written(tmp_path, kind):
    endings = [one.ending for one in FORMATS if kind in one.offers]
    for ending in endings:
        vf.export.save(EXAMPLES[kind](), tmp_path / f"x{ending}")
        assert (tmp_path / f"x{ending}").stat().st_size > 0
    assert len(endings) >= 4


def test_two_that_are_compared_are_one_page_that_loads_nothing():
    sides = Sides(made_up_trace(seed=1), made_up_trace(seed=2), ("one", "<b>other"))
    page = file_of("HTML", sides, Options()).decode()
    assert "picture" in messages(page)
    assert "<title>one | &lt;b&gt;other</title>" in page


def test_every_public_name_of_the_package_is_a_function():
    assert {*vf.export.__all__} <= {*dir(vf.export)}
    assert all(callable(getattr(vf.export, name)) for name in vf.export.__all__)
    with pytest.raises(AttributeError, match=r"visformer\.export.*nonsense"):
        vf.export.nonsense  # noqa: B018


def test_the_file_of_the_whole_model_has_its_head_and_the_names_of_candidates():
    model = vf.load("en-zh")
    trace = model.trace("I went to school.", record=model.available(RECORD))
    drawn = WholeModel(trace, ("decoder.cross_attn", 2, 3))
    header, _ = read_message(messages(file_of("HTML", drawn, Options(lang="zh")).decode())["model"])
    assert header["focus"] == {"stack": "decoder.cross_attn", "layer": 2, "head": 3}
    assert header["text"]["play"] == "播放"
    assert [step["tokens"][0] for step in header["steps"]] == list(trace.tokens["next"])
