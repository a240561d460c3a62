"""Write what evaluations measured into the tables of the model cards and of both READMEs, and draw the card's diagram.

python -m scripts.model_card reads each bundled evaluation.json, which ``visformer evaluate --json`` printed, or
``visformer train-gpt`` and ``visformer train-caption`` wrote. A test checks that tables and diagram are up to date.
"""

import json
import re
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import plotly.graph_objects as go

from scripts.docs import ROOT
from visformer.adapters.checkpoints import CAPTIONER, OF_TEXT
from visformer.export import figure_svg
from visformer.model.checkpoints import FOLDER
from visformer.pictures.charts.panels import look
from visformer.pictures.style import CURVES, FAINT, LINE

CARD, *GPT_CARDS = (FOLDER / name for name in OF_TEXT)
CAPTION_CARD = FOLDER / CAPTIONER
DIAGRAM = CARD / "reliability.svg"
MARKS = re.compile(r"(<!-- (\w+) -->\n).*?(<!-- end -->)", re.DOTALL)
DIRECTIONS = ("en-zh", "zh-en")
HEAD = ("", "English to Chinese", "Chinese to English")

Row = tuple[str, ...]


def evaluation(folder: Path = CARD) -> dict[str, Any]:
    """Return the evaluation of a bundled model."""
    return json.loads((folder / "evaluation.json").read_text(encoding="utf-8"))


# How figures are written ----------------------------------------------------------------------------------------------


def interval(told: dict[str, Any], write: str = ".2f") -> str:
    """Write the ends of an interval."""
    return f"{told['low']:{write}} to {told['high']:{write}}"


def percent(told: dict[str, Any]) -> str:
    """Write a share with its interval and its n."""
    return "none" if told["share"] is None else f"{told['share']:.0%} ({interval(told, '.0%')}), n = {told['n']}"


def error_rate(told: dict[str, Any]) -> str:
    """Write the error rate of a head with its interval, and the head."""
    return f"{told['aer']:.2f} ({interval(told)}), {told['head']}"


# The tables of the card -----------------------------------------------------------------------------------------------


def sizes(told: dict[str, Any]) -> Iterator[Row]:
    """Yield the sizes of the model."""
    model = told["model"]
    yield "", ""
    yield "parameters", f"{model['parameters']:,}, as float16 safetensors"
    yield "tokens", f"{model['src_vocab']:,}, of both languages"
    yield "layers", f"{model['n_encoder_layers']} + {model['n_decoder_layers']}, {model['norm']}-norm"
    yield "heads, d_model, d_ff", f"{model['n_heads']}, {model['d_model']}, {model['d_ff']}"


def bleu(told: dict[str, Any]) -> Iterator[Row]:
    """Yield BLEU and chrF, of all pairs and of those that say nothing that was trained on."""
    yield HEAD
    for kind, name in (("all", "all"), ("unseen", "unlike any trained on")):
        if kind not in told["bleu"]:
            continue
        scores = told["bleu"][kind]
        both = [scores[direction] for direction in DIRECTIONS]
        pairs = f"{scores['pairs']} held-out pairs, {name}"
        yield f"BLEU, {pairs}", *(f"{one['bleu']:.1f}" for one in both)
        yield f"chrF, {pairs}", *(f"{one['chrf']:.1f}" for one in both)
        if "against" in both[0]:
            gains = [one["against"] for one in both]
            lines = (f"{gain['difference']:+.1f} ({interval(gain, '+.1f')})" for gain in gains)
            yield f"BLEU more than the model before, {pairs}", *lines
    if "overlaps" in told["bleu"]:
        counts = "{equal} have a side that equals one, {content} more one with the same content words"
        yield "held-out pairs like some trained on", counts.format(**told["bleu"]["overlaps"]), ""
    both = [told["bleu"]["all"][direction]["signatures"] for direction in DIRECTIONS]
    for metric, name in (("bleu", "BLEU"), ("chrf", "chrF")):
        yield f"signature of {name}", *("`" + one[metric].replace("|", r"\|") + "`" for one in both)


def judged(told: dict[str, Any]) -> Iterator[Row]:
    """Yield the judged lists."""
    yield "", "right", "share", "95 % interval"
    names = {
        "ordinary": "ordinary sentences",
        "hard": "hard sentences",
        "pairs": "minimal pairs, both sentences right",
        "held_out first": "first sentences, never trained on",
        "held_out phrases": "greetings, questions and wishes, never trained on",
        "held_out copies": "names, numbers, addresses and emoji copied exactly",
        "taught first": "first sentences, trained on",
        "taught phrases": "set phrases, trained on",
    }
    for kind, one in {**told["judged"], **told["first sentences"]}.items():
        yield names[kind], f"{one['right']} of {one['n']}", f"{one['share']:.0%}", interval(one, ".0%")


def names(told: dict[str, Any]) -> Iterator[Row]:
    """Yield the held-out names, by kind."""
    yield "", "sentences", "whole sentence exact", "name right"
    kinds = {
        "copy": "Latin names to be copied",
        "pinyin": "Chinese names to be spelled in pinyin",
        "composed": "a known place + University",
    }
    for kind, name in kinds.items():
        yield name, *(str(told["names"][kind][key]) for key in ("sentences", "exact", "name_right"))


def confidence(told: dict[str, Any]) -> Iterator[Row]:
    """Yield what confidence and threshold say of the other half of the judged sentences."""
    one = told["calibration"]
    area = one["auroc"]
    yield "", "on the other half"
    yield "AUROC", f"{area['value']:.2f} ({interval(area)}), n = {area['n']}"
    yield f"wrong, of those below {one['threshold']:.0%}", percent(one["precision"])
    yield f"below {one['threshold']:.0%}, of the wrong", percent(one["recall"])
    yield f"not below {one['threshold']:.0%}, of the right", percent(one["kept"])
    for kind, name in (("held_out phrases", "greetings and wishes"), ("taught phrases", "set phrases trained on")):
        yield f"not below {one['threshold']:.0%}, of the right {name}", percent(one["kinds"][kind]["kept"])


def reliability(told: dict[str, Any]) -> Iterator[Row]:
    """Yield the bins of the reliability diagram."""
    yield "confidence", "its mean", "right", "share", "95 % interval"
    for row in told["calibration"]["reliability"]:
        ends, mean = f"{row['from']:.0%} to {row['to']:.0%}", f"{row['confidence']:.0%}"
        yield ends, mean, f"{row['right']} of {row['n']}", f"{row['share']:.0%}", interval(row, ".0%")


def alignment(told: dict[str, Any]) -> Iterator[Row]:
    """Yield the alignment error rates of both readings of a row, and their baselines."""
    yield HEAD
    for kind, name in (("by hand", "aligned by hand"), ("grammar", "of the grammar")):
        both = [told["alignment"][kind][direction] for direction in DIRECTIONS]
        pairs = f"{both[0]['pairs']} pairs {name}"
        for reading, words in (("input", "the row reads the word"), ("prediction", "the row predicts the word")):
            yield f"{pairs}: {words}", *(error_rate(one[reading]) for one in both)
        for baseline in ("uniform", "diagonal", "best possible"):
            yield f"{pairs}: {baseline}", *(f"{one[baseline]:.2f}" for one in both)
    for reading, words in (("input", "reads"), ("prediction", "predicts")):
        both = [told["alignment"]["by hand"][direction][reading] for direction in DIRECTIONS]
        yield (
            f"mean entropy of that head's rows (aligned by hand, {words}), nats",
            *(f"{o['entropy']:.2f}" for o in both),
        )


def perplexity(told: dict[str, Any]) -> Iterator[Row]:
    """Yield the perplexity of a decoder-only model beside that of an n-gram model."""
    yield "", "sentences", "tokens", "model", "4-gram"
    for language, name in (("en", "English"), ("zh", "Chinese")):
        one = told["perplexity"][language]
        yield name, str(one["sentences"]), f"{one['tokens']:,}", f"{one['model']:.1f}", f"{one['4-gram']:.1f}"


def induction(told: dict[str, Any]) -> Iterator[Row]:
    """Yield the score of the best induction head, and what it was trained and scored on."""
    one = told["induction"]
    yield "", ""
    yield "best head", f"layer {one['layer'] + 1}, head {one['head'] + 1}"
    yield "weight on the token after the previous occurrence", f"{one['score']:.3f} ({interval(one, '.3f')})"
    yield "weight on the first token", f"{one['first']:.4f}"
    yield "scored on", f"{one['contexts']} sequences with periods of {one['periods'][0]} to {one['periods'][1]} tokens"
    yield "trained on", f"periods of {one['trained_periods'][0]} to {one['trained_periods'][1]} tokens"
    yield "tokens that random sequences are drawn from", f"{one['pool']:,}"
    yield "share of random sequences in the training", f"{one['random_share']:.0%}"


def captions(told: dict[str, Any]) -> Iterator[Row]:
    """Yield how many captions of held-out scenes are right, and what captions of other scenes' pictures give."""
    both = [told["accuracy"][language] for language in ("en", "zh")]
    yield "", "English", "Chinese"
    for key, name in (("scenes", "scenes whose colours and shapes are all right"), ("words", "of these words")):
        yield name, *(rate(one[key]) for one in both)
        yield f"{name}, caption of another picture", *(rate(one["shuffled"][key]) for one in both)
    yield "captions right to the letter", *(rate(one["exact"]) for one in both)


def rate(told: dict[str, Any]) -> str:
    """Write a share as two numbers, with its interval."""
    return f"{told['right']:,} of {told['n']:,} ({interval(told, '.1%')})"


def reading(told: dict[str, Any]) -> Iterator[Row]:
    """Yield how often a word reads its object, and what chance would give."""
    one = told["alignment"]
    chosen = [one[part] for part in ("reading", "layer", "head")]
    yield "", "share"
    yield f"on its object, {one['n']:,} words of {one['scenes']:,} scenes", f"{one['on']:.1%} ({interval(one, '.1%')})"
    for kind, share in one["by"].items():
        yield f"on its object, {kind}", f"{share:.1%}"
    yield "on another object", f"{one['other']:.1%}"
    yield "expected of any patch", f"{one['area']:.1%}"
    yield "expected of any patch that shows an object", f"{one['any object']:.1%}"
    yield "read", where(*chosen)
    singles = {name: share for name, share in one["each"].items() if "None" not in name}
    name = max(singles, key=singles.__getitem__)
    reading, layer, head = name.split()
    yield (
        f"best of {len(singles)} single heads and rows, {where(reading, int(layer), int(head))}",
        f"{singles[name]:.1%}",
    )


def where(reading: str, layer: int | None, head: int | None) -> str:
    """Name what was read of the cross-attention, from 1."""
    which = "all layers" if layer is None else f"layer {layer + 1}"
    whose = "mean of all heads" if head is None else f"head {head + 1}"
    return f"{which}, {whose}, the row that {'predicts' if reading == 'prediction' else 'reads'} the word"


# The table of the READMEs ---------------------------------------------------------------------------------------------

WORDS: dict[str, dict[str, str]] = {
    "README.md": {
        "to": "English to Chinese",
        "from": "Chinese to English",
        "bleu": "BLEU on {pairs} held-out pairs (sacreBLEU, greedy)",
        "judged": "right translations of judged sentences: ordinary, hard, minimal pairs",
        "judged_told": "{ordinary}, {hard}, {pairs}, both directions together",
        "names": "exact match on {sentences} held-out names",
        "names_told": "{exact} of {sentences}, the name itself right in {name_right}, both directions together",
        "input": "alignment error rate of the best cross-attention head, where the row reads the word",
        "prediction": "the same where the row predicts the word",
    },
    "README.zh-CN.md": {
        "to": "英译汉",
        "from": "汉译英",
        "bleu": "{pairs} 个留出句对上的 BLEU（sacreBLEU，贪心解码）",
        "judged": "日常句子的译对率：普通句、难句、最小对立句",
        "judged_told": "{ordinary}、{hard}、{pairs}（两个方向合计）",
        "names": "{sentences} 个留出专有名词的完全匹配率",
        "names_told": "{sentences} 句中 {exact} 句，专有名词本身正确 {name_right} 个（两个方向合计）",
        "input": "最佳交叉注意力头的对齐错误率：取读入该词的行",
        "prediction": "同上：取预测该词的行",
    },
}


def figures(told: dict[str, Any], words: dict[str, str]) -> Iterator[Row]:
    """Yield the most important figures."""
    scores, hand = told["bleu"]["all"], told["alignment"]["by hand"]
    yield "", words["to"], words["from"]
    yield words["bleu"].format(**scores), *(f"{scores[direction]['bleu']:.1f}" for direction in DIRECTIONS)
    yield (
        words["judged"],
        words["judged_told"].format(**{k: f"{v['share']:.0%}" for k, v in told["judged"].items()}),
        "",
    )
    yield words["names"].format(**told["names"]["all"]), words["names_told"].format(**told["names"]["all"]), ""
    for reading in ("input", "prediction"):
        yield words[reading], *(f"{hand[direction][reading]['aer']:.2f}" for direction in DIRECTIONS)


# The diagram ----------------------------------------------------------------------------------------------------------


def diagram(told: dict[str, Any]) -> str:
    """Draw the reliability diagram as SVG: the share that is right, with its interval, over the mean confidence."""
    rows = told["calibration"]["reliability"]
    figure = go.Figure()
    figure.add_scatter(
        x=[0, 1], y=[0, 1], mode="lines", line={"color": LINE["light"], "dash": "dash"}, showlegend=False
    )
    bars = [(row["confidence"], end) for row in rows for end in (row["low"], row["high"], None)]
    x, y = zip(*bars, strict=True)
    figure.add_scatter(x=x, y=y, mode="lines", line={"color": FAINT["light"], "width": 1}, showlegend=False)
    marker = {"color": CURVES["light"][0], "size": 8}
    x, y = zip(*((row["confidence"], row["share"]) for row in rows), strict=True)
    figure.add_scatter(x=x, y=y, mode="lines+markers", line={"color": marker["color"]}, marker=marker, showlegend=False)
    axis = {"range": [0, 1], "gridcolor": LINE["light"]}
    figure.update_layout(**look("light"), width=420, height=400)
    figure.update_layout(
        margin={"l": 20, "r": 20, "t": 10, "b": 20}, xaxis_title="confidence", yaxis_title="share right"
    )
    figure.update_layout(xaxis=axis, yaxis=axis)
    return figure_svg(figure, title="Share of right translations by confidence", about="en-zh")


# Writing --------------------------------------------------------------------------------------------------------------

TABLES: dict[str, Callable[[dict[str, Any]], Iterator[Row]]] = {
    table.__name__: table for table in (sizes, bleu, judged, names, confidence, reliability, alignment)
}
GPT_TABLES: dict[str, Callable[[dict[str, Any]], Iterator[Row]]] = {
    table.__name__: table for table in (perplexity, induction)
}
CAPTION_TABLES: dict[str, Callable[[dict[str, Any]], Iterator[Row]]] = {
    table.__name__: table for table in (captions, reading)
}
PAGES = (*(card / "README.md" for card in (CARD, *GPT_CARDS, CAPTION_CARD)), *(ROOT / name for name in WORDS))


def written(page: Path) -> str:
    """Return a page with up-to-date tables."""
    told, tables = evaluation(), TABLES
    if page.parent in GPT_CARDS:
        told, tables = evaluation(page.parent), GPT_TABLES
    elif page.parent == CAPTION_CARD:
        told, tables = evaluation(page.parent), CAPTION_TABLES

    def table(name: str) -> str:
        head, *rows = figures(told, WORDS[page.name]) if name == "figures" else tables[name](told)
        return "".join(f"| {' | '.join(cells)} |\n" for cells in (head, ["---"] * len(head), *rows))

    return MARKS.sub(lambda marks: marks[1] + table(marks[2]) + marks[3], page.read_text(encoding="utf-8"))


def write() -> None:
    """Write all tables, and the diagram."""
    for page in PAGES:
        page.write_text(written(page), encoding="utf-8")
    DIAGRAM.write_text(diagram(evaluation()), encoding="utf-8")


if __name__ == "__main__":
    write()
