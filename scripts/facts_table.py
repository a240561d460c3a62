"""Generate the table of the facts that a lesson's texts can name, in the docs, from visformer/app/lessons/facts.py.

python -m scripts.facts_table writes it, in Chinese by the catalogue; a test checks that it is up to date.
"""

import re

from scripts.docs import DOCS
from visformer.app.lessons.facts import FACTS
from visformer.i18n import translations

PAGES = {"lessons.md": ("en", ("field", "what it is filled with")), "lessons.zh-CN.md": ("zh", ("字段", "填入的内容"))}
MARKS = re.compile(r"(<!-- facts -->\n).*?(<!-- end -->)", re.DOTALL)


def written(page: str) -> str:
    """Return the page with an up-to-date table."""
    language, head = PAGES[page]
    _ = translations(language).gettext
    rows = [(f"`{{{name}}}`", _(fact.about)) for name, fact in FACTS.items()]
    table = "".join(f"| {' | '.join(cells)} |\n" for cells in (head, ["---"] * len(head), *rows))
    return MARKS.sub(lambda marks: marks[1] + table + marks[2], (DOCS / page).read_text(encoding="utf-8"))


if __name__ == "__main__":
    for page in PAGES:
        (DOCS / page).write_text(written(page), encoding="utf-8")
