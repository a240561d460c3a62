"""The upload of a picture, decoded by Pillow in a process whose memory is limited; and a picture drawn small."""

from collections.abc import Callable
from functools import partial
from typing import Any, TypeVar

import numpy as np
import streamlit as st
from numpy.typing import NDArray

from visformer.app.serving.admission import ADMISSION
from visformer.app.serving.capacity import drawing
from visformer.app.serving.workers import confined
from visformer.app.session import boxes, slots
from visformer.app.session.slots import Slot
from visformer.app.streamlit_private.other_sessions import own_session
from visformer.app.widgets import component
from visformer.errors import VisformerError
from visformer.system import limits

_R = TypeVar("_R")
_FORMATS = ["png", "jpg", "webp"]
_UPLOAD, _BOX = "picture_file", "own_picture"
_WRONG: Slot[VisformerError | None] = Slot("picture_file_wrong", None)  # with the last file
_FRAME, _GREY = 4, 150  # of the small picture, white on white
_SHARP = 256  # pixels of a side, from which on a browser need not enlarge it


def draw(read: Callable[[bytes, str], _R], take: Callable[[_R], object], *, about: str) -> None:
    """Draw the box for a file, with what to expect of it, or why the last one cannot be read.

    Args:
        read: decodes the content of a file of this name; it is pickled.
        take: called with what that returns.
        about: what becomes of the picture.
    """
    _ = boxes.gettext()
    key = f"{_UPLOAD}_{slots.version(_UPLOAD)}"
    with st.container(gap=None, key=_BOX):  # what scales down takes up no room
        st.file_uploader(
            _("Or a picture of your own"),
            _FORMATS,
            max_upload_size=limits.PICTURE_MEGABYTES,
            key=key,
            on_change=opened,
            args=(read, take, key),
        )
        component.shrink_pictures(_BOX, side=limits.PICTURE_SIDE, nbytes=limits.PICTURE_BYTES)
    if (error := _WRONG.pop()) is not None:
        st.text(error.localized(_))
    scaled = _("Your browser scales a large photograph down before it is sent.")
    st.caption(f"{scaled} {about}")


@drawing()
def opened(read: Callable[[bytes, str], _R], take: Callable[[_R], object], key: str) -> None:
    """Take the picture in the file that was uploaded by the widget of this key."""
    uploaded: Any = Slot(key, None).get()
    if uploaded is None:
        return
    slots.renew(_UPLOAD)
    name, session = uploaded.name, own_session()
    work = partial(confined, name, read, uploaded.getvalue(), name)
    try:
        take(ADMISSION.run((session, key), work, on_wait=lambda _before: None, session=session, kind="long"))
    except VisformerError as error:
        _WRONG.set(error)


def thumbnail(image: NDArray[np.uint8]) -> None:
    """Draw a picture, uint8 (row, column, RGB), small and in a frame."""
    times = max(1, _SHARP // max(image.shape))
    large = np.kron(image, np.ones((times, times, 1), dtype=np.uint8))
    st.image(np.pad(large, ((_FRAME, _FRAME), (_FRAME, _FRAME), (0, 0)), constant_values=_GREY), width=72)
