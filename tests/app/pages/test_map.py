"""The page of the whole model: places in its address, what is computed for a cell, and the pages they lead to."""

from urllib.parse import parse_qsl, urlsplit

import pytest

from benchmarks.messages import read_message
from tests.addresses import address_of
from tests.app.support import ignored, open_page
from visformer.app.widgets import component
from visformer.web import places
from visformer.web.map import pack_place
from visformer.web.places import cell

CELL = "decoder.2.cross_attn.3.2.4"
PAGES = {"attention": "see/attention", "head": "understand/head", "block": "understand/block"}


@pytest.fixture
def drawn(monkeypatch):
    """What the page drew: for each run the Trace and the header of the place's message; and its callback."""
    shown = []

    def picture(model, *, place, on_zoom, **_):
        shown.append((model.trace, read_message(pack_place(**place))[0], on_zoom))

    monkeypatch.setattr(component, "map_picture", picture)
    return shown


@pytest.mark.parametrize("zoom", ["decoder.2", "encoder.3.ffn", "decoder.2.cross_attn", "decoder.2.cross_attn.3", CELL])
def test_a_link_opens_the_place_and_keeps_it_in_the_address(new_app, drawn, zoom):
    app = new_app(page="see/map", zoom=zoom)
    assert drawn[-1][1]["zoom"] == zoom
    assert address_of(app)["zoom"] == zoom
    assert not ignored(app)
    app.run()
    assert drawn[-1][1]["zoom"] == zoom
    if zoom == CELL:
        open_page(open_page(app, "see/embedding"), "see/map")
        assert drawn[-1][1]["zoom"] == "", "a page opens as a whole"


@pytest.mark.parametrize(
    ("zoom", "said"),
    [("decoder.4", "the layers of this stack are 1–3."), ("decoder.2.cross_attn.9", "the heads of a layer are 1 to 8."),
     ("everything", "a place is written such as decoder.2.cross_attn.3, with numbers from 1.")],
)  # fmt: skip
def test_an_invalid_place_is_reported_and_the_whole_is_shown(new_app, drawn, zoom, said):
    app = new_app(page="see/map", zoom=zoom)
    assert ignored(app) == [f"zoom={zoom}: {said}"]
    assert drawn[-1][1]["zoom"] == ""
    assert "zoom" not in address_of(app)


def test_only_a_cell_has_queries_and_keys_computed(new_app, drawn, monkeypatch):
    made = []
    monkeypatch.setattr(places, "cell", lambda trace, *place: made.append((trace, place)) or cell(trace, *place))
    new_app(page="see/map", zoom=CELL.rsplit(".", 2)[0])
    assert not made
    new_app(page="see/map", zoom=CELL)
    (trace, (place, key)) = made[-1]
    assert (place.path, place.head, place.query, key) == ("decoder.1.cross_attn", 2, 1, 3)
    assert {name.rpartition(".")[0] for name in trace} == {"decoder.1.cross_attn"}
    whole, header, _ = drawn[-1]
    assert not [name for name in whole if name.endswith((".q", ".k", ".scores"))]
    assert header["cell"]["weight"] == pytest.approx(
        float(whole["decoder.1.cross_attn.pattern"].value[2, 1, 3]), rel=1e-5
    ), "the same weight of two passes"


WAYS = [
    ("", "block", {"block_layer": "2"}),
    (".ffn", "block", {"block_layer": "2", "block_part_decoder": "ffn"}),
    (".self_attn", "attention", {"stack": "decoder", "layer": "2"}),
    (".self_attn.3", "head", {"stack": "decoder", "layer": "2", "head": "3"}),
    (".self_attn.3.4.2", "head", {"stack": "decoder", "layer": "2", "head": "3", "query": "4"}),
]


@pytest.mark.parametrize(
    ("model", "place", "name", "wanted"),
    [("", *way) for way in WAYS]
    + [pytest.param("mini-gpt", *way, marks=pytest.mark.full) for way in WAYS[:-1]]
    + [("mini-gpt", *WAYS[-1])],
)
def test_a_place_leads_to_the_page_that_shows_it(new_app, drawn, model, place, name, wanted):
    new_app(page="see/map", zoom=f"decoder.2{place}", model=model)
    href = urlsplit(drawn[-1][1]["way"]["href"])
    assert href.path == name
    query = dict(parse_qsl(href.query))
    app = new_app(page=PAGES[name], **query)
    assert not ignored(app)
    assert wanted.items() <= address_of(app).items()
