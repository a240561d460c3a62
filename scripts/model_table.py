"""Generate the table in docs/models.md and docs/models.zh-CN.md from visformer/adapters/huggingface/families.py.

python scripts/model_table.py writes it; a test checks that both files are up to date.
"""

import re
from pathlib import Path

from visformer.adapters.huggingface.families import FAMILIES, Family

DOCS = Path(__file__).resolve().parent.parent / "docs"
MARKS = re.compile(r"(<!-- families -->\n).*?(<!-- end -->)", re.DOTALL)

WORDS = {
    "models.md": {
        "head": ("Family (`model_type`)", "Kind", "Order of tokens", "Block", "Shown"),
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
        "all": "everything",
        "patterns": "patterns, residual stream",
    },
    "models.zh-CN.md": {
        "head": ("模型族（`model_type`）", "类型", "词序信息", "块的结构", "可看的内容"),
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
        "all": "全部",
        "patterns": "注意力权重、残差流",
    },
}


def table(page: str) -> str:
    """Return the table in Markdown; families with equal entries share a row."""
    words = WORDS[page]
    rows: dict[tuple[str, ...], list[str]] = {}
    for name, family in FAMILIES.items():
        rows.setdefault(_row(family, words), []).append(f"`{name}`")
    lines = [_line(words["head"]), _line(["---"] * len(words["head"]))]
    lines += [_line((", ".join(names), *row)) for row, names in rows.items()]
    return "\n".join(lines) + "\n"


def _row(family: Family, words: dict[str, str]) -> tuple[str, ...]:
    (layout,) = {stack.layout for stack in family.stacks.values()}
    layouts = [layout] if isinstance(layout, str) else layout[1:]
    shown = words["patterns" if family.patterns_only else "all"]
    return words[family.kind], words[family.position], " / ".join(words[each] for each in layouts), shown


def _line(cells) -> str:
    return f"| {' | '.join(cells)} |"


def written(page: str) -> str:
    """Return the page with an up-to-date table."""
    return MARKS.sub(lambda marks: marks[1] + table(page) + marks[2], (DOCS / page).read_text(encoding="utf-8"))


if __name__ == "__main__":
    for name in WORDS:
        (DOCS / name).write_text(written(name), encoding="utf-8")
