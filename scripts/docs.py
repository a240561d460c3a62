"""Build the documentation as a site, in English and in Chinese: `make docs`.

python -m scripts.docs builds build/site (English) and build/site/zh (Chinese) from docs/, with docs/zensical.toml.
Any warning stops the build. A page is docs/X.md, its translation docs/X.zh-CN.md; on the site both are X.html. A page
without a translation is in both editions in English.
"""

import json
import posixpath
import re
import shutil
import subprocess
import sys
import tomllib
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parent.parent
DOCS = ROOT / "docs"
BUILD = ROOT / "build"
CHINESE = ".zh-CN.md"
ELSEWHERE = {ROOT / "visformer" / "model" / "checkpoints" / "en-zh" / "README.md": "model-card.md"}
"""Pages of the site whose files are outside docs/, beside what they describe."""

SWITCH = re.compile(r"^\[(?:中文|English)\]\(\S+\)\n\n", re.MULTILINE)
"""The link to the other language, for readers of the plain file; the site has its own in the page header."""
LINK = re.compile(r"(?<=\]\()([^)\s#:]+)(?=[)#])")
WRAPPED = re.compile(r"(?<=[\u3000-\u9fff\uff00-\uffef“”])\n[ ]*(?=[\u3400-\u9fff“（])")
"""A line break inside a Chinese sentence, which would be rendered as a space."""
ROLE = re.compile(r":(?:class|func|meth|mod):(?=`)")
"""Sphinx roles in docstrings, which Markdown does not have."""
TITLE = re.compile(r"^# (.+)$", re.MULTILINE)


@dataclass(frozen=True)
class Edition:
    """The site in one language.

    Args:
        name: its language, and the folder that it is built from.
        site: its path on the site.
        settings: settings that override those of zensical.toml.
        other: the edition in the other language, as linked in the header of each page.
        words: translations for navigation and buttons.
    """

    name: str
    site: str
    settings: dict[str, Any]
    other: dict[str, str]
    words: dict[str, str] = field(default_factory=dict)

    def source(self, page: Path) -> Path:
        """The file of a page in this edition: its translation, if there is one."""
        translation = page.with_name(page.name.removesuffix(".md") + CHINESE)
        return translation if self.name == "zh" and translation.exists() else page


EDITIONS = (
    Edition(
        "en",
        ".",
        {},
        {"name": "中文", "link": "zh/index.html", "lang": "zh-CN"},
    ),
    Edition(
        "zh",
        "zh",
        {"site_description": "输入一句话，看清 Transformer 算出的每一个数。"},
        {"name": "English", "link": "../index.html", "lang": "en"},
        {
            "Models and numbers": "模型与数据",
            "From Python": "在 Python 中",
            "For a room": "供一教室的人使用",
            "Background": "背景资料（英文）",
            "Dark": "深色",
            "Light": "浅色",
        },
    ),
)


def pages() -> dict[Path, str]:
    """Map the English file of every page to its name on the site."""
    names = {path: path.relative_to(DOCS).as_posix() for path in sorted(DOCS.rglob("*.md"))}
    return {path: name for path, name in names.items() if not name.endswith(CHINESE)} | ELSEWHERE


def stage(edition: Edition, build: Path) -> Path:
    """Write the files that one edition is built from; returns its settings file."""
    folder = build / edition.name
    shutil.copytree(DOCS, folder, ignore=shutil.ignore_patterns("*.md", "*.toml", "theme"))
    for page, name in pages().items():
        text = edition.source(page).read_text(encoding="utf-8")
        staged = folder / name
        staged.parent.mkdir(parents=True, exist_ok=True)
        staged.write_text(_on_the_site(text, page, name), encoding="utf-8")
    for page in ELSEWHERE:
        for picture in page.parent.glob("*.svg"):
            shutil.copyfile(picture, folder / picture.name)
    settings = build / f"{edition.name}.yml"
    settings.write_text(json.dumps(_settings(edition), ensure_ascii=False), encoding="utf-8")  # JSON is YAML
    return settings


def _stage_package(build: Path) -> None:
    """Copy the package, whose docstrings api.md includes."""
    package = ROOT / "visformer"
    for path in package.rglob("*.py"):
        staged = build / "package" / path.relative_to(ROOT)
        staged.parent.mkdir(parents=True, exist_ok=True)
        staged.write_text(ROLE.sub("", path.read_text(encoding="utf-8")), encoding="utf-8")


def _on_the_site(text: str, page: Path, name: str) -> str:
    """Adapt the links of a page to the site."""
    known = pages()

    def follow(link: re.Match[str]) -> str:
        target = (page.parent / link[0]).resolve()
        english = target.with_name(target.name.removesuffix(CHINESE) + ".md") if link[0].endswith(CHINESE) else target
        return posixpath.relpath(known[english], posixpath.dirname(name)) if english in known else link[0]

    return LINK.sub(follow, WRAPPED.sub("", SWITCH.sub("", text, count=1)))


def _settings(edition: Edition) -> dict[str, Any]:
    project: dict[str, Any] = tomllib.loads((DOCS / "zensical.toml").read_text(encoding="utf-8"))["project"]
    theme = {**project["theme"], "language": edition.name, "custom_dir": str(DOCS / "theme")}
    for palette in theme["palette"]:
        palette["toggle"]["name"] = _translated(edition, palette["toggle"]["name"])
    return {
        **project,
        **edition.settings,
        "theme": theme,
        "extra": {"generator": False, "alternate": [edition.other]},
        "nav": _navigation(project["nav"], edition),
        "docs_dir": edition.name,
        "site_dir": "site",
    }


def _navigation(entries: list[Any], edition: Edition) -> list[Any]:
    """Return the navigation of zensical.toml, with the titles of the pages themselves."""
    result: list[Any] = []
    for entry in entries:
        if isinstance(entry, dict):
            result += [{_translated(edition, title): _navigation(inner, edition)} for title, inner in entry.items()]
        else:
            (page,) = (path for path, name in pages().items() if name == entry)
            (title, *_) = TITLE.findall(edition.source(page).read_text(encoding="utf-8"))
            result.append({title: entry})
    return result


def _translated(edition: Edition, words: str) -> str:
    return edition.words[words] if edition.words else words


def make(folder: Path = BUILD) -> Path:
    """Build both editions.

    Args:
        folder: gets the sources in ``docs`` and the result in ``site``.

    Returns:
        The folder of the site.

    Raises:
        subprocess.CalledProcessError: zensical failed or printed a warning.
    """
    build, site = folder / "docs", folder / "site"
    shutil.rmtree(build, ignore_errors=True)
    shutil.rmtree(site, ignore_errors=True)
    _stage_package(build)
    for edition in EDITIONS:
        settings = stage(edition, build)
        command = [sys.executable, "-m", "zensical", "build", "--strict", "--config-file", str(settings)]
        subprocess.run(command, cwd=build, check=True)
        shutil.move(build / "site", site / edition.site)
    return site


if __name__ == "__main__":
    try:
        print(f"{make().relative_to(ROOT)}/index.html")
    except subprocess.CalledProcessError as error:
        sys.exit(error.returncode)
