"""Generate the tables in docs/models.md and docs/models.zh-CN.md, of adapters/huggingface/families.py.

python scripts/model_table.py writes them; a test checks that both files are up to date.
"""

import re
from pathlib import Path

from visformer.adapters.huggingface.families import FAMILIES, REFUSED, Family
from visformer.i18n import translations

DOCS = Path(__file__).resolve().parent.parent / "docs"
MARKS = re.compile(r"(<!-- (families|refused) -->\n).*?(<!-- end -->)", re.DOTALL)

WORDS = {
    "models.md": {
        "head": ("Family (`model_type`)", "Kind", "Order of tokens", "Block"),
        "refused": ("Family (`model_type`)", "Why it cannot be shown"),
        "language": "en",
        "encoder": "encoder",
        "decoder": "decoder",
        "encoder-decoder": "encoder-decoder",
        "learned": "learned vectors",
        "sinusoidal": "sinusoidal",
        "rotary": "rotary",
        "alibi": "ALiBi",
        "relative": "relative bias",
        "disentangled": "disentangled",
        "post": "post-norm",
        "pre": "pre-norm",
        "parallel": "parallel",
        "both": "norms before and after each sublayer",
        "output": "norm after each sublayer, before the sum",
    },
    "models.zh-CN.md": {
        "head": ("模型族（`model_type`）", "类型", "词序信息", "块的结构"),
        "refused": ("模型族（`model_type`）", "不能显示的原因"),
        "language": "zh",
        "encoder": "编码器",
        "decoder": "解码器",
        "encoder-decoder": "编码器-解码器",
        "learned": "可学习位置向量",
        "sinusoidal": "正弦位置编码",
        "rotary": "旋转位置编码",
        "alibi": "ALiBi",
        "relative": "相对位置偏置",
        "disentangled": "解耦注意力",
        "post": "Post-LN",
        "pre": "Pre-LN",
        "parallel": "并行",
        "both": "每个子层前后都有归一化",
        "output": "归一化在每个子层之后、相加之前",
    },
}


def table(page: str, name: str) -> str:
    """Return a table, "families" or "refused", in Markdown; families with equal entries share a row."""
    words = WORDS[page]
    gettext = translations(words["language"]).gettext
    head, entries = words["refused"], {name: (gettext(reason),) for name, reason in REFUSED.items()}
    if name == "families":
        head, entries = words["head"], {name: _row(family, words) for name, family in FAMILIES.items()}
    rows: dict[tuple[str, ...], list[str]] = {}
    for model_type, row in entries.items():
        rows.setdefault(row, []).append(f"`{model_type}`")
    lines = [_line(head), _line(["---"] * len(head))]
    lines += [_line((", ".join(names), *row)) for row, names in rows.items()]
    return "\n".join(lines) + "\n"


def _row(family: Family, words: dict[str, str]) -> tuple[str, ...]:
    (layout,) = {stack.norms if isinstance(stack.norms, str) else stack.layout for stack in family.stacks.values()}
    layouts = [layout] if isinstance(layout, str) else layout[1:]
    return words[family.kind], words[family.position], " / ".join(words[each] for each in layouts)


def _line(cells) -> str:
    return f"| {' | '.join(cells)} |"


def written(page: str) -> str:
    """Return the page with up-to-date tables."""
    return MARKS.sub(
        lambda marks: marks[1] + table(page, marks[2]) + marks[3], (DOCS / page).read_text(encoding="utf-8")
    )


if __name__ == "__main__":
    for name in WORDS:
        (DOCS / name).write_text(written(name), encoding="utf-8")
