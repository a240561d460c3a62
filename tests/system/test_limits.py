"""The table of limits is what the code uses."""

import re
import tomllib
from pathlib import Path

import pytest

from visformer.system import limits

CONFIG = Path(__file__).parents[2] / ".streamlit" / "config.toml"


def test_every_constant_is_in_the_table_under_its_name():
    constants = {name: value for name, value in vars(limits).items() if re.fullmatch("[A-Z][A-Z_]+[A-Z]", name)}
    del constants["LIMITS"]
    assert constants == {each.name: each.value for each in limits.LIMITS if "." not in each.name}
    assert len({each.name for each in limits.LIMITS}) == len(limits.LIMITS)


def test_streamlits_are_those_of_its_configuration():
    config = tomllib.loads(CONFIG.read_text(encoding="utf-8"))
    ours = {each.name.split(".")[1]: each.value for each in limits.LIMITS if "." in each.name}
    assert ours == {name: value for name, value in config["server"].items() if name.startswith("max")}


@pytest.mark.parametrize(
    ("name", "written"), [("MAX_CHARACTERS", "1,000"), ("KEPT_BYTES", "380 MB"), ("LESSON_BYTES", "40 kB")]
)
def test_values_are_written_as_people_write_them(name, written):
    (entry,) = [each for each in limits.LIMITS if each.name == name]
    assert str(entry) == written


def test_gigabytes_have_two_decimals():
    assert limits.size(4 * 2**30) == "4.29 GB"


def test_ranges_are_written_by_name():
    (entry,) = [each for each in limits.LIMITS if each.name == "UNTRAINED"]
    assert str(entry).startswith("d_model 8–512; n_heads 1–16; ")
    assert str(entry).endswith("seed 0–9,999")
