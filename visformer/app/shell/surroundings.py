"""The translation of Streamlit's own words, and the notice that the server cannot be reached."""

from visformer.app.session.boxes import drawn, gettext
from visformer.app.widgets.component import connection_notice, streamlit_words


def draw() -> None:
    """Send both to the browser, in the visitor's language, when all else is drawn."""
    _ = gettext()
    drawn()
    streamlit_words()
    connection_notice(
        _(
            "The connection to the server is lost. You can still explore what you see, and your sentence is "
            "kept; the page reconnects by itself as soon as the server answers."
        )
    )
