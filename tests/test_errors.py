"""Errors: messages with values in them, translated."""

import os
import pickle
import re
import subprocess
import sys

import pytest
from babel.messages.pofile import read_po

import visformer as vf
from visformer.edits import Patch
from visformer.errors import N_, EditError, MissingTensor, TextError, VisformerError
from visformer.i18n import DOMAIN, LOCALES, translations


def test_an_error_is_translated_before_its_values_are_filled_in():
    error = TextError("{given} tokens, limit {limit}.", given=9, limit=5)
    assert str(error) == "9 tokens, limit 5."
    assert error.localized(lambda message: message.replace("tokens, limit", "个词元，上限")) == "9 个词元，上限 5."


def test_a_value_that_is_a_message_is_translated_too():
    error = VisformerError(N_("No {name}: {reason}."), name="missing", reason=N_("missing"))
    words = {"No {name}: {reason}.": "没有 {name}：{reason}。", "missing": "缺失"}
    assert error.localized(words.__getitem__) == "没有 missing：缺失。"


def in_chinese(*command):
    environment = {
        name: value for name, value in os.environ.items() if name != "LANGUAGE" and not name.startswith("LC_")
    }
    environment |= {"LANG": "zh_CN.UTF-8", "PYTHONIOENCODING": "utf-8"}
    done = subprocess.run(
        [sys.executable, *command], env=environment, capture_output=True, encoding="utf-8", check=False
    )
    assert done.returncode == 1, done.stderr
    return done.stderr.splitlines()[-1]


@pytest.mark.full
def test_a_traceback_and_the_command_line_speak_the_language_of_the_environment(monkeypatch):
    with pytest.raises(VisformerError) as refused:
        vf.causal_mask(-1)
    said = refused.value.localized(translations("zh").gettext)
    assert said == "n=-1 必须是不小于 0 的整数。"
    assert in_chinese("-c", "import visformer as vf; vf.causal_mask(-1)") == f"visformer.errors.ConfigError: {said}"
    assert in_chinese("-m", "visformer", "trace", " ") == "Error: 没有文本：请输入一句英文或中文。"
    monkeypatch.setenv("LANGUAGE", "zh")
    for name in ("LC_ALL", "LC_MESSAGES", "LANG"):
        monkeypatch.delenv(name, raising=False)
    assert str(refused.value) == said != refused.value.args[0]
    assert refused.value.localized(translations("en").gettext) == refused.value.args[0]


def test_a_value_may_contain_braces_and_survives_pickling():
    error = VisformerError("No {name!r}.", name="{0} {x}")
    assert str(error) == "No '{0} {x}'."
    again = pickle.loads(pickle.dumps(error))
    assert (str(again), again.params, type(again)) == (str(error), error.params, VisformerError)


def test_a_missing_tensor_is_a_key_error_with_a_plain_message():
    assert str(MissingTensor("No {name}.", name="x")) == "No x."
    assert isinstance(MissingTensor("x"), KeyError)


def test_a_name_is_quoted_as_its_language_quotes_and_stays_one_line():
    error = VisformerError("no model {name!r}", name="a'b\nc")
    assert str(error) == 'no model "a\'b\\nc"'
    assert error.localized(lambda _: "没有模型“{name!q}”") == "没有模型“a'b\\nc”"


def test_chinese_puts_names_into_its_own_quotation_marks():
    with (LOCALES / "zh_CN" / "LC_MESSAGES" / f"{DOMAIN}.po").open("rb") as file:
        found = [message.string for message in read_po(file) if re.search(r"(?<!\[)\{name!r\}", str(message.string))]
    assert not found


def test_a_long_value_is_shown_by_its_beginning_and_its_end():
    values = [[float(i)] * 512 for i in range(2_048)]
    with pytest.raises(EditError) as error:
        vf.load("mini-gpt").trace("A cat.", edits=Patch("decoder.9.resid_pre", values))
    assert "Patch(where='decoder.9.resid_pre', values=((0.0, 0.0" in str(error.value)
    for said in (str(error.value), error.value.localized(translations("zh").gettext)):
        assert len(said) < 800 and " … " in said
    with pytest.raises(TextError) as error:
        vf.load("mini-gpt").trace("\ud800" + "x" * 400_000)
    assert len(str(error.value)) < 1_000
