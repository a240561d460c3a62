"""Which differences from recorded results are significant."""

import pytest

from tests.golden.compare import assert_alike, differences


@pytest.mark.parametrize(
    ("expected", "actual"),
    [
        (0.9123, 0.9124),
        (
            {"min": -3.0, "max": 4.0, "mean": 0.001, "tilt": 0.002},
            {"min": -3.0, "max": 4.001, "mean": 0.0, "tilt": 0.0},
        ),
        ("I reads cats: 0.91, 4.2e-04", "I reads cats: 0.92, 4.1e-04"),
        ("41.2 % of it", "41.3 % of it"),
        ([{"of": ["我想  0.001"]}], [{"of": ["我想  0.002"]}]),
    ],
)
def test_the_last_digits_of_computed_numbers_may_differ(expected, actual):
    assert [*differences(expected, actual)] == []


@pytest.mark.parametrize(
    ("expected", "actual", "lines"),
    [
        ({"a": [1, 2]}, {"a": [1, 3]}, ["a[1]: was 2, is 3"]),
        ({"a": 1}, {"b": 1}, ['a: was 1, is "(nothing)"', 'b: was "(nothing)", is 1']),
        ([1, 2], [2], [": was 2 items, is 1; lost [1], new []"]),
        (0.91, 0.93, [": was 0.91, is 0.93"]),
        (True, False, [": was true, is false"]),
        ("0.91 of it", "0.93 of it", [': was "0.91 of it", is "0.93 of it"']),
        ("Paper, § 3.5", "Paper, § 3.4", [': was "Paper, § 3.5", is "Paper, § 3.4"']),
        ({"value": "0.05"}, {"value": "0.06"}, ['value: was "0.05", is "0.06"']),
        (
            {"address": {"limit": "weight-0.05"}},
            {"address": {"limit": "weight-0.06"}},
            ['address.limit: was "weight-0.05", is "weight-0.06"'],
        ),
        ({"min": 0.0, "max": 1.0, "mean": 0.5}, {"min": 0.0, "max": 1.0, "mean": 0.51}, ["mean: was 0.5, is 0.51"]),
        (None, 0.0, [": was null, is 0.0"]),
    ],
)
def test_any_other_difference_is_a_line_with_its_place(expected, actual, lines):
    assert [*differences(expected, actual)] == lines
    with pytest.raises(AssertionError, match=" was "):
        assert_alike(expected, actual)
