"""The box of a model that chats: a text, or a chat, and the model's answer, which is written into it."""

from typing import Any

import streamlit as st

from visformer.app.serving.chats import ChatMessage, asking, text_of
from visformer.app.session import boxes
from visformer.app.session.slots import Slot, hold
from visformer.app.widgets import controls

_ASKED = Slot("answer_asked", False)  # whether the answer is to be written before the page is drawn


def draw(place: Any, **how: Any) -> None:
    """Draw the box, and the button below it; ``how``: further arguments of the box."""
    _ = boxes.gettext()
    hold(boxes.SOURCE)  # the box of other models is another widget
    with place, st.container(gap="xxsmall", key="chat"):
        st.text_area(
            _("Text or chat"),
            key=boxes.SOURCE,
            placeholder=_("Type a question"),
            height="content",
            help=_(
                "A chat has each message on a line of its own, which begins with who says it: “system:”, “user:”, "
                "“assistant:” or “tool:”. Press Ctrl+Enter to read it."
            ),
            **how,
        )
        st.button(
            _("Write the answer"),
            key="answer",
            type="tertiary",
            icon=":material/chat:",
            disabled=not boxes.typed().strip(),
            on_click=_ASKED.set,
            args=(True,),
        )


def answer() -> None:
    """Have the model write the answer that was asked for, at the end of the chat in the box.

    Raises:
        VisformerError: see :meth:`visformer.app.serving.workbench.Workbench.decoded`.
    """
    if not _ASKED.pop():
        return
    _, chat, place = boxes.gettext(), asking(boxes.typed()), st.empty()

    def show(share: float) -> None:
        place.progress(share, _("The model writes its answer …"))

    show(0.0)
    decoded = controls.bench().decoded(text_of(chat), on_progress=show)
    place.empty()
    boxes.enter_example(text_of((*chat, ChatMessage("assistant", decoded.text.strip()))))
