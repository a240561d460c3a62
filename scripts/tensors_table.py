"""Generate the tables of tensors and weights in docs/tensors.md and its Chinese version from visformer/trace/names.py.

python -m scripts.tensors_table writes them, in Chinese by the catalogue; a test checks that both are up to date.
"""

import re
from collections.abc import Iterator

from scripts.docs import DOCS
from visformer.adapters.own import weights_of
from visformer.i18n import translations
from visformer.model.config import TransformerConfig, VisionConfig
from visformer.model.transformer import Transformer
from visformer.trace.names import TENSORS, WEIGHTS, Axis, axes_of

MARKS = re.compile(r"(<!-- (tensors|weights) -->\n).*?(<!-- end -->)", re.DOTALL)
LANGUAGES = {"tensors.md": "en", "tensors.zh-CN.md": "zh"}
HEADS = {"tensors.md": ("Name", "Axes", "What it holds"), "tensors.zh-CN.md": ("名称", "轴", "内容")}
EXAMPLE = {"side": "src", "stack": "decoder", "layer": "0", "attention": "cross_attn", "norm": "norm_self"}


def table(page: str, what: str) -> str:
    """Return a table in Markdown; ``what``: "tensors" or "weights"."""
    gettext = translations(LANGUAGES[page]).gettext
    meanings = TENSORS if what == "tensors" else WEIGHTS
    axes = tensor_axes() if what == "tensors" else weight_axes()
    rows = ((f"`{name}`", f"({', '.join(axes[name])})", gettext(meaning)) for name, meaning in meanings.items())
    return "".join(f"| {' | '.join(cells)} |\n" for cells in (HEADS[page], ["---"] * 3, *rows))


def tensor_axes() -> dict[str, list[str]]:
    """The names of each tensor's axes."""
    return {name: [*_names(axes_of(name.format(**EXAMPLE)) or ())] for name in TENSORS}


def weight_axes() -> dict[str, list[str]]:
    """The names of each weight's axes, as in a small model with all of them."""
    sizes = {"d_model": 4, "n_heads": 2, "d_ff": 4, "n_encoder_layers": 1, "n_decoder_layers": 1}
    config = TransformerConfig(src_vocab=4, tgt_vocab=4, norm="pre", final_norm=True, **sizes)  # type: ignore[arg-type]
    reads_pictures = VisionConfig(4, image_size=2, patch_size=1, **sizes)
    weights = weights_of(Transformer(reads_pictures)) | weights_of(Transformer(config))
    return {name: [*_names(weights[name.format(**EXAMPLE)].axes)] for name in WEIGHTS}


def _names(axes: tuple[Axis, ...]) -> Iterator[str]:
    return (axis.name for axis in axes)


def written(page: str) -> str:
    """Return the page with up-to-date tables."""
    text = (DOCS / page).read_text(encoding="utf-8")
    return MARKS.sub(lambda marks: marks[1] + table(page, marks[2]) + marks[3], text)


if __name__ == "__main__":
    for name in LANGUAGES:
        (DOCS / name).write_text(written(name), encoding="utf-8")
