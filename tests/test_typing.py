"""A user's script, checked as strictly as mypy can."""

import os
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
RIGHT = """
import visformer as vf

model = vf.load("en-zh", device="cpu")
silent = vf.edits.Silence("decoder.0.cross_attn", head=(0, 3))
trace: vf.Trace = model.trace("I went.", record="*.pattern", edits=silent)
names: tuple[str, ...] = trace.names()
ids: list[int] = trace.meta["ids"]["src"]
text: str = model.translate(ids).text
print(model.module, model.tokenizer, model.tokenize(ids))
d_model: int = vf.untrained(d_model=128, n_heads=4, norm="pre", position="rotary", seed=3).module.config.d_model
"""
WRONG = """
import visformer as vf

vf.untrained(d_model="128", n_layers=3)
"""


@pytest.mark.slow
def test_a_user_s_script_is_checked_with_the_types_of_the_package(tmp_path):
    for name, script in (("right.py", RIGHT), ("wrong.py", WRONG)):
        (tmp_path / name).write_text(script)
    command = [sys.executable, "-m", "mypy", "--strict", "--config-file=", f"--cache-dir={ROOT / '.mypy_cache'}"]
    environment = os.environ | {"MYPYPATH": str(ROOT)}
    done = subprocess.run(
        [*command, "right.py", "wrong.py"], cwd=tmp_path, env=environment, capture_output=True, text=True, check=False
    )
    # Of a package on MYPYPATH its untyped libraries are told, too; of an installed one they are not.
    lines = [line for line in done.stdout.splitlines()[:-1] if not line.startswith(str(ROOT))]
    assert {line.partition(":")[0] for line in lines} == {"wrong.py"}, done.stdout + done.stderr
    kinds = {line.rpartition("[")[2].rstrip("]") for line in lines if ": error: " in line}
    assert kinds == {"call-arg", "arg-type"}, done.stdout


def test_an_editable_install_adds_a_path_which_type_checkers_follow():
    """With any other mapping setuptools installs an import hook, which they do not run."""
    settings = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["tool"]["setuptools"]
    assert settings["package-dir"] == {"": "."} and "py.typed" in settings["package-data"]["visformer"]
    assert (ROOT / "visformer" / "py.typed").exists()
