"""Picture and words: what each word of a caption reads, and every other page on the model that reads pictures."""

import pytest

from tests.app.support import PAGES, VIEWS, badges, ignored, shows_something, texts

CAPTIONER = "mini-caption"


def every_view():
    """Yield each page's views; `make test` has the first of each page."""
    for page in ("", *PAGES):
        _, views = VIEWS.get(page, ("", [""]))
        for view in views:
            marks = () if view == views[0] else pytest.mark.full
            yield pytest.param(page, view, id=f"{page}-{view}", marks=marks)


@pytest.mark.parametrize(("page", "view"), [*every_view()])
def test_every_page_shows_a_model_that_reads_pictures_or_says_why_not(new_app, page, view):
    key, _ = VIEWS.get(page, ("", [""]))
    app = new_app(page=page, model=CAPTIONER, **({key: view} if view else {}))
    assert not app.exception
    assert shows_something(app) or app.info
    print(page, view, badges(app), texts(app)[:4], [i.value for i in app.info], ignored(app))
