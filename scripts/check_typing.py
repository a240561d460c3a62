"""Check a user's script as strictly as mypy can: right calls pass with the package's types, wrong ones are told.

python scripts/check_typing.py
"""

import os
import subprocess
import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
CACHE = ROOT / ".mypy_cache" / "user"  # its own: with other settings mypy takes nothing from that of the package
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
FAULTS = {"call-arg", "arg-type"}
"""Kinds of errors in the wrong script."""


def told() -> list[str]:
    """Return what mypy says of the two scripts."""
    with tempfile.TemporaryDirectory() as folder:
        for name, script in (("right.py", RIGHT), ("wrong.py", WRONG)):
            (Path(folder) / name).write_text(script, encoding="utf-8")
        command = [sys.executable, "-m", "mypy", "--strict", "--config-file=", f"--cache-dir={CACHE}"]
        environment = os.environ | {"MYPYPATH": str(ROOT)}
        done = subprocess.run(
            [*command, "right.py", "wrong.py"], cwd=folder, env=environment, capture_output=True, text=True, check=False
        )
    if done.returncode != 1:
        raise SystemExit(f"mypy ended with {done.returncode}, not as after errors:\n{done.stdout}{done.stderr}")
    # Of a package on MYPYPATH its untyped libraries are told, too; of an installed one they are not.
    return [line for line in done.stdout.splitlines()[:-1] if not line.startswith(str(ROOT))]


def main() -> int:
    """Print what is wrong; return 1 if anything is."""
    lines = told()
    wrong = [line for line in lines if not line.startswith("wrong.py:")]
    kinds = {line.rpartition("[")[2].rstrip("]") for line in lines if ": error: " in line}
    if not wrong and kinds != FAULTS:
        wrong = [f"in the wrong script {sorted(kinds)} are told, not {sorted(FAULTS)}", *lines]
    print("\n".join(wrong) or "a user's script has the types of the package")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
