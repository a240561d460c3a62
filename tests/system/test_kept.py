"""What is kept in memory: never more bytes than are set, the least recently used goes, and nothing in use."""

import threading

import pytest

from visformer.errors import BudgetError
from visformer.system import limits
from visformer.system.cache import CACHE, Cache


@pytest.fixture
def kept():
    return Cache(lambda: 100)


def fill(kept, *sizes):
    """Keep things of these sizes, named 0, 1, 2 …; return the names of those that are gone, in order."""
    gone = []
    for name, nbytes in enumerate(sizes):
        kept.put(name, f"thing {name}", nbytes, lambda name=name: gone.append(name))
        assert kept.nbytes <= 100
    return gone


def test_what_was_used_longest_ago_makes_room(kept):
    gone = fill(kept, 40, 40)
    assert kept.get(0) == "thing 0"
    kept.put("new", "thing", 30)
    assert gone == [1]
    assert (kept.get(0), kept.get(1), kept.get("new"), kept.nbytes) == ("thing 0", None, "thing", 70)


def test_as_much_goes_as_is_needed_and_no_more(kept):
    assert fill(kept, 30, 30, 30, 65) == [0, 1]


def test_nothing_goes_for_what_does_not_fit_and_that_is_gone_at_once(kept):
    gone = fill(kept, 40, 40)
    with pytest.raises(BudgetError, match=r"takes 101 B of memory, and 100 B of 100 B are free.*VISFORMER_MEMORY"):
        kept.put("large", "thing", 101, lambda: gone.append("large"))
    assert gone == ["large"]
    assert (kept.get(0), kept.get(1), kept.get("large")) == ("thing 0", "thing 1", None)


def test_what_is_in_use_stays(kept):
    gone = []
    with kept.using("model", 60, lambda: gone.append("model")):
        with pytest.raises(BudgetError, match="50 B of memory, and 40 B of 100 B are free"):
            kept.put("file", "file", 50)
        kept.put("file", "file", 40)
        with kept.using("model", kept.get("model"), never):
            pass
        kept.put("other", "other", 40)
    assert (gone, kept.get("file")) == ([], None)
    kept.put("large", "large", 100)
    assert gone == ["model"]


def never():
    raise AssertionError


def test_what_is_dropped_is_counted_no_more(kept):
    gone = fill(kept, 40, 40)
    for _ in range(2):
        kept.drop(0)
    assert (gone, kept.nbytes, kept.get(0)) == ([0], 40, None)


def test_what_is_kept_already_is_counted_once(kept):
    assert fill(kept, 40) == fill(kept, 40) == []
    assert kept.nbytes == 40


def test_many_threads_keep_no_more_than_the_limit(kept):
    most = []

    def work(name):
        for i in range(200):
            kept.put((name, i % 7), "thing", 9)
            with kept.using((name, "model"), 20, lambda: None):
                most.append(kept.nbytes)

    threads = [threading.Thread(target=work, args=(name,)) for name in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(most) == 800 and max(most) <= 100


def test_the_operator_sets_the_budget(monkeypatch):
    monkeypatch.delenv("VISFORMER_MEMORY", raising=False)
    assert CACHE.most() == limits.KEPT_BYTES
    monkeypatch.setenv("VISFORMER_MEMORY", "2000")
    assert CACHE.most() == 2_000_000_000
