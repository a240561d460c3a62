"""docs/security.md names every limit with the value that it has in the code."""

import importlib
import re
import tomllib

import pytest

from scripts.docs import DOCS, ROOT
from visformer.app.serving import limits

ROW = re.compile(r"^\| .* \| `([\w.]+)` in `([\w./]+)` \| (.+?) \|", re.MULTILINE)
PAGES = ("security.md", "security.zh-CN.md")


def rows(page):
    return {(file, name): said for name, file, said in ROW.findall((DOCS / page).read_text(encoding="utf-8"))}


def value(file, name):
    if file.endswith(".toml"):
        section, key = name.split(".")
        return tomllib.loads((ROOT / file).read_text(encoding="utf-8"))[section][key]
    return getattr(importlib.import_module(file.removesuffix(".py").replace("/", ".")), name)


def written(number):
    if isinstance(number, dict):
        return "; ".join(f"{name} {least}–{most:,}" for name, (least, most) in number.items())
    return f"{number:,}"


@pytest.mark.parametrize("page", PAGES)
def test_every_limit_is_the_one_in_the_code(page):
    for (file, name), said in rows(page).items():
        assert said == written(value(file, name)), (file, name)


@pytest.mark.parametrize("page", PAGES)
def test_no_limit_is_left_out(page):
    ours = {name for name in vars(limits) if name.isupper() and len(name) > 2}
    assert {name for file, name in rows(page) if file == "visformer/app/serving/limits.py"} == ours
    assert set(rows(page)) == set(rows(PAGES[0]))
