"""README and docs: links resolve, both languages have the same structure, and commands and snippets work."""

import ast
import inspect
import re
import shlex
from functools import cache
from itertools import pairwise, takewhile
from urllib.parse import unquote, urlsplit

import numpy as np
import pytest

import visformer as vf
from scripts.docs import CHINESE, DOCS, ROOT
from visformer.cli import main

PAGES = sorted([*ROOT.glob("*.md"), *DOCS.rglob("*.md"), *(ROOT / "supplement").glob("*.md")])
TRANSLATIONS = [page for page in PAGES if page.name.endswith(CHINESE)]
ENGLISH_ONLY = {"api.md", "benchmarks.md", "CHANGELOG.md", "CONTRIBUTING.md"}
WITHOUT_PICTURE = {
    *ENGLISH_ONLY.difference({"benchmarks.md"}),
    "analysis.md",
    "deploy.md",
    "effects.md",
    "guess.md",
    "hosting.md",
    "load.md",
    "scale.md",
    "tensors.md",
}  # a server or a table has nothing to show
FENCE = re.compile(r"^```(\w*)\n(.*?)^```$", re.MULTILINE | re.DOTALL)
LINK = re.compile(r"\]\(([^)\s]+)\)")
COMMAND = re.compile(r"^(?:\.venv[/\\](?:bin|Scripts)[/\\])?visformer\s+(.*)$")
MAX_KILOBYTES = {"one picture": 150, "all pictures": 2500}


@cache
def text_of(page):
    return page.read_text(encoding="utf-8")


@cache
def prose(page):
    return FENCE.sub("", text_of(page))


def english(page):
    """Return the page that a translation belongs to; a page in English is its own."""
    return page.with_name(page.name.replace(CHINESE, ".md"))


def anchors(page):
    """Return the anchors of headings as GitHub generates them."""
    titles = re.findall(r"^#+ (.+)$", prose(page), re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", title.lower()).replace(" ", "-") for title in titles}


def path_of(page):
    return str(page.relative_to(ROOT))


# The files ------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("page", PAGES, ids=path_of)
def test_links_in_the_files_resolve(page):
    for link in LINK.findall(prose(page)):
        parts = urlsplit(link)
        if parts.scheme:
            assert parts.scheme == "https", link
            continue
        target = page.parent / unquote(parts.path) if parts.path else page
        assert target.exists(), link
        assert not parts.fragment or unquote(parts.fragment) in anchors(target), link


@pytest.mark.parametrize("page", PAGES, ids=path_of)
def test_a_page_has_one_title_and_skips_no_heading_level(page):
    levels = [len(marks) for marks in re.findall(r"^(#+) ", prose(page), re.MULTILINE)]
    assert levels.count(1) == 1
    assert all(after <= before + 1 for before, after in pairwise(levels))


def test_every_page_exists_in_both_languages():
    guides = {page for page in (*ROOT.glob("*.md"), *DOCS.glob("*.md")) if page.name not in ENGLISH_ONLY}
    chinese = guides & {*TRANSLATIONS}
    assert {english(page) for page in chinese} == guides - chinese
    assert len(chinese) >= 10


def words(line):
    return shlex.split(line.replace("\\", "/"), comments=True)


@pytest.mark.parametrize("chinese", TRANSLATIONS, ids=path_of)
def test_both_languages_have_the_same_headings_pictures_tables_and_code(chinese):
    original = english(chinese)
    assert f"[中文]({chinese.name})" in text_of(original)
    assert f"[English]({original.name})" in text_of(chinese)
    for part in (r"^(#+) ", r"^!\[", r"^\|"):
        assert re.findall(part, prose(original), re.MULTILINE) == re.findall(part, prose(chinese), re.MULTILINE), part
    blocks, translated = (FENCE.findall(text_of(page)) for page in (original, chinese))
    assert [kind for kind, _ in blocks] == [kind for kind, _ in translated]
    for (kind, one), (_, other) in zip(blocks, translated, strict=True):
        if kind == "python":
            assert ast.dump(ast.parse(one)) == ast.dump(ast.parse(other)), "comments may differ"
        elif kind in ("sh", "powershell"):
            assert [words(line) for line in one.splitlines()] == [words(line) for line in other.splitlines()]


def test_every_guide_has_a_picture():
    without = {english(page).name for page in DOCS.glob("*.md") if "](images/" not in text_of(page)}
    assert without == {name for name in WITHOUT_PICTURE if (DOCS / name).exists()}


def test_all_pictures_are_small_and_used():
    text = "".join(map(text_of, PAGES))
    sizes = {path.name: path.stat().st_size / 1000 for path in (DOCS / "images").iterdir()}
    assert not [name for name in sizes if f"images/{name})" not in text]
    assert max(sizes.values()) < MAX_KILOBYTES["one picture"], sizes
    assert sum(sizes.values()) < MAX_KILOBYTES["all pictures"], sizes


@pytest.mark.parametrize("page", PAGES, ids=path_of)
def test_tests_named_on_a_page_exist(page):
    for file, test in re.findall(r"`(test_\w+\.py)::(test_\w+)`", prose(page)):
        places = [place for place in (ROOT / "tests").rglob(file) if f"def {test}(" in text_of(place)]
        assert len(places) == 1, f"{file}::{test}"


# Commands and snippets ------------------------------------------------------------------------------------------------


def commands(page):
    """Yield the arguments of every ``visformer ...`` in a block for a shell, up to a redirection."""
    for kind, block in FENCE.findall(text_of(page)):
        if kind in ("sh", "powershell"):
            found = (COMMAND.match(line) for line in block.splitlines())
            whole = (words(line[1]) for line in found if line)
            yield from ([*takewhile(lambda word: word not in "<>", line)] for line in whole)


@pytest.mark.parametrize("page", [page for page in PAGES if any(commands(page))], ids=path_of)
def test_commands_are_valid(page):
    for name, *arguments in commands(page):
        main.commands[name].make_context(name, arguments)  # raises UsageError


def snippets(page):
    return [block for kind, block in FENCE.findall(text_of(page)) if kind == "python"]


@pytest.mark.parametrize("page", [page for page in PAGES if snippets(page)], ids=path_of)
def test_snippets_use_names_and_parameters_that_exist(page):
    for node in ast.walk(ast.parse("\n".join(snippets(page)))):
        name = ast.unparse(node.func if isinstance(node, ast.Call) else node)
        if isinstance(node, ast.Call | ast.Attribute) and re.fullmatch(r"vf(\.\w+)+", name):
            value = eval(name, {"vf": vf})
            if isinstance(node, ast.Call):
                inspect.signature(value).bind(*node.args, **{keyword.arg: None for keyword in node.keywords})


@pytest.fixture(scope="module")
def names():
    """Names that snippets use without defining them."""
    uniform = np.full((2, 2, 3, 3), 1 / 3)
    tokens = ["a", "b", "c"]
    return {
        "vf": vf,
        "trace": vf.load("en-zh").trace("I like cats.", record=("*.pattern", "*.scores")),
        **dict.fromkeys(("tokens", "source_tokens", "target_tokens"), tokens),
        **dict.fromkeys(("patterns", "encoder_patterns", "decoder_patterns", "cross_patterns"), uniform),
    }


RUN = ("README.md", "docs/api.md", "docs/raw-tensors.md", "docs/tensors.md")
RUN_LONG = ("docs/effects.md", "docs/export.md", "docs/notebook.md")


@pytest.mark.parametrize("page", [*RUN, *(pytest.param(page, marks=pytest.mark.full) for page in RUN_LONG)])
def test_snippets_run(page, names, tmp_path, monkeypatch):
    from visformer.panel import traced

    panel = traced(names["trace"], "encoder.0.self_attn.pattern", 0, title="pattern")
    monkeypatch.chdir(tmp_path)
    blocks = [block for block in snippets(ROOT / page) if "from transformers" not in block]
    assert blocks
    for block in blocks:
        exec(block, {**names, "panel": panel})
