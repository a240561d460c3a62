"""What somebody made to do harm is refused with a sentence, or every view of it is drawn, in a bounded message."""

import zipfile
from contextlib import suppress
from dataclasses import replace

import pytest

from tests.analysis.atlas import hostile
from tests.support import tiny_gpt
from visformer.analysis.atlas import Atlas, build, pack
from visformer.app.session import atlases
from visformer.errors import DataError
from visformer.system import limits

VIEWS = tuple({"atlas_chart": chart} for chart in ("texts", "distance", "statistics"))


@pytest.fixture(scope="module")
def content(tmp_path_factory):
    """A valid atlas, as a file."""
    path = tmp_path_factory.mktemp("atlas")
    (path / "texts.txt").write_text("I went to school\nShe likes the river\nI like the school\n")
    build(tiny_gpt(), str(path / "texts.txt"), path / "out", effects=2)
    return pack(path / "out")


@pytest.fixture
def view(new_app, monkeypatch):
    """Draw every view of an atlas as the visitor's own; return the bytes of each."""
    shown = {}
    monkeypatch.setattr(atlases, "names", lambda: (atlases.OWN, "mini-gpt"))
    one = atlases.atlas
    monkeypatch.setattr(atlases, "atlas", lambda name: shown["atlas"] if name == atlases.OWN else one(name))
    apps = []

    def draw(atlas, what):
        shown["atlas"] = atlas
        if not apps:
            apps.extend(new_app(page="research/atlas", atlas_atlas=atlases.OWN, **link) for link in VIEWS)
        for app in apps:
            app.run()
            assert not app.exception, (what, app.exception)
        return [sent(app) for app in apps]

    return draw


def sent(app):
    """Return the bytes of what a run sent to the browser."""
    return sum(len(node.proto.SerializeToString()) for node in elements(app._tree) if hasattr(node.proto, "DESCRIPTOR"))


def elements(node):
    """Yield the elements below a block of a page."""
    for child in node.children.values():
        if hasattr(child, "children"):
            yield from elements(child)
        else:
            yield child


def taken(every):
    """Yield what is wrong and the atlas of each file that is not refused."""
    for what, file in every:
        with suppress(DataError):
            yield what, Atlas.unpack(file)


@pytest.mark.full
def test_it_is_refused_with_a_sentence_or_taken(content):
    found = {what for what, _ in taken(hostile.hostile(content))}
    twice = {each for each in found if each.endswith(" twice")}
    assert twice == {"broken twice", "broken the first row twice"}, "rows without a name can be alike"


@pytest.mark.full
def test_every_view_of_what_is_taken_is_drawn(content, view):
    for what, atlas in taken(hostile.filled(content)):
        view(atlas, what)


@pytest.mark.full
def test_what_a_page_sends_of_an_atlas_is_bounded(content, view):
    for n_layers, n_heads in ((limits.ATLAS_HEADS, 1), (1, limits.ATLAS_HEADS), (50, limits.ATLAS_HEADS // 50)):
        large = Atlas.unpack(hostile.grown(content, n_layers, n_heads))
        assert max(view(large, (n_layers, n_heads))) < 400_000
    texts = ("query_token", "key_token", "text", "target", "pair")
    long = Atlas.unpack(content)
    examples = long.examples.assign(**dict.fromkeys(texts, "x" * 1_000_000))
    assert max(view(replace(long, examples=examples), "long texts")) < 400_000


def test_a_map_with_holes_is_refused(content):
    large = hostile.grown(content, 100)
    for head in (1, 9_999):
        with pytest.raises(DataError, match="is no atlas, or damaged"):
            Atlas.unpack(hostile.changed(large, "heads", lambda table: hostile.column(table, "head", head)))  # noqa: B023


def test_a_file_that_lies_about_its_columns_or_packs_them_unusually_is_refused_before_it_is_unpacked(content):
    with pytest.raises(DataError, match=r"heads.parquet is larger than 64,000"):
        Atlas.unpack(hostile.lying_footer(content))
    with pytest.raises(DataError, match="is no atlas, or damaged"):
        Atlas.unpack(hostile.zipped(hostile.tables(content), zipfile.ZIP_LZMA))


@pytest.mark.full
def test_every_view_of_every_atlas_that_is_taken_is_drawn(content, view):
    for what, atlas in taken(hostile.hostile(content)):
        view(atlas, what)
