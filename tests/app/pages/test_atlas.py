"""The page Atlas: a map, a head with its examples, filters, two atlases, and atlases of the operator and a visitor."""

import shutil

import pytest

from tests.addresses import address_of
from tests.analysis.atlas.test_file import changed
from tests.app.pages.test_heads import explorer
from tests.app.support import button, call, captions, enter, noted, open_page, shows_something, texts, upload
from tests.support import tiny_gpt
from visformer.adapters.checkpoints import folder_of
from visformer.analysis.atlas import Atlas, build, pack, roles, similar_heads
from visformer.app.serving.workers import confined
from visformer.app.session import atlases, boxes
from visformer.app.session.markdown import plain
from visformer.app.widgets import controls
from visformer.system import limits
from visformer.trace.stacks import STACKS
from visformer.web.panels import Click

CROSS = {"stack": "cross", "layer": "3", "head": "6"}
STACK_LABELS = {stack.name: stack.label for stack in STACKS}


@pytest.fixture(scope="module")
def own(tmp_path_factory):
    """The folder of an atlas of a model that the app does not have."""
    path = tmp_path_factory.mktemp("atlas")
    (path / "texts.txt").write_text("I went to school\nShe likes *the* river <b>\n" * 3)
    build(tiny_gpt(), str(path / "texts.txt"), path / "mine")
    return path / "mine"


def count(app):
    """Return how many heads pass the filters."""
    (told,) = [one.split(" ")[0] for one in captions(app) if " texts of " in one]
    return int(told)


def test_it_shows_what_the_selected_head_is(new_app):
    app = new_app(page="research/atlas", **CROSS)
    assert [title.value for title in app.main.header] == ["Cross: layer 3, head 6"]
    atlas = Atlas.bundled("en-zh")
    this = "stack == 'decoder.cross_attn' and layer == 2 and head == 5"
    row, cost = (table.query(this).iloc[0] for table in (roles(atlas), atlas.effects))
    (told,) = texts(app, "Alignment head: ")
    assert f"{row.score:.3f} ({row.low:.3f} – {row.high:.3f})" in told
    assert f"Silenced, the target costs +{cost.effect:.4f} nats a token" in told
    assert count(app) == 72
    like = similar_heads(atlas, "decoder.cross_attn", 2, 5).iloc[0]
    assert button(app, f"{STACK_LABELS[like.stack]} {like.layer + 1}·{like['head'] + 1} ({like.similarity:.2f})")


def test_the_selected_statistic_is_shown_over_the_texts(new_app):
    app = new_app(page="research/atlas", atlas_chart="texts", atlas_statistic="alignment", **CROSS)
    assert shows_something(app) and not texts(app, "Of this head there is no distribution")
    app = new_app(page="research/atlas", atlas_chart="texts", atlas_statistic="effect", **CROSS)
    assert texts(app, "Of this head there is no distribution of “Effect of silencing” over the texts.")
    assert button(app, "Open 1"), "the rest of the page is there"


def test_a_click_selects_a_head_and_the_explorer_has_it(new_app, monkeypatch):
    clicks = noted(monkeypatch, controls, "panels", "on_click")
    app = open_page(new_app(), "research/atlas")
    call(app, clicks[0], Click("encoder.self_attn", 1, 6))
    assert [title.value for title in app.main.header] == ["Encoder: layer 2, head 7"]
    assert address_of(app) == {"view": "tokens", "layer": "2", "head": "7"}
    open_page(app, "see/attention")
    assert explorer(app)["start"].items() >= {"stack": "encoder.self_attn", "layer": 1, "head": 6}.items()


def test_one_click_opens_an_example_with_its_text_target_model_head_and_cell(new_app):
    app = new_app(page="research/atlas", **CROSS)
    best = Atlas.bundled("en-zh").examples.query("stack == 'decoder.cross_attn' and layer == 2 and head == 5").iloc[0]
    button(app, "Open 1").click().run()
    assert not app.exception
    assert app.text_input(key=boxes.SOURCE).value == best.text
    assert app.text_input(key=boxes.TARGET).value == best.target
    place = {"stack": "decoder.cross_attn", "layer": 2, "head": 5, "query": best.query, "key": best.key}
    assert explorer(app)["start"].items() >= place.items()


def test_an_example_of_another_model_opens_that_model(new_app):
    app = new_app(page="research/atlas", atlas_atlas="mini-gpt", layer="1", head="3", stack="decoder")
    button(app, "Open 1").click().run()
    assert not app.exception and app.session_state[boxes.MODEL] == "mini-gpt"
    assert explorer(app)["start"].items() >= {"stack": "decoder.self_attn", "layer": 0, "head": 2}.items()


def test_heads_are_filtered_by_role_range_and_token(new_app):
    app = new_app(page="research/atlas", atlas_role="alignment")
    atlas = Atlas.bundled("en-zh")
    assert count(app) == (roles(atlas)["label"] == "alignment").sum() > 0
    app = new_app(page="research/atlas", atlas_role="none")
    assert count(app) == 72 - len(roles(atlas)[["stack", "layer", "head"]].drop_duplicates())
    app = new_app(page="research/atlas", atlas_statistic="first", atlas_at_least="0.5")
    assert count(app) == (atlas.heads["first"] >= 0.4995).sum() > 0
    app = new_app(page="research/atlas", atlas_token="tomorrow")
    assert 0 < count(app) < 72
    app = new_app(page="research/atlas", atlas_token="nowhere to be found")
    assert count(app) == 0 and shows_something(app)


def test_the_atlas_follows_the_model_and_says_where_there_is_none(new_app):
    app = new_app(page="research/atlas", model="mini-gpt-2")
    assert app.selectbox(key="atlas_atlas_mini-gpt-2").value == "mini-gpt-2"
    app = new_app(page="research/atlas", model="untrained-16x2-enc1-dec1-ff32")
    assert texts(app, "There is no atlas of untrained-16x2-enc1-dec1-ff32 here")


def test_the_explorer_labels_heads_by_their_roles(new_app):
    stacks = explorer(new_app(model="en-zh"))["stacks"]
    labels = [label for stack in stacks for label in stack["labels"]]
    (one,) = [label for label in labels if (label["layer"], label["head"], label["label"]) == (2, 6, "Alignment head")]
    assert one["about"].startswith("mean weight over the texts of an atlas")
    places = [
        (stack["name"], label["layer"], label["head"], label["label"]) for stack in stacks for label in stack["labels"]
    ]
    assert len(places) == len({*places}), "no label twice"


def test_a_visitor_opens_an_atlas_of_a_model_that_is_not_here(new_app, own):
    app = upload(open_page(new_app(), "research/atlas"), "atlas_open", "atlas.zip", pack(own))
    assert app.selectbox(key="atlas_atlas_en-zh").value == atlases.OWN
    assert texts(app, "This app does not have the model tiny: its examples are shown as texts")
    assert texts(app, "") and not [one for one in app.button if one.label.startswith("Open ")]
    assert [text for text in texts(app) if "She likes *the* river <b>" in text], "text is data"
    link = address_of(app)
    assert link["atlas_atlas"] == atlases.OWN
    another = new_app(page="research/atlas", **link)
    assert not another.exception, "whoever opens the link has no such file"


@pytest.mark.full
def test_an_atlas_of_other_weights_says_so_and_its_labels_reach_the_explorer(new_app):
    bundled = (folder_of("mini-gpt") / "atlas-6.zip").read_bytes()
    content = changed(bundled, "heads", lambda table: table, model="mini-gpt", fingerprint="other")
    app = upload(open_page(new_app(model="mini-gpt"), "research/atlas"), "atlas_open", "atlas.zip", content)
    assert app.selectbox(key="atlas_atlas_own").value == atlases.OWN, "it comes first for its model"
    assert texts(app, "This atlas is of other weights than the mini-gpt here")
    labels = explorer(open_page(app, "see/attention"))["stacks"][0]["labels"]
    found = roles(Atlas.bundled("mini-gpt@6"))
    assert {(row.layer, row.head) for row in found.itertuples()} <= {(one["layer"], one["head"]) for one in labels}


@pytest.mark.parametrize("content", [b"", b"PK no zip", b"x" * 5000])
def test_a_file_that_is_no_atlas_gets_a_sentence(new_app, content):
    app = upload(open_page(new_app(), "research/atlas"), "atlas_open", "a.zip", content)
    assert texts(app, "atlas.zip is no atlas, or damaged")
    assert count(app) == 72, "what was there stays"


def test_a_file_that_takes_too_much_memory_gets_a_sentence(new_app, own, monkeypatch):
    monkeypatch.setattr(atlases, "confined", lambda name, work, content: confined(name, bytes, limits.UPLOAD_MEMORY))
    app = upload(open_page(new_app(), "research/atlas"), "atlas_open", "a.zip", pack(own))
    assert texts(app, "atlas.zip cannot be read with 800 MB of memory in 30 seconds: open a smaller file.")
    assert count(app) == 72, "what was there stays"


@pytest.mark.full
def test_the_name_of_a_model_is_text(new_app):
    name = "[a](https://e.example) $x$ :red[b] www.e.example"
    content = changed((folder_of("mini-gpt") / "atlas-6.zip").read_bytes(), "heads", lambda table: table, model=name)
    app = upload(open_page(new_app(), "research/atlas"), "atlas_open", "a.zip", content)
    (told,) = [caption.value for caption in app.caption if " texts of " in caption.value]
    assert plain(name) in told and name not in told


def test_an_operators_atlases_are_offered(new_app, own, tmp_path, monkeypatch):
    shutil.copy(folder_of("mini-gpt") / "atlas.zip", tmp_path / "theirs.zip")
    (tmp_path / "broken.zip").write_bytes(b"x")
    paths = [own, tmp_path / "theirs.zip", tmp_path / "broken.zip"]
    monkeypatch.setenv("VISFORMER_ATLASES", ", ".join(map(str, paths)))
    app = new_app(page="research/atlas", model="mini-gpt")
    (box,) = [box for box in app.selectbox if box.label == "Atlas"]
    assert box.value == "theirs" and {"mine", "theirs", "broken", "mini-gpt"} <= {*box.options}
    box.select("broken").run()
    assert not app.exception and texts(app, "This atlas cannot be read; the server's log says why.")


def test_the_page_needs_no_sentence(new_app):
    app = enter(new_app(), "")
    assert count(open_page(app, "research/atlas")) == 72
