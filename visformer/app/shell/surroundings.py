"""The translation of Streamlit's own words, and the notice that the server cannot be reached."""

from visformer.app.session.boxes import gettext
from visformer.app.widgets.component import connection_notice, streamlit_words


def draw() -> None:
    """Send both to the browser, in the visitor's language."""
    _ = gettext()
    streamlit_words()
    connection_notice(
        _(
            "The connection to the server is lost. What you see can still be explored, and your sentence is kept; "
            "the page goes on by itself as soon as the server answers."
        )
    )
