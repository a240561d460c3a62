"""Generate the tables of settings and limits in the docs, from visformer/system/settings.py and limits.py beside it.

python -m scripts.settings_tables writes them, in Chinese by the catalogue; a test checks that they are up to date.
"""

import re
from collections.abc import Iterator, Sequence

from scripts.docs import DOCS
from visformer.errors import Message
from visformer.i18n import Gettext, translations
from visformer.system.limits import LIMITS
from visformer.system.settings import SETTINGS

LANGUAGES = {"": "en", ".zh-CN": "zh"}
PAGES = {f"{name}{end}.md": (name, language) for name in ("picker", "security") for end, language in LANGUAGES.items()}
MARKS = re.compile(r"(<!-- (?:settings|limits) -->\n).*?(<!-- end -->)", re.DOTALL)
HEADS = {
    ("picker", "en"): ("variable", "what it does", "by default"),
    ("picker", "zh"): ("变量", "作用", "默认值"),
    ("security", "en"): ("What", "Name", "Value", "Why"),
    ("security", "zh"): ("内容", "名称", "值", "原因"),
}


def table(page: str) -> str:
    """Return the table of a page in Markdown."""
    name, language = PAGES[page]
    _ = translations(language).gettext
    head = HEADS[name, language]
    rows = _settings(_) if name == "picker" else _limits(_)
    return "".join(f"| {' | '.join(cells)} |\n" for cells in (head, ["---"] * len(head), *rows))


def _settings(_: Gettext) -> Iterator[Sequence[str]]:
    for each in SETTINGS:
        default = _(each.by_default) if isinstance(each.by_default, Message) else f"`{each.by_default}`"
        yield f"`{each.name}`", _(each.what), default


def _limits(_: Gettext) -> Iterator[Sequence[str]]:
    for each in LIMITS:
        yield _(each.what), f"`{each.name}`", str(each), _(each.reason)


def written(page: str) -> str:
    """Return the page with an up-to-date table."""
    return MARKS.sub(lambda marks: marks[1] + table(page) + marks[2], (DOCS / page).read_text(encoding="utf-8"))


if __name__ == "__main__":
    for page in PAGES:
        (DOCS / page).write_text(written(page), encoding="utf-8")
