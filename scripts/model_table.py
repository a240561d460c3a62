"""Generate the tables in docs/models.md and docs/models.zh-CN.md: what the model of each family gives, or why none.

python -m scripts.model_table writes them; a test checks that both files are up to date. With --run it first makes a
tiny model of every class, minutes, and notes in scripts/any_model.json what it gives.
"""

import json
import re
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

from visformer.adapters.huggingface.families import REFUSED
from visformer.i18n import translations

DOCS = Path(__file__).resolve().parent.parent / "docs"
RUN = Path(__file__).resolve().parent / "any_model.json"
MARKS = re.compile(r"(<!-- (refused|classes) -->\n).*?(<!-- end -->)", re.DOTALL)

WORDS = {
    "models.md": {
        "refused": ("Family (`model_type`)", "Why it cannot be shown"),
        "classes": (
            "Family (`model_type`)",
            "Kind",
            "Order of tokens",
            "Block",
            "Attention, edits",
            "Stream",
            "Sublayers",
            "w_q w_k w_v",
            "w_o",
            "Logits",
            "Why no more",
        ),
        "unbuilt": "not tried: with no known sizes is it small and runs on the tokens of a text alone",
        "refused_class": "refused",
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
        "refused": ("模型族（`model_type`）", "不能显示的原因"),
        "classes": (
            "模型族（`model_type`）",
            "类型",
            "词序信息",
            "块的结构",
            "注意力、干预",
            "残差流",
            "子层",
            "w_q w_k w_v",
            "w_o",
            "logits",
            "没有更多的原因",
        ),
        "unbuilt": "没有试：已知的尺寸不能让它既小又能只凭一段文本的词元运行",
        "refused_class": "不支持",
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
    """Return a table, "classes" or "refused", in Markdown; families with equal entries share a row."""
    words = WORDS[page]
    gettext = translations(words["language"]).gettext
    head, entries = words["refused"], {name: (gettext(reason),) for name, reason in REFUSED.items()}
    if name == "classes":
        run = json.loads(RUN.read_text(encoding="utf-8"))
        head, entries = words["classes"], {each: _given(row, words, gettext) for each, row in run.items()}
        entries = dict(sorted(entries.items(), key=lambda entry: (entry[1].count("✓") * -1, entry[1], entry[0])))
    rows: dict[tuple[str, ...], list[str]] = {}
    for model_type, row in entries.items():
        rows.setdefault(row, []).append(f"`{model_type}`")
    lines = [_line(head), _line(["---"] * len(head))]
    lines += [_line((", ".join(names), *row)) for row, names in rows.items()]
    return "\n".join(lines) + "\n"


def _given(row: dict[str, Any], words: dict[str, Any], gettext: Callable[[str], str]) -> tuple[str, ...]:
    none = ("–",) * 8
    if "unbuilt" in row:
        return ("–", *none, words["unbuilt"])
    why = re.sub(r"[{（(]+reason[}）)]+", "", gettext(row["why"])).replace(" .", ".") if row["why"] else ""
    why = re.sub(r"\{(\w+)\}", r"`\1`", why)
    if not row["gives"]:
        return (words["refused_class"], *none, why)
    order, blocks = (" / ".join(words.get(each, "–") for each in each) for each in ([row["position"]], row["blocks"]))
    gives = ("✓" if each in row["gives"] else "–" for each in ("inside", "stream", "sublayers", "qkv", "o", "logits"))
    return (words[row["kind"]], order, blocks, *gives, why)


def run() -> None:
    """Note what every class gives."""
    from tests.adapters.huggingface.any_model import classes, given

    rows = {}
    for model_type, name in classes():
        rows[model_type] = given(model_type, name)
        print(model_type, rows[model_type])
    RUN.write_text(json.dumps(rows, indent=1, ensure_ascii=False, sort_keys=True) + "\n", encoding="utf-8")


def _line(cells) -> str:
    return f"| {' | '.join(cells)} |"


def written(page: str) -> str:
    """Return the page with up-to-date tables."""
    return MARKS.sub(
        lambda marks: marks[1] + table(page, marks[2]) + marks[3], (DOCS / page).read_text(encoding="utf-8")
    )


if __name__ == "__main__":
    if "--run" in sys.argv[1:]:
        run()
    for name in WORDS:
        (DOCS / name).write_text(written(name), encoding="utf-8")
