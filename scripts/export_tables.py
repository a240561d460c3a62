"""The table of pictures in docs/export.md and docs/export.zh-CN.md, from the registry in visformer/pictures/.

python -m scripts.picture_table writes it; a test holds both files to it.
"""

import re
from pathlib import Path

from visformer.i18n import translations
from visformer.pictures.picture import Page, pages

DOCS = Path(__file__).resolve().parent.parent / "docs"
MARKS = re.compile(r"(<!-- pictures -->\n).*?(<!-- end -->)", re.DOTALL)
HEADS = {"export.md": ("page", "pictures, with the options of each"), "export.zh-CN.md": ("页面", "图片及其选项")}
LANGUAGES = {"export.md": "en", "export.zh-CN.md": "zh"}


def table(page: str) -> str:
    """Markdown: a row for each page; pictures with the same options share them."""
    gettext = translations(LANGUAGES[page]).gettext
    lines = [_line(HEADS[page]), _line(("---", "---"))]
    lines += [_line((gettext(one.title), _pictures(one))) for one in pages().values() if one.pictures]
    return "\n".join(lines) + "\n"


def _pictures(page: Page) -> str:
    groups: dict[tuple[str, ...], list[str]] = {}
    for picture in page.pictures:
        groups.setdefault(picture.names, []).append(f"`{picture.name}`")
    found = []
    for options, names in groups.items():
        flags = " ".join(f"--{name.replace('_', '-')}" for name in options)
        found.append(", ".join(names) + (f" (`{flags}`)" if flags else ""))
    return "; ".join(found)


def _line(cells: tuple[str, ...]) -> str:
    return f"| {' | '.join(cells)} |"


def written(page: str) -> str:
    """The page with the table as it should be."""
    return MARKS.sub(lambda marks: marks[1] + table(page) + marks[2], (DOCS / page).read_text(encoding="utf-8"))


if __name__ == "__main__":
    for name in HEADS:
        (DOCS / name).write_text(written(name), encoding="utf-8")
