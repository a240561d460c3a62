"""The table of limits has the values that the code uses."""

import re
import tomllib
from pathlib import Path

import pytest

from visformer.system import limits

CONFIG = Path(__file__).parents[2] / ".streamlit" / "config.toml"


def test_every_constant_is_in_the_table_once():
    constants = {name: value for name, value in vars(limits).items() if re.fullmatch("[A-Z][A-Z_]+[A-Z]", name)}
    del constants["LIMITS"]
    assert constants == {limit.name: limit.value for limit in limits.LIMITS if "." not in limit.name}
    assert len({limit.name for limit in limits.LIMITS}) == len(limits.LIMITS)


def test_limits_of_streamlit_are_those_of_its_configuration():
    config = tomllib.loads(CONFIG.read_text(encoding="utf-8"))
    table = {limit.name.split(".")[1]: limit.value for limit in limits.LIMITS if "." in limit.name}
    assert table == {name: value for name, value in config["server"].items() if name.startswith("max")}


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("MAX_CHARACTERS", "1,000"),
        ("KEPT_BYTES", "380 MB"),
        ("LESSON_BYTES", "40 kB"),
        ("UNTRAINED", "d_model 8–512; n_heads 1–16; .*seed 0–9,999"),
    ],
)
def test_values_are_formatted_with_their_units(name, text):
    (limit,) = [limit for limit in limits.LIMITS if limit.name == name]
    assert re.fullmatch(text, str(limit))


def test_gigabytes_have_two_decimals():
    assert limits.size(4 * 2**30) == "4.29 GB"
