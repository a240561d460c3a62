"""Back and Forward of the browser: a run that they ask for shows what its address says."""

import pytest

from tests.addresses import address_of
from tests.app.support import choose, enter, open_page
from visformer.app.session import boxes, url_state
from visformer.app.streamlit_private import run_context
from visformer.pictures.examples import EXAMPLES


@pytest.fixture
def go_to_entry(monkeypatch):
    """Run the app as the browser asks for it on Back or Forward, with the address of that entry."""

    def go(app, address):
        app.query_params.clear()
        app.query_params.update({url_state.VERSION_NAME: str(url_state.VERSION), **address} if address else {})
        with monkeypatch.context() as patch:
            patch.setattr(run_context, "is_back_or_forward", lambda: True)
            app.run()
        assert not app.exception
        return app

    return go


def sentence(app):
    return app.text_input(key=boxes.SOURCE).value


def test_back_and_forward_bring_back_the_sentence_the_view_and_the_language(new_app, go_to_entry):
    app = open_page(new_app(lang="en"), "see/masks")
    entries = [address_of(app)]
    for change in (
        lambda: enter(app, "I like cats."),
        lambda: choose(app, "masks_view", "steps"),
        lambda: choose(app, boxes.LANGUAGE, "中文"),
        lambda: enter(app, "她喜欢狗。"),
    ):
        change()
        entries.append(address_of(app))
    assert [entry.get("text") for entry in entries] == [None, *["I like cats."] * 3, "她喜欢狗。"]
    for entry in (*reversed(entries[:-1]), *entries[1:]):
        go_to_entry(app, entry)
        assert address_of(app) == entry, "no entry is added"
        assert sentence(app) == entry.get("text", EXAMPLES[0])
        (view,) = [group for group in app.get("button_group") if group.key == "masks_view"]
        assert view.value == entry.get("masks_view", "batch")
        assert app.session_state[boxes.LANGUAGE] == entry["lang"]


def test_back_from_the_lesson_closes_it_and_forward_opens_its_step(new_app, go_to_entry):
    app = new_app()
    start = address_of(app)
    app.button(key=f"lesson_start_{url_state.SHIPPED}").click().run()
    step = address_of(app)
    assert step["step"] == "1"
    go_to_entry(app, start)
    assert "step" not in address_of(app) and address_of(app) == start
    go_to_entry(app, step)
    assert address_of(app) == step


def test_what_is_typed_before_the_browser_knows_its_new_address_is_not_undone(new_app):
    """On a slow line a run may carry the address before last."""
    app = new_app()
    before = address_of(app)
    enter(app, "I like cats.")
    app.query_params.clear()
    app.query_params.update(before)
    choose(app, boxes.LANGUAGE, "中文")
    assert sentence(app) == "I like cats."
    assert address_of(app)["text"] == "I like cats."


def test_each_moment_of_a_training_is_an_entry_and_back_leads_to_the_one_before(new_app, go_to_entry):
    app = new_app(model="en-zh@9")
    slider = lambda: app.select_slider(key="timeline_moment")  # noqa: E731
    entries = [address_of(app)]
    for moment in (6, 4):
        slider().set_value(moment).run()
        entries.append(address_of(app))
    assert [entry["model"] for entry in entries[1:]] == ["en-zh@6", "en-zh@4"]
    for entry, moment in ((entries[1], 6), (entries[0], 9), (entries[2], 4)):
        go_to_entry(app, entry)
        assert slider().value == moment
        assert address_of(app) == entry
