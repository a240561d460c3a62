"""Every target of `make fuzz`, shortly: what it was made from, that bent a little, and anything."""

import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fuzz.targets import SEEDS, TARGETS

SLOWEST = 1.0  # seconds


def take(name, data):
    begin = time.perf_counter()
    TARGETS[name](data)
    return time.perf_counter() - begin


@pytest.mark.parametrize("name", TARGETS)
def test_what_a_target_begins_with(name):
    for seed in (b"", *SEEDS[name]):
        take(name, seed)  # imports what is needed
        assert take(name, seed) < SLOWEST


@st.composite
def bent(draw, seeds):
    data = bytearray(draw(st.sampled_from(seeds))[:5000])
    for _ in range(draw(st.integers(0, 4))):
        at = draw(st.integers(0, len(data)))
        data[at : at + draw(st.integers(0, 8))] = draw(st.binary(max_size=8))
    return bytes(data)


@pytest.mark.parametrize("name", TARGETS)
def test_nothing_from_outside_is_an_exception_or_a_hang(name):
    @given(st.binary(max_size=300) | bent(SEEDS[name]))
    def anything(data):
        assert min(take(name, data) for _ in range(2)) < SLOWEST

    anything()
