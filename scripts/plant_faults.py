"""Plant faults in a copy of the project, one at a time, and report which test finds each: `make faults`.

A fault is an entry of tests/planted_faults.toml: a text that stands once in a file, and the wrong one in its place. The
tests of `make test` nearest to that file run first, then all others, up to the first that fails.
"""

import argparse
import re
import subprocess
import sys
import tempfile
import tomllib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).parents[1]
FAULTS = ROOT / "tests" / "planted_faults.toml"
IN_BROWSER = ("tests/browser", "tests/deploy")
ELSEWHERE = {"others", "cluster"}
"""Folders of tests that run in an environment of their own, see `make parity` and `make ray`."""

FAILED = re.compile(r"^(?:FAILED|ERROR) (\S+)", re.MULTILINE)
PYTEST = ("-m", "pytest", "-q", "-x", "-m", "not full", "-p", "no:cacheprovider", "-n", "2", "--dist", "loadfile")


@dataclass(frozen=True)
class Fault:
    """A wrong text in place of the right one, and what it breaks, in words."""

    what: str
    file: str
    right: str
    wrong: str

    def plant(self, root: Path) -> None:
        """Write it into a copy of the project."""
        path = root / self.file
        text = path.read_text(encoding="utf-8")
        if (count := text.count(self.right)) != 1:
            sys.exit(f"{self.what}: {self.file} has this text {count} times, not once:\n{self.right}")
        path.write_text(text.replace(self.right, self.wrong), encoding="utf-8")


def faults() -> list[Fault]:
    """Read all faults."""
    return [Fault(**each) for each in tomllib.loads(FAULTS.read_text(encoding="utf-8"))["fault"]]


def groups(root: Path, file: str) -> Iterator[Sequence[str]]:
    """Yield the test files in four groups: near ones and others without a browser, then those with one."""
    source = Path(file)
    module, folder = ".".join(source.with_suffix("").parts), source.parent.name
    names = (module, f"{source.parent.name}/{source.name}", f"{source.parent.name} import {source.stem}")
    near: dict[bool, list[str]] = {False: [], True: []}
    far: dict[bool, list[str]] = {False: [], True: []}
    for path in sorted((root / "tests").rglob("test_*.py")):
        if ELSEWHERE.intersection(path.parts):
            continue
        test = path.relative_to(root).as_posix()
        text = path.read_text(encoding="utf-8")
        is_near = source.stem in path.stem or folder in path.parts or any(name in text for name in names)
        (near if is_near else far)[test.startswith(IN_BROWSER)].append(test)
    yield from (near[False], far[False], near[True], far[True])


def found_by(root: Path, file: str) -> str | None:
    """Run the tests up to the first that fails, and return its name; None: they all pass."""
    for tests in groups(root, file):
        if not tests:
            continue
        done = subprocess.run([sys.executable, *PYTEST, *tests], cwd=root, capture_output=True, text=True, check=False)
        if done.returncode not in (0, 5):  # 5: all tests of these files are for the full run
            failed = FAILED.search(done.stdout)
            return failed[1] if failed else done.stdout[-2000:] + done.stderr[-2000:]
    return None


def main() -> int:
    """Plant the chosen faults, and report."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("words", nargs="*", help="only faults whose description has one of these words")
    words = parser.parse_args().words
    chosen = [fault for fault in faults() if not words or any(word in fault.what for word in words)]
    found = 0
    with tempfile.TemporaryDirectory() as folder:
        copy = Path(folder) / "visformer"
        subprocess.run(["git", "worktree", "add", "--detach", "--quiet", copy], cwd=ROOT, check=True)
        try:
            for fault in chosen:
                fault.plant(copy)
                test = found_by(copy, fault.file)
                found += test is not None
                print(f"{'found' if test else 'NOT FOUND'}: {fault.what} ({fault.file}): {test}", flush=True)
                subprocess.run(["git", "checkout", "--quiet", "--", "."], cwd=copy, check=True)
        finally:
            subprocess.run(["git", "worktree", "remove", "--force", copy], cwd=ROOT, check=True)
    print(f"{found} of {len(chosen)} found")
    return 0 if found == len(chosen) else 1


if __name__ == "__main__":
    sys.exit(main())
