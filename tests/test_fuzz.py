"""Every target of `make fuzz`, briefly: on its seeds, on seeds with a few bytes changed, and on random bytes."""

import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fuzz.targets import SEEDS, TARGETS

MAX_SECONDS = 1.0


def seconds(name, data):
    begin = time.perf_counter()
    TARGETS[name](data)
    return time.perf_counter() - begin


@pytest.mark.parametrize("name", TARGETS)
def test_seeds_are_processed_quickly(name):
    for seed in (b"", *SEEDS[name]):
        seconds(name, seed)  # the first call imports what it needs
        assert seconds(name, seed) < MAX_SECONDS


@st.composite
def changed(draw, seeds):
    data = bytearray(draw(st.sampled_from(seeds))[:5000])
    for _ in range(draw(st.integers(0, 4))):
        at = draw(st.integers(0, len(data)))
        data[at : at + draw(st.integers(0, 8))] = draw(st.binary(max_size=8))
    return bytes(data)


@pytest.mark.parametrize("name", TARGETS)
def test_no_input_causes_an_unexpected_exception_or_a_hang(name):
    @given(st.binary(max_size=300) | changed(SEEDS[name]))
    def check(data):
        assert min(seconds(name, data) for _ in range(2)) < MAX_SECONDS

    check()
