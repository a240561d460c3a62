"""Print the lower ends of the ranges in pyproject.toml, and the versions of the tests' tools, as constraints for pip.

python scripts/lowest.py > constraints.txt
"""

import re
import tomllib
from pathlib import Path

ROOT = Path(__file__).parents[1]


def lower_ends() -> dict[str, str]:
    """Return the lower end of each range, by the name of the package."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    lines = [*project["dependencies"], *(line for extra in project["optional-dependencies"].values() for line in extra)]
    found = (re.match(r"([\w.-]+)(?:\[.*\])?[>=]=([\d.]+)", line) for line in lines)
    return {match[1]: match[2] for match in found if match}


def pins(name: str) -> dict[str, str]:
    """Return the versions in a requirements file, without those of files that it includes."""
    return dict(re.findall(r"^([\w.-]+)(?:\[.*\])?==(\S+)$", (ROOT / name).read_text(encoding="utf-8"), re.MULTILINE))


if __name__ == "__main__":
    for package, version in {**pins("requirements-dev.txt"), **lower_ends()}.items():
        print(f"{package}=={version}")
