"""Generate the tables in docs/export.md and docs/export.zh-CN.md: the formats, and the pictures of the registry.

python -m scripts.export_tables writes them; a test checks that both files are up to date.
"""

import re
from pathlib import Path

from visformer.export.formats import FORMATS
from visformer.i18n import Gettext, translations
from visformer.pictures.registry.picture import Page, pages

DOCS = Path(__file__).resolve().parent.parent / "docs"
MARKS = re.compile(r"(<!-- (formats|pictures) -->\n).*?(<!-- end -->)", re.DOTALL)
HEADS = {
    "export.md": {"formats": ("ending", "what it holds"), "pictures": ("page", "pictures, with the options of each")},
    "export.zh-CN.md": {"formats": ("扩展名", "内容"), "pictures": ("页面", "图片及其选项")},
}
LANGUAGES = {"export.md": "en", "export.zh-CN.md": "zh"}


def table(page: str, what: str) -> str:
    """Return a table in Markdown; ``what``: "formats" or "pictures"."""
    gettext = translations(LANGUAGES[page]).gettext
    rows = _formats(gettext) if what == "formats" else _pages(gettext)
    return "\n".join(map(_line, (HEADS[page][what], ("---", "---"), *rows))) + "\n"


def _formats(gettext: Gettext) -> list[tuple[str, str]]:
    return [(f"`{each.ending}`", gettext(each.about)) for each in FORMATS]


def _pages(gettext: Gettext) -> list[tuple[str, str]]:
    """Return a row for each page; pictures with the same options are listed together."""
    return [(gettext(page.title), _pictures(page)) for page in pages().values() if page.pictures]


def _pictures(page: Page) -> str:
    groups: dict[tuple[str, ...], list[str]] = {}
    for picture in page.pictures:
        groups.setdefault(picture.names, []).append(f"`{picture.name}`")
    lists = []
    for options, names in groups.items():
        flags = " ".join(f"--{name.replace('_', '-')}" for name in options)
        lists.append(", ".join(names) + (f" (`{flags}`)" if flags else ""))
    return "; ".join(lists)


def _line(cells: tuple[str, ...]) -> str:
    return f"| {' | '.join(cells)} |"


def written(page: str) -> str:
    """Return the page with up-to-date tables."""
    return MARKS.sub(
        lambda marks: marks[1] + table(page, marks[2]) + marks[3], (DOCS / page).read_text(encoding="utf-8")
    )


if __name__ == "__main__":
    for name in HEADS:
        (DOCS / name).write_text(written(name), encoding="utf-8")
