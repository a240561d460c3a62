"""What the tasks are trained on: the scored targets are right, and the probe's cells are where the answer is read."""

import numpy as np
import pytest

from visformer.adapters.learning.tasks import FIRST, FIXED, NEW, NOTHING, PERIODS, TASKS
from visformer.adapters.learning.training import Symbols
from visformer.errors import TextError


def texts(task, batch):
    """Return each row with its targets joined on, as text: what is read, and what is to be written."""
    tokenizer = Symbols(TASKS[task].sequences.symbols)
    for ids, targets in zip(batch.ids, batch.targets, strict=True):
        scored = targets != NOTHING
        first = int(np.argmax(scored))
        yield tokenizer.decode(ids[: first + 1].tolist()), tokenizer.decode(targets[scored].tolist())


@pytest.mark.parametrize(
    ("task", "written"),
    [("copy", lambda text: text), ("reverse", lambda text: text[::-1]), ("sort", lambda text: "".join(sorted(text)))],
)
def test_what_comes_after_the_sign_is_what_the_task_says(task, written):
    drawn = TASKS[task].sequences
    for batch in (drawn.batch(np.random.default_rng(0)), drawn.probe(np.random.default_rng(0)).batch):
        for read, answer in texts(task, batch):
            assert answer == written(read.removesuffix(">"))


def test_sums_are_right_from_the_ones_up():
    for read, answer in texts("add", TASKS["add"].sequences.batch(np.random.default_rng(0))):
        first, second = read.removesuffix("=").split("+")
        assert int(answer[::-1]) == int(first[::-1]) + int(second[::-1])


@pytest.mark.parametrize(("variant", "periods"), [("fixed", {FIXED}), ("drawn", {*PERIODS})])
def test_letters_recur_after_a_period_and_only_then_are_scored(variant, periods):
    task = TASKS["repeat"]
    batch = (task.variants[variant].batch or task.sequences.batch)(np.random.default_rng(0))
    seen = set()
    for ids, targets in zip(batch.ids, batch.targets, strict=True):
        period = int(np.argmax(targets != NOTHING))
        seen.add(period)
        assert (targets[:period] == NOTHING).all()
        assert (targets[period:-1] == ids[period + 1 :]).all()
        assert (ids[1 + period :] == ids[1:-period]).all()
    assert seen <= periods
    assert NEW not in PERIODS


@pytest.mark.parametrize("task", ["copy", "reverse", "sort", "grammar", "repeat"])
def test_the_cells_of_the_probe_hold_the_answer(task):
    probe = TASKS[task].sequences.probe(np.random.default_rng(0))
    batch, name = probe.batch, {"repeat": "induction", "grammar": "aligned"}.get(task, "source")
    rows, queries, keys = probe.cells[name]
    read = batch.ids if batch.source is None else batch.source
    if task != "grammar":
        assert (read[rows, keys] == batch.targets[rows, queries]).all()
        return
    symbols = TASKS[task].sequences.symbols
    half = symbols.index("那")
    assert (read[rows, keys] - FIRST == batch.targets[rows, queries] - FIRST - half).all()


def test_symbols_are_read_and_written_and_others_are_refused():
    letters, words = Symbols(TASKS["repeat"].sequences.symbols), Symbols(TASKS["grammar"].sequences.symbols)
    assert letters.decode(letters.encode("aB 3")) == "aB3"
    assert words.shown(words.encode("the old cat 那猫")) == ("the", "old", "cat", "那", "猫")
    assert words.spans("the cat") == ((0, 3), (4, 7))
    with pytest.raises(TextError, match=r"'\.' is none of them"):
        letters.encode("a.")
