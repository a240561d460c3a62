"""A chat as a text, as a visitor types it and a link holds it."""

from hypothesis import given
from hypothesis import strategies as st

from visformer.app.serving.chats import ChatMessage, asking, messages_of, text_of

contents = st.text(st.sampled_from("ab：: \nuser")).map(str.strip)
chats = st.lists(st.builds(ChatMessage, st.sampled_from(["system", "user", "assistant", "tool"]), contents), min_size=1)


@given(chats)
def test_a_chat_is_read_as_it_was_written(chat):
    again = messages_of(text_of(chat))
    assert [each.role for each in again] == [each.role for each in chat]
    for one, other in zip(again, chat, strict=True):
        lines, wanted = ([line.strip() for line in each.content.split("\n")] for each in (one, other))
        assert lines == wanted


def test_a_message_is_a_line_that_begins_with_its_role_and_all_below_it():
    text = " system:Be brief.\nuser： Why?\n\nWhy: tell me,\n  user: me.\nassistant:\nuser:x"
    assert [dict(each) for each in messages_of(text)] == [
        {"role": "system", "content": "Be brief."},
        {"role": "user", "content": "Why?\n\nWhy: tell me,\n  user: me."},
        {"role": "assistant", "content": ""},
        {"role": "user", "content": "x"},
    ]
    for plain in ("Ask the user: why?", "users: two", "", "I said:\nuser: x"):
        assert messages_of(plain) == ()


def test_an_answer_is_written_to_what_a_text_asks_and_anew_to_a_chat_that_has_one():
    user, answer = ChatMessage("user", "Why?"), ChatMessage("assistant", "So.")
    assert asking(" Why? ") == asking(text_of([user])) == asking(text_of([user, answer])) == (user,)
    assert asking(text_of([user, answer, user])) == (user, answer, user)
    assert asking("assistant: So.") == (answer,)
