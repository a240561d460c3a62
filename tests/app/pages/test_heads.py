"""The page on heads: it opens with a record, measures on a list, and opens heads in the explorer."""

from tests.app.support import captions, open_page


def test_it_opens_with_what_was_measured_of_a_bundled_model(new_app):
    app = open_page(new_app(), "measure/heads")
    assert captions(app, "Measured on 50 sentences of the bundled list. ")
