"""Every target of `make fuzz`, briefly: on its seeds, on seeds with a few bytes changed, and on random bytes."""

import time

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from fuzz.targets import SEEDS, TARGETS

MAX_SECONDS = 5.0
"""Of computing, whatever else the machine does; each takes a tenth of a second at most."""


def process(name, data):
    begin = time.process_time()
    TARGETS[name](data)
    assert time.process_time() - begin < MAX_SECONDS


@pytest.mark.parametrize("name", TARGETS)
def test_seeds_are_processed_quickly(name):
    for seed in (b"", *SEEDS[name]):
        process(name, seed)


@st.composite
def changed(draw, seeds):
    data = bytearray(draw(st.sampled_from(seeds))[:5000])
    for _ in range(draw(st.integers(0, 4))):
        at = draw(st.integers(0, len(data)))
        data[at : at + draw(st.integers(0, 8))] = draw(st.binary(max_size=8))
    return bytes(data)


@pytest.mark.parametrize("examples", [10, pytest.param(40, marks=pytest.mark.full)])
@pytest.mark.parametrize("name", TARGETS)
def test_no_input_causes_an_unexpected_exception_or_a_hang(name, examples):
    @settings(max_examples=examples)
    @given(st.binary(max_size=300) | changed(SEEDS[name]))
    def check(data):
        process(name, data)

    check()
