"""README and docs: every link leads somewhere, both languages say the same things, and what they show works."""

import ast
import inspect
import re
import shlex
from html.parser import HTMLParser
from itertools import pairwise
from pathlib import Path
from urllib.parse import unquote, urlsplit

import numpy as np
import pytest

import visformer as vf
from scripts.docs import CHINESE, DOCS, ROOT, make
from visformer.cli import main

PAGES = sorted([*ROOT.glob("*.md"), *DOCS.rglob("*.md"), *(ROOT / "supplement").glob("*.md")])
TWINS = [page for page in PAGES if page.name.endswith(CHINESE)]
ENGLISH_ONLY = {"api.md", "benchmarks.md", "CHANGELOG.md", "CONTRIBUTING.md"}
FOR_OPERATORS = ("deploy", "load")
FENCE = re.compile(r"^```(\w*)\n(.*?)^```$", re.MULTILINE | re.DOTALL)
LINK = re.compile(r"\]\(([^)\s]+)\)")
PROMPT = re.compile(r"^(?:\.venv[/\\](?:bin|Scripts)[/\\])?visformer\s+(.*)$")
KILOBYTES = 150, 2000  # of one picture, and of all


def text_of(page):
    return page.read_text(encoding="utf-8")


def prose(page):
    return FENCE.sub("", text_of(page))


def anchors(page):
    """The anchors of headings, as hosts of repositories make them."""
    titles = re.findall(r"^#+ (.+)$", prose(page), re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", title.lower()).replace(" ", "-") for title in titles}


def named(page):
    return str(page.relative_to(ROOT))


# The files as they are -----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("page", PAGES, ids=named)
def test_links_of_the_files_lead_somewhere(page):
    for link in LINK.findall(prose(page)):
        parts = urlsplit(link)
        if parts.scheme:
            assert parts.scheme == "https", link
            continue
        target = page.parent / unquote(parts.path) if parts.path else page
        assert target.exists(), link
        assert not parts.fragment or unquote(parts.fragment) in anchors(target), link


def test_every_page_is_there_in_both_languages():
    guides = {page for page in (*ROOT.glob("*.md"), *DOCS.glob("*.md")) if page.name not in ENGLISH_ONLY}
    chinese = {page for page in guides if page in TWINS}
    assert {page.with_name(page.name.removesuffix(CHINESE) + ".md") for page in chinese} == guides - chinese
    assert len(chinese) >= 10


@pytest.mark.parametrize("chinese", TWINS, ids=named)
def test_both_languages_have_the_same_parts(chinese):
    english = chinese.with_name(chinese.name.removesuffix(CHINESE) + ".md")
    ours, theirs = text_of(english), text_of(chinese)
    assert f"[中文]({chinese.name})" in ours
    assert f"[English]({english.name})" in theirs
    for part in (r"^(#+) ", r"^!\[", r"^\|"):
        assert re.findall(part, prose(english), re.MULTILINE) == re.findall(part, prose(chinese), re.MULTILINE), part
    assert [kind for kind, _ in FENCE.findall(ours)] == [kind for kind, _ in FENCE.findall(theirs)]
    for (kind, one), (_, other) in zip(FENCE.findall(ours), FENCE.findall(theirs), strict=True):
        if kind == "python":
            assert ast.dump(ast.parse(one)) == ast.dump(ast.parse(other)), "the same code, comments aside"
        elif kind in ("sh", "powershell"):
            assert [words(line) for line in one.splitlines()] == [words(line) for line in other.splitlines()]


def test_every_guide_has_a_picture():
    """Except for operators: a server shows nothing."""
    without = {page.name for page in DOCS.glob("*.md") if "](images/" not in text_of(page)}
    expected = {
        *ENGLISH_ONLY,
        *(f"{name}{end}.md" for name in FOR_OPERATORS for end in ("", CHINESE.removesuffix(".md"))),
    }
    assert without == {name for name in expected if (DOCS / name).exists()}


def test_pictures_are_small_and_all_are_shown():
    shown = "".join(map(text_of, PAGES))
    sizes = {path.name: path.stat().st_size / 1000 for path in (DOCS / "images").iterdir()}
    assert not [name for name in sizes if f"images/{name})" not in shown]
    assert max(sizes.values()) < KILOBYTES[0], sizes
    assert sum(sizes.values()) < KILOBYTES[1], sizes


@pytest.mark.parametrize("page", PAGES, ids=named)
def test_tests_that_a_page_names_are_there(page):
    for file, test in re.findall(r"`(test_\w+\.py)::(test_\w+)`", prose(page)):
        places = [place for place in (ROOT / "tests").rglob(file) if f"def {test}(" in text_of(place)]
        assert len(places) == 1, f"{file}::{test}"


# What they show ------------------------------------------------------------------------------------------------------


def words(line):
    return shlex.split(line.replace("\\", "/"), comments=True)


def commands(page):
    """The arguments of every ``visformer ...`` in a block for a shell."""
    for kind, block in FENCE.findall(text_of(page)):
        if kind in ("sh", "powershell"):
            found = (PROMPT.match(line) for line in block.splitlines())
            yield from (words(line[1]) for line in found if line)


@pytest.mark.parametrize("page", [page for page in PAGES if any(commands(page))], ids=named)
def test_commands_are_understood(page):
    for name, *arguments in commands(page):
        main.commands[name].make_context(name, arguments)  # raises UsageError


def snippets(page):
    return [block for kind, block in FENCE.findall(text_of(page)) if kind == "python"]


@pytest.mark.parametrize("page", [page for page in PAGES if snippets(page)], ids=named)
def test_what_snippets_call_exists(page):
    for node in ast.walk(ast.parse("\n".join(snippets(page)))):
        if isinstance(node, ast.Attribute) and ast.unparse(node).startswith("vf.") and "(" not in ast.unparse(node):
            found = vf
            for name in ast.unparse(node).split(".")[1:]:
                found = getattr(found, name)
        if (
            isinstance(node, ast.Call)
            and ast.unparse(node.func).startswith("vf.")
            and "(" not in ast.unparse(node.func)
        ):
            called = eval(ast.unparse(node.func), {"vf": vf})
            inspect.signature(called).bind(*node.args, **{keyword.arg: None for keyword in node.keywords})


@pytest.fixture(scope="module")
def names():
    """What the snippets take as given."""
    trace = vf.load("en-zh").trace("I like cats.", record=("*.pattern", "*.scores"))
    even = np.full((2, 2, 3, 3), 1 / 3)
    tokens = ["a", "b", "c"]
    return {
        "vf": vf,
        "trace": trace,
        "tokens": tokens,
        "patterns": even,
        "source_tokens": tokens,
        "target_tokens": tokens,
        "encoder_patterns": even,
        "decoder_patterns": even,
        "cross_patterns": even,
    }


RUNNING = ("README.md", "docs/notebook.md", "docs/export.md", "docs/raw-tensors.md")


@pytest.mark.parametrize("page", RUNNING)
def test_snippets_run(page, names, tmp_path, monkeypatch):
    from visformer.panel import traced

    panel = traced(names["trace"], "encoder.0.self_attn.pattern", 0, title="pattern")
    monkeypatch.chdir(tmp_path)
    blocks = [block for block in snippets(ROOT / page) if "from transformers" not in block]
    assert blocks
    for block in blocks:
        exec(block, {**names, "panel": panel})


# The site ------------------------------------------------------------------------------------------------------------


class Html(HTMLParser):
    """The ids of a page, where its links lead, and what it loads."""

    def __init__(self, path):
        super().__init__()
        self.ids, self.links, self.loaded = set(), set(), set()
        self.feed(text_of(path))

    def handle_starttag(self, tag, attrs):
        given = dict(attrs)
        self.ids |= {given[name] for name in ("id", "name") if given.get(name)}
        if tag == "a" and given.get("href"):
            self.links.add(given["href"])
        elif given.get("href" if tag == "link" else "src"):
            self.loaded.add(given["href" if tag == "link" else "src"])


@pytest.fixture(scope="module")
def root(tmp_path_factory):
    """The site, built anew; a warning of the generator fails."""
    return make(tmp_path_factory.mktemp("docs")).resolve()


@pytest.fixture(scope="module")
def site(root):
    """Every page of the site."""
    return {path: Html(path) for path in root.rglob("*.html") if path.name != "404.html"}


def test_links_of_the_site_lead_somewhere(site, root):
    assert len(site) > 50
    for path, page in site.items():
        for link in page.links | page.loaded:
            parts = urlsplit(link)
            if parts.scheme in ("https", "data"):
                continue
            assert not parts.scheme, link
            target = (path.parent / unquote(parts.path)).resolve() if parts.path else path
            assert target.is_file(), f"{path}: {link}"
            assert target.is_relative_to(root)
            if parts.fragment and target in site and not parts.fragment.startswith("__"):
                assert unquote(parts.fragment) in site[target].ids, f"{path}: {link}"


def test_the_site_loads_nothing_from_elsewhere(site, root):
    for path, page in site.items():
        assert not [link for link in page.loaded if urlsplit(link).netloc], path
    for style in root.rglob("*.css"):
        assert not re.search(r"url\(['\"]?(?:https?:)?//|@import", text_of(style)), style


def test_each_page_of_the_site_leads_to_itself_in_the_other_language(site, root):
    for path, page in site.items():
        name = path.relative_to(root)
        twin = root / Path(*name.parts[1:]) if name.parts[0] == "zh" else root / "zh" / name
        assert any((path.parent / link).resolve() == twin for link in page.links if not urlsplit(link).scheme), path


def test_every_page_is_in_the_navigation(site, root):
    """Decisions apart, which their own list names."""
    listed = {(root / link).resolve() for link in site[root / "index.html"].links if not urlsplit(link).scheme}
    assert {path for path in site if path.parent == root} <= listed


def test_the_api_page_has_every_public_name(site, root):
    for name in vf.__all__:
        assert f"visformer.{name}" in site[root / "api.html"].ids


def test_headings_go_down_one_by_one():
    for page in PAGES:
        levels = [len(marks) for marks in re.findall(r"^(#+) ", prose(page), re.MULTILINE)]
        assert levels.count(1) == 1, page
        assert all(after <= before + 1 for before, after in pairwise(levels)), page
