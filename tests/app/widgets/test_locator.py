"""The small drawing of the model in the side bar: what it shows, where one is in it, and its links."""

from dataclasses import fields, replace
from urllib.parse import parse_qsl

from tests.app.support import here, texts
from tests.support import tiny_translator
from visformer.app.session import url_state
from visformer.app.widgets import locator as drawn
from visformer.pictures.registry.picture import pages
from visformer.web.selection import Selection


def script(name):
    return pages()[name].path.removeprefix("pages/").removesuffix(".py")


def link(app, target, end=""):
    page, query = here(app)["links"][target]
    return page, dict(parse_qsl(query + end, keep_blank_values=True))


def test_links_leave_out_parts_of_a_selection():
    assert {field.name for field in fields(Selection)} >= drawn._PLACE


def test_a_view_of_one_layer_shows_that_layer(new_app):
    app = new_app(page="understand/block", block_view="added", block_stack="decoder", block_layer="2")
    assert here(app)["here"] == {"where": "layer", "stack": "decoder", "kind": "self_attn", "layer": 1}
    app = new_app(page="understand/block", block_view="added", block_layer="2", block_part_encoder="ffn")
    assert here(app)["here"] == {"where": "layer", "stack": "encoder", "kind": "ffn", "layer": 1}


def test_the_selection_is_where_one_is(new_app):
    app = new_app(stack="encoder", layer="2", head="3")
    assert here(app)["here"] == {"where": "attention", "stack": "encoder", "kind": "self_attn", "layer": 1}


def test_a_place_of_the_whole_model_is_where_one_is(new_app):
    for zoom, where, stack, kind, layer in (
        ("decoder.2", "layer", "decoder", None, 1),
        ("encoder.3.ffn", "attention", "encoder", "ffn", 2),
        ("decoder.3.cross_attn.4.2.1", "attention", "decoder", "cross_attn", 2),
    ):
        place = {"where": where, "stack": stack, "kind": kind, "layer": layer}
        assert here(new_app(page="see/map", v="2", zoom=zoom))["here"] == place, zoom


def test_links_open_each_part_in_the_state_of_the_page(new_app):
    app = new_app(text="I went.", head="3", stack="cross", view="arcs", key="1", lang="zh")
    common = {"v": str(url_state.VERSION), "text": "I went.", "lang": "zh", "view": "arcs"}
    place = {**common, "stack": "cross", "layer": "1", "head": "3"}
    assert link(app, "encoder.tokens") == ("embedding", place)
    assert link(app, "decoder.tokens") == ("embedding", {**place, "embedding_side": "tgt"})
    assert link(app, "decoder.self_attn", "2") == (
        "attention",
        {**common, "stack": "decoder", "head": "3", "layer": "2"},
    )
    page, query = link(app, "decoder.ffn", "2")
    added = {"block_view": "added", "block_stack": "decoder", "block_part_decoder": "ffn", "block_layer": "2"}
    assert (page, query) == ("block", {**common, "stack": "cross", "layer": "1", "head": "3", **added})


def test_a_link_is_taken_without_a_remark(new_app):
    app = new_app()
    for target in ("encoder.self_attn", "decoder.cross_attn", "encoder.ffn", "decoder.ffn", "decoder.tokens", "output"):
        page, query = link(app, target, "" if target in ("decoder.tokens", "output") else "3")
        opened = new_app(page=script(page.strip("./")), **query)
        assert here(opened)["here"].get("layer") in (2, None), target
        assert not [text for text in texts(opened) if "=" in text], target


def test_before_the_model_is_loaded_the_shipped_architecture_is_drawn(new_app, monkeypatch):
    app = new_app(page="understand/lab")
    assert here(app)["stacks"]["encoder"]["n_layers"] == here(app)["stacks"]["decoder"]["n_layers"] == 3
    assert here(app)["adds"] and here(app)["logits"]
    monkeypatch.setattr("visformer.app.serving.workbench.Workbench.blocks", None)
    assert here(app.run()).get("kind") == "nothing"


def test_an_unknown_architecture_is_not_drawn(monkeypatch):
    trace = tiny_translator().trace("She likes.", record=("*.pattern",))
    known = trace.blocks
    monkeypatch.setattr(drawn.boxes, "gettext", lambda: str)
    monkeypatch.setattr(drawn, "current_page", lambda: "embedding")
    for blocks, shown in (
        (known, True),
        (replace(known, encoder=replace(known.encoder, norm="unknown")), False),
        (None, False),
    ):
        monkeypatch.setattr(drawn, "_blocks", lambda blocks=blocks: blocks)
        assert bool(drawn._message()) == shown
