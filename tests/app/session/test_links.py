"""Links in the app: remarks on what was ignored, and a state as a file.

``tests/app/pages/test_old_links.py`` tests what links show, ``tests/app/pages/test_pages.py`` that they restore
settings.
"""

import pytest

from tests.addresses import address_of
from tests.app.pages.seen import script_of
from tests.app.support import ignored, in_a_session, upload
from visformer.app.session import address, boxes, run
from visformer.app.shell import head
from visformer.pictures.examples import EXAMPLES


@pytest.mark.parametrize(
    ("taken", "reason"),
    [("1", "expected token ids separated by dots."), ("300", "token 1 of these cannot be chosen at its step.")],
    ids=["</s>", "of another sentence"],
)
def test_a_token_that_cannot_be_chosen_is_reported(new_app, taken, reason):
    app = new_app(page="understand/decoding", decoding_taken=taken)
    assert not app.exception
    assert ignored(app) == [f"decoding_taken={taken}: {reason}"]
    assert "decoding_taken" not in address_of(app)


def test_changes_that_are_too_many_for_a_link_are_left_out_of_it_and_that_is_said():
    with in_a_session({}):
        address.show_changes("masks_switched", "b1.1.1.1")
        assert (run.current().choices, run.current().unlinked) == ({"masks_switched": "b1.1.1.1"}, "")
        address.show_changes("masks_switched", "_".join(["b1.1.1.1"] * 30))
        assert run.current().choices == {"masks_switched": None}
        assert run.current().unlinked.startswith("Your changes on this page are too many for the link")


def test_the_explorer_starts_with_the_head_selected_inside_a_head(new_app):
    app = new_app(page="understand/head", stack="cross")
    app.slider(key="head_layer_1–3").set_value(3).run()
    assert address_of(app).items() >= {"stack": "cross", "layer": "3"}.items()  # the query stays the one that was shown
    app.switch_page(script_of("see/attention")).run()
    labels = [link.proto.label for link in app.get("page_link")]
    assert "Inside this head: layer 3, head 1" in labels


def upload_state(app, content):
    return upload(app, head.SAVING.key, "state.json", content)


def test_a_file_opens_its_page_and_resets_what_it_leaves_out(new_app):
    app = new_app(page="see/masks", masks_view="steps", masks_step="2", text="I like cats.")
    fields = b'"page": "masks", "masks_view": "scores", "masks_layer": "9", "head": "3"'
    upload_state(app, b'{"visformer_state": 2, ' + fields + b"}")
    assert ignored(app) == ["masks_layer=9: expected one of the numbers 1–3."]
    assert address_of(app) == {"masks_view": "scores", "head": "3"}
    assert app.text_input(key=boxes.SOURCE).value == EXAMPLES[0]
    upload_state(app, b"no state")
    assert ignored(app)[-1] == "state.json: line 1 of this file is not valid JSON."
    assert address_of(app) == {"masks_view": "scores", "head": "3"}, "the state is unchanged"


def test_an_unknown_page_in_a_file_is_reported_and_the_rest_applied(new_app):
    app = upload_state(new_app(), b'{"visformer_state": 2, "page": "nowhere", "layer": "2"}')
    assert ignored(app) == ["page=nowhere: there is no page with this name."]
    assert address_of(app) == {"layer": "2"}
