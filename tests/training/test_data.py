"""Training data: pairs of sentences, examples and batches."""

import random

import pytest
import torch

from tests.support import tiny_tokenizer
from visformer.errors import DataError
from visformer.model.masks import pad
from visformer.training.data import Pair, TrainingExample, batches, read_pairs, split_pairs, to_examples


def test_pairs_are_read_and_attributions_ignored(tmp_path):
    path = tmp_path / "pairs.tsv"
    path.write_text("Hi.\t你好。\tCC-BY 2.0\nGo!\t去！\n", encoding="utf-8")
    assert read_pairs(path) == [Pair("Hi.", "你好。"), Pair("Go!", "去！")]


def test_files_with_a_line_without_two_sentences_and_those_without_a_pair_are_refused(tmp_path):
    path = tmp_path / "pairs.tsv"
    for content, message in (
        *((f"Hi.\t你好。\n{line}\n".encode(), ", line 2") for line in ("only one", "en\t", "\t中文")),
        (b"", " is empty: each line needs an English and a Chinese sentence"),
        (b"\n\n", " is empty"),
        (b"\xff\xfeH\0i\0", " is not UTF-8, from byte 1: save it in that encoding"),
    ):
        path.write_bytes(content)
        with pytest.raises(DataError, match=rf"pairs\.tsv{message}"):
            pytest.fail(f"{content} is read as {read_pairs(path)}")
    with pytest.raises(DataError, match=r"nowhere\.tsv"):
        read_pairs(tmp_path / "nowhere.tsv")


def test_only_line_breaks_end_a_line(tmp_path):
    """Texts of the web have U+2028 inside a sentence; Windows adds a mark and a carriage return."""
    path = tmp_path / "pairs.tsv"
    path.write_bytes("\ufeffHi\u2028 you.\t你好。\r\nGo!\t去！\r\n\r\n".encode())
    assert read_pairs(path) == [Pair("Hi\u2028 you.", "你好。"), Pair("Go!", "去！")]


def test_pairs_are_split_into_two_disjoint_halves_by_seed():
    pairs = [Pair(str(i), str(i)) for i in range(11)]
    stop, test = split_pairs(pairs, seed=0)
    assert set(stop).isdisjoint(test)
    assert set(stop) | set(test) == set(pairs)
    assert (stop, test) == split_pairs(pairs, seed=0) != split_pairs(pairs, seed=1)


def test_a_pair_gives_examples_of_both_directions_or_of_its_own():
    tokenizer = tiny_tokenizer()
    en, zh = tokenizer.encode("I"), tokenizer.encode("我")
    en_zh = TrainingExample(src=[*en, 1], tgt=[tokenizer.token_id("<zh>"), *zh, 1])
    zh_en = TrainingExample(src=[*zh, 1], tgt=[tokenizer.token_id("<en>"), *en, 1])
    assert to_examples(tokenizer, [Pair("I", "我")]) == [en_zh, zh_en]
    assert to_examples(tokenizer, [Pair("I", "我", "zh-en")]) == [zh_en]


def test_batches_have_every_example_once_and_stay_within_the_limit():
    examples = [TrainingExample(src=[7] * (i % 9 + 1), tgt=[8] * (i % 5 + 2)) for i in range(100)]
    lengths = []
    for src, tgt in batches(examples, tokens=60, seed=3):
        assert src.numel() + tgt.numel() <= 60
        lengths += [((s > 0).sum().item(), (t > 0).sum().item()) for s, t in zip(src, tgt, strict=True)]
    assert sorted(lengths) == sorted((len(e.src), len(e.tgt)) for e in examples)


def test_batches_hold_little_padding():
    rng = random.Random(0)
    lengths = [max(2, round(rng.gauss(10, 3))) for _ in range(4000)]
    examples = [TrainingExample(src=[7] * max(2, n + rng.randint(-3, 3)), tgt=[8] * n) for n in lengths]
    padded = sum(src.numel() + tgt.numel() for src, tgt in batches(examples, tokens=3000, seed=1))
    assert sum(len(e.src) + len(e.tgt) for e in examples) / padded > 0.92


def test_the_order_of_batches_depends_on_the_seed():
    examples = [TrainingExample(src=[i], tgt=[i, i]) for i in range(1, 40)]
    first, again, other = ([src.tolist() for src, _ in batches(examples, tokens=12, seed=seed)] for seed in (1, 1, 2))
    assert first == again != other


def test_pad_fills_with_zeros():
    assert torch.equal(pad([[1, 2], [3]]), torch.tensor([[1, 2], [3, 0]]))
