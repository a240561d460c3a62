"""The faults that `make faults` plants: each still has its place."""

import tomllib
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
FAULTS = tomllib.loads((ROOT / "tests" / "planted_faults.toml").read_text(encoding="utf-8"))["fault"]


@pytest.mark.parametrize("fault", FAULTS, ids=[fault["what"] for fault in FAULTS])
def test_what_a_fault_replaces_stands_once_in_its_file(fault):
    assert (ROOT / fault["file"]).read_text(encoding="utf-8").count(fault["right"]) == 1
