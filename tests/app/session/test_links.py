"""Links in the app: remarks on what was ignored, restored choices, and a state as a file.

``tests/app/pages/test_old_links.py`` tests what links show.
"""

import pytest

from tests.app.pages.test_anatomy import PAGES, drive
from tests.app.pages.test_attention import inside
from tests.app.support import address_of
from visformer.app.session import boxes
from visformer.app.session.examples import EXAMPLES
from visformer.app.shell import sharing


def ignored(app):
    """Return the lines of the notice."""
    return [line for text in app.text if ": " in text.value and "=" in text.value for line in text.value.split("\n")]


@pytest.mark.parametrize("page", PAGES)
def test_a_link_to_a_page_restores_every_choice_on_it(new_app, page):
    """Drive each widget to its end, then open the address in another session."""
    first = new_app(page=page)
    drive(first)
    link = address_of(first)
    assert link or page == "understand/block", "whose first view has nothing to drive"
    second = new_app(page=page, **link)
    assert not second.exception
    assert ignored(second) == []
    assert address_of(second) == link


@pytest.mark.parametrize(
    ("taken", "said"),
    [("1", "expected token ids separated by dots."), ("300", "token 1 of these cannot be chosen at its step.")],
    ids=["</s>", "of another sentence"],
)
def test_a_token_that_is_not_offered_is_reported(new_app, taken, said):
    app = new_app(page="understand/decoding", decoding_taken=taken)
    assert not app.exception
    assert ignored(app) == [f"decoding_taken={taken}: {said}"]
    assert "decoding_taken" not in address_of(app)


def test_the_explorer_starts_with_the_head_selected_on_inside_a_head(new_app):
    app = new_app(page="understand/head", stack="cross")
    app.slider(key="head_layer_3").set_value(3).run()
    assert address_of(app) == {"stack": "cross", "layer": "3"}
    app.switch_page("pages/see/attention.py").run()
    assert inside(app) == "Inside this head: layer 3, head 1"


def upload(app, content):
    app.session_state[sharing._FILE.key] = True
    app.run()
    app.get("file_uploader")[0].upload("state.json", content, "application/json").run()
    assert not app.exception
    return app


def test_a_file_opens_its_page_and_resets_what_it_leaves_out(new_app):
    app = new_app(page="see/masks", masks_view="steps", masks_step="2", text="I like cats.")
    upload(app, b'{"visformer_state": 1, "page": "masks", "masks_view": "scores", "masks_layer": "9", "head": "3"}')
    assert ignored(app) == ["masks_layer=9: expected a whole number from 1 to 3."]
    assert address_of(app) == {"masks_view": "scores", "head": "3"}
    assert app.text_input(key=boxes.SOURCE).value == EXAMPLES[0]
    upload(app, b"no state")
    assert ignored(app)[-1] == "state.json: line 1 of this file is not valid JSON."
    assert address_of(app) == {"masks_view": "scores", "head": "3"}, "the state is unchanged"


def test_a_file_of_a_page_that_does_not_exist(new_app):
    app = upload(new_app(), b'{"visformer_state": 1, "page": "nowhere", "layer": "2"}')
    assert ignored(app) == ["page=nowhere: there is no page with this name."]
    assert address_of(app) == {"layer": "2"}
