"""Generate the table of what classes are called in course notes, here and in torch, from visformer/pictures/course.py.

python -m scripts.classes_table writes it into docs/app.md, in Chinese by the catalogue; a test checks that it is up to
date.
"""

import re

from scripts.docs import DOCS
from visformer.i18n import translations
from visformer.pictures.course import TOPICS

PAGES = {"app.md": "en", "app.zh-CN.md": "zh"}
HEAD = ("in the notes", "here", "in torch", "shapes")
MARKS = re.compile(r"(<!-- classes -->\n).*?(<!-- end -->)", re.DOTALL)


def written(page: str) -> str:
    """Return the page with an up-to-date table."""
    _ = translations(PAGES[page]).gettext
    rows = [
        tuple(f"`{cell}`" for cell in (names.notes, names.ours, names.torch, names.shapes))
        for topic in TOPICS
        for names in topic.classes
    ]
    table = "".join(f"| {' | '.join(cells)} |\n" for cells in ([_(name) for name in HEAD], ["---"] * len(HEAD), *rows))
    return MARKS.sub(lambda marks: marks[1] + table + marks[2], (DOCS / page).read_text(encoding="utf-8"))


if __name__ == "__main__":
    for page in PAGES:
        (DOCS / page).write_text(written(page), encoding="utf-8")
