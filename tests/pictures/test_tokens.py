"""The table of tokens, and the merges of the tokenizer."""

import visformer as vf
from tests.adapters.huggingface.hub import tiny_module, tokenizer
from visformer.pictures import embedding as tokens
from visformer.pictures.examples import EXAMPLES


def test_every_row_has_number_id_and_meaning_of_its_token():
    model = vf.load("en-zh")
    trace = model.trace("She was unbelievably 鑫.", "她")
    rows = tokens.rows(trace, "src")
    assert [row.number for row in rows] == list(range(1, len(trace.tokens["src"]) + 1)), "as on every other page"
    assert [row.id for row in rows[:-1]] == model.tokenizer.encode("She was unbelievably 鑫.")
    meanings = {row.token: row.meaning for row in rows}
    assert meanings["She"] == "", "which is said once, above the table"
    assert meanings["ly"] == "part of a word"
    assert meanings["鑫₁"] == "one byte of a character not in the vocabulary"
    assert meanings["</s>"] == "the sentence ends here"
    assert tokens.rows(trace, "tgt")[0].meaning == "begins a target in Chinese"


def test_a_merge_names_the_merged_pair():
    steps = [(" ", "a", "b", "a", "b"), (" ", "ab", "a", "b"), (" ", "ab", "ab"), (" ab", "ab")]
    assert tokens.merges(steps) == [(), ("a", "b"), ("a", "b"), (" ", "ab")]


def test_only_unknown_tokens_and_bytes_have_hints():
    model = vf.load("en-zh")
    assert tokens.hints(model.trace("I like cats.", "我")) == []
    hint = ("{tokens}: a character not in the vocabulary, byte by byte.", "🐙₁ 🐙₂ 🐙₃ 🐙₄")
    assert tokens.hints(model.trace("I like 🐙 and 龘.", "龘")) == [hint]
    copied = model.trace(EXAMPLES[-1])
    assert tokens.hints(copied) == [(tokens._COPIED, "Wuffel")]
    source, target = copied.tokens["src"], copied.tokens["tgt"]
    pieces = [piece for piece in target if piece in source and piece.isascii()]
    largest = [
        [source[pattern[target.index(piece)].argmax()] for piece in pieces]
        for layer in copied.stack("decoder.cross_attn") for pattern in layer
    ]  # fmt: skip
    assert len(pieces) > 1 and pieces in largest, "a head reads each piece where it stands"
    unknown = vf.wrap(tiny_module("bert"), tokenizer()).trace("the zzz cat")
    assert [token for _, token in tokens.hints(unknown)] == ["<unk>"]
