"""What Streamlit itself writes, in the visitor's language; and what is told while the server cannot be reached."""

from visformer.app.session.boxes import gettext
from visformer.app.widgets.component import connection_notice, streamlit_words


def draw() -> None:
    """Send the words for both."""
    _ = gettext()
    streamlit_words()
    connection_notice(
        _(
            "The connection to the server is lost. You can still explore what you see, and your sentence is "
            "kept; the page reconnects by itself as soon as the server answers."
        )
    )
