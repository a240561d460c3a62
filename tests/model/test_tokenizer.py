import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from tests.support import tiny_tokenizer
from visformer import load
from visformer.errors import CheckpointError, TextError
from visformer.model.tokenizer import Tokenizer, detect_language, jieba_words, training_words

any_text = st.text(st.characters(exclude_categories=["Cs"]))
mixed = st.text(st.sampled_from("aZ0 '.我去。，?\u200b\u0000😀\u2581م<|>"), max_size=12)


@given(any_text | mixed)
@example("</s><pad><zh><0x41>")
@example(" leading and trailing ")
@example("我 a我  a 我a")
@example("   ")
@example("e\u0301 \ufeff \U000323af")
def test_any_text_comes_back(text):
    tokenizer = tiny_tokenizer()
    assert tokenizer.decode(tokenizer.encode(text)) == text


@given(any_text | mixed)
def test_typed_text_never_becomes_a_special_token(text):
    tokenizer = tiny_tokenizer()
    assert not any(tokenizer.is_special(tokenizer.encode(text)))


@given(mixed)
def test_spans_are_the_tokens_own_characters(text):
    tokenizer = tiny_tokenizer()
    ids = tokenizer.encode(text)
    spans = tokenizer.spans(text)
    assert len(spans) == len(ids)
    assert all(0 <= start <= end <= len(text) for start, end in spans)
    for shown, (start, end) in zip(tokenizer.shown(ids), spans, strict=True):
        if not shown.startswith("<0x") and shown != "␣":
            assert text[start:end] == shown.rstrip("₁₂₃₄")


def test_words_keep_their_space_and_chinese_its_words():
    tokenizer = tiny_tokenizer()
    assert tokenizer.shown(tokenizer.encode("I went to school.")) == ("I", "went", "to", "school", ".")
    assert tokenizer.shown(tokenizer.encode("我喜欢学校。")) == ("我", "喜欢", "学校", "。")


def test_a_latin_word_is_the_same_token_in_every_position():
    tokenizer = tiny_tokenizer()
    first, inside = tokenizer.encode("school"), tokenizer.encode("我school。")
    assert first == inside[1:-1]


def test_rare_characters_fall_back_to_bytes():
    tokenizer = tiny_tokenizer()
    assert tokenizer.shown(tokenizer.encode("龘\u200b")) == ("龘₁", "龘₂", "龘₃", "<0xE2>", "<0x80>", "<0x8B>")
    assert tokenizer.shown(tokenizer.encode(".é")) == (".", "é₁", "é₂")
    assert tokenizer.shown(tokenizer.encode("龘")[1:]) == ("<0xBE>", "<0x98>")


@given(st.lists(st.integers(0, len(tiny_tokenizer()) - 1)))
def test_every_id_is_shown_once_in_any_order(ids):
    assert len(tiny_tokenizer().shown(ids)) == len(ids)


def test_bytes_that_spell_nothing_stay_bytes():
    tokenizer = tiny_tokenizer()
    lead, letter = (tokenizer.token_id(token) for token in ("<0xE4>", "<0x41>"))
    assert tokenizer.shown([lead, letter]) == ("<0xE4>", "<0x41>")
    assert tokenizer.words(tokenizer.encode("龘龘")) == (0, 0, 0, 1, 1, 1)


def test_pieces_of_a_word_share_its_number():
    tokenizer = tiny_tokenizer()
    ids = tokenizer.encode("schools went。")
    assert dict(zip(tokenizer.shown(ids), tokenizer.words(ids), strict=True)) == {
        "school": 0,
        "s": 0,
        "went": 1,
        "。": 2,
    }


@pytest.mark.parametrize(
    ("text", "language"),
    [
        ("I went to Northeastern University.", "en"),
        ("我去东北大学。", "zh"),
        ("我认识Tom。", "zh"),
        ("The word 东北 means northeast.", "en"),
        ("123", "en"),
        ("Tom", "en"),
        ("去", "zh"),
    ],
)
def test_direction_is_found_from_the_script(text, language):
    assert detect_language(text) == language


def test_dropout_drops_merges_reproducibly():
    tokenizer = tiny_tokenizer()
    text = "I went to school. She likes the school."
    once, again, other = (tokenizer.with_dropout(0.5, seed=s).encode(text) for s in (1, 1, 2))
    assert once == again != other
    assert len(once) > len(tokenizer.encode(text))
    assert tokenizer.decode(once) == text
    assert tokenizer.with_dropout(0.0, seed=1).encode(text) == tokenizer.encode(text)


def test_merges_never_cross_a_chinese_word():
    pieces = training_words("我喜欢学校。", lambda run: [run[:1], run[1:3], run[3:]])
    assert pieces == ["我", "喜欢", "学校", "。"]


@pytest.mark.filterwarnings("ignore:pkg_resources:UserWarning")  # jieba imports it
def test_long_chinese_words_are_cut_where_they_consist_of_two():
    assert list(jieba_words("我去东北大学图书馆")) == ["我", "去", "东北", "大学", "图书馆"]


def test_a_lone_surrogate_is_named():
    with pytest.raises(TextError, match=r"Character 3 of the text, U\+D83D"):
        tiny_tokenizer().encode("ab\ud83d")


@pytest.mark.parametrize("content", [None, "{", '{"model": {}}'])
def test_a_damaged_file_is_named(tmp_path, content):
    path = tmp_path / "tokenizer.json"
    if content is not None:
        path.write_text(content)
    with pytest.raises(CheckpointError, match=r"tokenizer\.json.*restore it"):
        Tokenizer.load(path)


@given(mixed | any_text)
@example("unbelievably Northeastern 东北大学 龘😀")
def test_merging_ends_with_the_tokens_that_the_library_gives(text):
    tokenizer = tiny_tokenizer()
    merged = [part for piece in tokenizer.pieces(text) for part in tokenizer.merging(piece)[-1]]
    assert [tokenizer.token_id(part) for part in merged] == tokenizer.encode(text)


def test_of_equal_pairs_the_first_is_merged_first():
    tokenizer = load("en-zh").tokenizer
    (piece,) = tokenizer.pieces("好好好")
    assert [tokenizer.token_id(part) for part in tokenizer.merging(piece)[-1]] == tokenizer.encode("好好好")


@given(st.text("North easrnuivy", min_size=1))
def test_each_merge_joins_two_neighbours(text):
    tokenizer = tiny_tokenizer()
    for piece in tokenizer.pieces(text):
        steps = tokenizer.merging(piece)
        assert "".join(steps[0]) == piece
        assert [len(parts) for parts in steps] == list(range(len(steps[0]), len(steps[-1]) - 1, -1))
        assert {"".join(parts) for parts in steps} == {piece}
