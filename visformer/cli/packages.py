"""The packages that visformer needs, as pyproject.toml declares them, and the command that installs one."""

import re
import tomllib
from importlib import metadata
from pathlib import Path

import visformer

HERE = Path(visformer.__file__).resolve().parent


def declared() -> dict[str, list[str]]:
    """Return the requirements of visformer, under "", and those of each extra, under its name.

    In a clone those of the source, also if it was installed before they changed; else those that were installed.

    Raises:
        PackageNotFoundError: neither is there.
    """
    source = HERE.parent / "pyproject.toml"
    if source.is_file():
        project = tomllib.loads(source.read_text(encoding="utf-8"))["project"]
        return {"": project["dependencies"], **project["optional-dependencies"]}
    found: dict[str, list[str]] = {"": []}
    for line in metadata.requires("visformer") or ():
        needed, _, condition = line.partition(";")
        extra = re.search(r"""extra == ["']([\w-]+)""", condition)
        found.setdefault(extra[1] if extra else "", []).append(needed.strip())
    return found


def install(extra: str) -> str:
    """Return the command that installs an extra; "": visformer itself."""
    return f'pip install "visformer[{extra}]"' if extra else "pip install visformer"


def remedy(module: str) -> str:
    """Return the command that installs a module that is missing."""
    package = _normal(module.partition(".")[0])
    for extra, lines in declared().items():
        if any(_normal(line) == package for line in lines):
            return install(extra)
    return install("app")  # which alone has packages whose modules have other names


def _normal(line: str) -> str:
    """Return the name in a requirement, in lower case, with hyphens."""
    name = re.match(r"[\w.-]+", line)
    return re.sub("[-_.]+", "-", name[0] if name else "").lower()
