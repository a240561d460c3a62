"""The tokenizer: any text is restored, tokens are readable, and merges are those of the library."""

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from tests.support import tiny_tokenizer
from visformer import load
from visformer.errors import CheckpointError, TextError
from visformer.model.tokenizer import Tokenizer, detect_language, jieba_words, training_words

tokenizer = tiny_tokenizer()
any_text = st.text(st.characters(exclude_categories=["Cs"]))
mixed = st.text(st.sampled_from("aZ0 '.我去。，?\u200b\u0000😀\u2581م<|>"), max_size=12)


@given(any_text | mixed)
@example("</s><pad><zh><0x41>")
@example(" leading and trailing ")
@example("我 a我  a 我a")
@example("   ")
@example("e\u0301 \ufeff \U000323af")
def test_decoding_restores_any_text(text):
    assert tokenizer.decode(tokenizer.encode(text)) == text


@given(any_text | mixed)
def test_typed_text_never_becomes_a_special_token(text):
    assert not any(tokenizer.is_special(tokenizer.encode(text)))


@given(mixed)
def test_the_span_of_a_token_has_its_characters(text):
    ids = tokenizer.encode(text)
    spans = tokenizer.spans(text)
    assert len(spans) == len(ids)
    assert all(0 <= start <= end <= len(text) for start, end in spans)
    for shown, (start, end) in zip(tokenizer.shown(ids), spans, strict=True):
        if not shown.startswith("<0x") and shown != "␣":
            assert text[start:end] == shown.rstrip("₁₂₃₄")


def test_trained_words_are_single_tokens_shown_without_their_space():
    assert tokenizer.shown(tokenizer.encode("I went to school.")) == ("I", "went", "to", "school", ".")
    assert tokenizer.shown(tokenizer.encode("我喜欢学校。")) == ("我", "喜欢", "学校", "。")


def test_a_latin_word_is_the_same_token_at_any_position():
    assert tokenizer.encode("school") == tokenizer.encode("我school。")[1:-1]


def test_rare_characters_become_bytes_shown_with_their_number():
    assert tokenizer.shown(tokenizer.encode("龘\u200b")) == ("龘₁", "龘₂", "龘₃", "<0xE2>", "<0x80>", "<0x8B>")
    assert tokenizer.shown(tokenizer.encode(".é")) == (".", "é₁", "é₂")
    assert tokenizer.shown(tokenizer.encode("龘")[1:]) == ("<0xBE>", "<0x98>")


@given(st.lists(st.integers(0, len(tokenizer) - 1)))
def test_any_sequence_of_ids_has_a_label_for_each(ids):
    assert len(tokenizer.shown(ids)) == len(ids)


def test_bytes_that_are_not_a_character_are_shown_as_bytes():
    lead, letter = (tokenizer.token_id(token) for token in ("<0xE4>", "<0x41>"))
    assert tokenizer.shown([lead, letter]) == ("<0xE4>", "<0x41>")
    assert tokenizer.words(tokenizer.encode("龘龘")) == (0, 0, 0, 1, 1, 1)


def test_tokens_of_a_word_have_its_index():
    ids = tokenizer.encode("schools went。")
    assert tokenizer.shown(ids) == ("school", "s", "went", "。")
    assert tokenizer.words(ids) == (0, 0, 1, 2)


LANGUAGES = {
    "en": ["I went to Northeastern University.", "The word 东北 means northeast.", "123", "Tom"],
    "zh": ["我去东北大学。", "我认识Tom。", "去"],
}


@pytest.mark.parametrize(("text", "language"), [(text, name) for name, texts in LANGUAGES.items() for text in texts])
def test_the_language_is_detected_from_the_script(text, language):
    assert detect_language(text) == language


def test_dropout_omits_merges_at_random_but_reproducibly():
    text = "I went to school. She likes the school."
    once, again, other = (tokenizer.with_dropout(0.5, seed=s).encode(text) for s in (1, 1, 2))
    assert once == again != other
    assert len(once) > len(tokenizer.encode(text))
    assert tokenizer.decode(once) == text
    assert tokenizer.with_dropout(0.0, seed=1).encode(text) == tokenizer.encode(text)


def test_chinese_is_split_into_words_for_training():
    pieces = training_words("我喜欢学校。", lambda run: [run[:1], run[1:3], run[3:]])
    assert pieces == ["我", "喜欢", "学校", "。"]


@pytest.mark.filterwarnings("ignore:pkg_resources:UserWarning")  # jieba imports it
def test_long_chinese_words_are_split_into_their_parts():
    assert list(jieba_words("我去东北大学图书馆")) == ["我", "去", "东北", "大学", "图书馆"]


def test_a_lone_surrogate_is_refused_with_its_position():
    with pytest.raises(TextError, match=r"Character 3 of the text, U\+D83D"):
        tokenizer.encode("ab\ud83d")


@pytest.mark.parametrize("content", [None, "{", '{"model": {}}'])
def test_a_missing_or_damaged_file_is_reported_with_a_remedy(tmp_path, content):
    path = tmp_path / "tokenizer.json"
    if content is not None:
        path.write_text(content)
    with pytest.raises(CheckpointError, match=r"tokenizer\.json.*copy it anew"):
        Tokenizer.load(path)


@given(mixed | any_text)
@example("unbelievably Northeastern 东北大学 龘😀")
def test_merging_ends_with_the_tokens_of_the_library(text):
    merged = [part for piece in tokenizer.pieces(text) for part in tokenizer.merging(piece)[-1]]
    assert [tokenizer.token_id(part) for part in merged] == tokenizer.encode(text)


def test_the_first_of_equal_pairs_is_merged_first():
    bundled = load("en-zh").tokenizer
    (piece,) = bundled.pieces("好好好")
    assert [bundled.token_id(part) for part in bundled.merging(piece)[-1]] == bundled.encode("好好好")


@given(st.text("North easrnuivy", min_size=1))
def test_each_step_of_merging_joins_two_neighbours(text):
    for piece in tokenizer.pieces(text):
        steps = tokenizer.merging(piece)
        assert "".join(steps[0]) == piece
        assert [len(parts) for parts in steps] == list(range(len(steps[0]), len(steps[-1]) - 1, -1))
        assert {"".join(parts) for parts in steps} == {piece}
