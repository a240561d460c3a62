"""Errors: messages with values in them, translated."""

import pickle

from visformer.errors import N_, MissingTensor, TextError, VisformerError


def test_an_error_is_translated_before_its_values_are_filled_in():
    error = TextError("{given} tokens, limit {limit}.", given=9, limit=5)
    assert str(error) == "9 tokens, limit 5."
    assert error.localized(lambda message: message.replace("tokens, limit", "个词元，上限")) == "9 个词元，上限 5."


def test_a_value_that_is_a_message_is_translated_too():
    error = VisformerError(N_("No {name}: {reason}."), name="missing", reason=N_("missing"))
    words = {"No {name}: {reason}.": "没有 {name}：{reason}。", "missing": "缺失"}
    assert error.localized(words.__getitem__) == "没有 missing：缺失。"


def test_a_value_may_contain_braces_and_survives_pickling():
    error = VisformerError("No {name!r}.", name="{0} {x}")
    assert str(error) == "No '{0} {x}'."
    again = pickle.loads(pickle.dumps(error))
    assert (str(again), again.params, type(again)) == (str(error), error.params, VisformerError)


def test_a_missing_tensor_is_a_key_error_with_a_plain_message():
    assert str(MissingTensor("No {name}.", name="x")) == "No x."
    assert isinstance(MissingTensor("x"), KeyError)
