"""Two sides as panels: a head in two passes, heads matched between two models, guesses beside what a model does."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from visformer import scenes
from visformer.adapters.checkpoints import GPT, GPT_2
from visformer.adapters.picture_files import language_of
from visformer.analysis.comparing import Partners, head_similarity, match_heads, partners_of
from visformer.errors import N_, BudgetError, TraceError
from visformer.i18n import Gettext
from visformer.panel import AXIS_TITLES, Labels, Panel, numbered, traced
from visformer.pictures.registry.setting import Setting
from visformer.system import limits
from visformer.trace import Trace
from visformer.trace.stacks import Stack, shape_of, stack_named

ONE_WORD = {
    "I went to Northeastern University.": "I went to Northeastern China.",
    "我去东北大学。": "我爱东北大学。",
    "She gave her brother the book that he wanted.": "She gave her brother the book that she wanted.",
    "The cat did not drink the milk because it was cold.": "The cat did not drink the milk because it was tired.",
    "How long have you been studying Chinese?": "How long have you been speaking Chinese?",
    "他昨天在北京买了三本书。": "他明天在北京买三本书。",
    "如果明天下雨，我们就待在家里。": "如果明天下雪，我们就待在家里。",
    "My dog's name is Wuffel.": "My cat's name is Wuffel.",
}
"""Examples to the same sentence with one word changed."""

_PARTNERS = N_(
    "Rows with a partner: {rows} of {all_rows}, columns: {columns} of {all_columns}. Different tokens in the same "
    "place, A / B: {replaced}. What only A or only B has is empty."
)


@dataclass(frozen=True)
class Sides:
    """Two passes that are compared.

    Args:
        first: A.
        second: B.
        titles: what each is, in the visitor's language.
        matched: whether they are of two models, whose heads are matched by their patterns.
        note: what else is to be said.
        maps: a number of each head, by attention.
    """

    first: Trace
    second: Trace
    titles: tuple[str, str]
    matched: bool = False
    note: str = ""
    maps: Mapping[str, Panel] = field(default_factory=dict)


def one_word_changed(text: str) -> str:
    """Return a sentence to compare this one with: one word of an example is changed, any other becomes a question.

    In the description of a scene, the first object gets the next colour; any other picture is compared with a scene.
    """
    if text in ONE_WORD:
        return ONE_WORD[text]
    if language := language_of(text):
        return scenes.caption(scenes.EXAMPLES[0], language)
    if told := scenes.described(text):
        (first, *others), colours = told[0].objects, [*scenes.COLOURS]
        other = replace(first, colour=colours[(colours.index(first.colour) + 1) % len(colours)])
        return scenes.caption(scenes.Scene((other, *others)), told[1])
    bare = text.rstrip(" .。!！?？")
    asks = text.rstrip().endswith(("?", "？"))
    is_wide = any(ord(character) > 0x2E80 for character in bare)
    return bare + ("。" if is_wide else ".") * asks + ("？" if is_wide else "?") * (not asks)


def heads(layers: Iterable[int], values: NDArray[Any], **look: Any) -> Panel:
    """Draw a number of each head, (layer, head); ``layers``: their numbers, from 0."""
    return Panel(
        name="overview",
        values=values,
        rows=Labels(tuple(str(layer + 1) for layer in layers), N_("layer")),
        columns=numbered(values.shape[1], N_("head"), first=1),
        scale="unsigned",
        **look,
    )


def head_in_both(
    first: Trace,
    second: Trace,
    paths: tuple[str, str],
    numbers: tuple[int, int],
    *,
    gettext: Gettext = str,
) -> list[Panel]:
    """Draw a head's pattern in two passes, and B - A, whose rows and columns are the tokens of both.

    Args:
        first: A.
        second: B.
        paths: of the attention in A and in B.
        numbers: of the head in A and in B.
        gettext: translates titles and the note.
    """
    part, _layer, kind = paths[0].split(".")
    rows, columns = partners_of(first, second, f"{part}.{kind}")
    titled = gettext(N_("{side}: layer {layer}, head {head}"))
    a, b = (
        traced(
            trace,
            f"{path}.pattern",
            head,
            name=f"pattern_{side.lower()}",
            title=titled.format(side=side, layer=int(path.split(".")[1]) + 1, head=head + 1),
            scale="weight",
            symbol="pattern",
        )
        for trace, path, head, side in zip((first, second), paths, numbers, "AB", strict=True)
    )
    values = np.full((len(rows.union), len(columns.union)), np.nan)
    shared = [[at for at, entry in enumerate(each.union) if None not in entry] for each in (rows, columns)]
    in_a, in_b = (
        np.ix_(*([each.union[at][side] for at in of] for each, of in zip((rows, columns), shared, strict=True)))
        for side in (0, 1)
    )
    values[np.ix_(*shared)] = b.values[in_b] - a.values[in_a]
    said = gettext(_PARTNERS)
    note = said.format(
        rows=len(rows.pairs),
        all_rows=len(rows.union),
        columns=len(columns.pairs),
        all_columns=len(columns.union),
        replaced=len(rows.replaced),
    )
    difference = Panel(
        name="difference",
        title=gettext(N_("B − A")),
        values=values,
        rows=_both(rows, a.rows, b.rows, AXIS_TITLES["query"]),
        columns=_both(columns, a.columns, b.columns, AXIS_TITLES["key"]),
        limit=1.0,
        note=note,
    )
    return [a, b, difference]


def _both(partners: Partners, a: Labels, b: Labels, title: str) -> Labels:
    """Label the tokens of both sides: "A / B" where they differ, "A: …" or "B: …" where there is no partner."""
    texts, special = [], []
    for i, j in partners.union:
        one, other = (None if i is None else a.texts[i]), (None if j is None else b.texts[j])
        if one is None or other is None:
            texts.append(f"A: {one}" if other is None else f"B: {other}")
        else:
            texts.append(one if one == other else f"{one} / {other}")
        special.append(bool(a.special[i] if i is not None else b.special[j or 0]))
    return Labels(tuple(texts), title, places=True, special=tuple(special))


def forced(trace: Trace) -> Any:
    """Return the second text of a pass, for another model to read it, too.

    Of an encoder-decoder its target as ids, since as text it might be tokenized differently, without the language
    token.
    """
    if trace.tokens.get("src") and trace.tokens.get("tgt"):
        ids = [*zip(trace.meta["ids"]["next"][:-1], trace.special["next"], strict=False)]
        begins = next((at for at, (_, special) in enumerate(ids) if not special), 0)
        return tuple(i for i, _ in ids[begins:])
    return trace.meta.get("target") or trace.meta.get("pair")


_SIMILARITY = N_(
    "Similarity: 1 − mean total variation distance of aligned rows. Mean of matched heads: {matched:.2f}, of all "
    "pairs: {floor:.2f}; {mutual} of {n} matches are mutual."
)
_NULL = N_(
    "Two trainings of mini-gpt that differ in their seed only, on this text: {matched:.2f}, of all pairs {floor:.2f}."
)
_IS_NULL = N_("These two trainings differ in their seed only: other pairs are to be compared with them.")


def similarities(setting: Setting, sides: Sides) -> Panel:
    """Draw how similar each head of A is to its match in B."""
    table = match_heads(sides.first, sides.second, setting["stack"])
    layers = sides.first.layers(setting["stack"])
    return heads(
        layers,
        table["similarity"].to_numpy().reshape(shape_of(layers)[:2]),
        title=N_("similarity of each head to its match"),
        limit=1.0,
        note=" ".join(_describe_similarity(setting, table)),
    )


def read_by_both(setting: Setting) -> tuple[Trace, Trace]:
    """Return the pass of this model and that of the other one, which reads the same texts.

    A decoder-only model reads the target of a translator, whose decoder it is compared with.

    Raises:
        BudgetError: there are too many pairs of heads for texts of this length.
        TraceError: the other one has no such attention.
    """
    first, name = setting.patterns, setting["other_model"]
    target = first.meta.get("target") or first.meta.get("pair")
    second = setting.source.read(first.source, target, model=name)
    if target and first.tokens.get("src") and not second.tokens.get("src"):
        second = setting.source.read(str(target), model=name)
    stack = stack_named(setting["stack"])
    if not stack.in_trace(second):
        lacks = N_("{model} has no such attention ({attention}), whose heads could be compared: choose another model.")
        raise TraceError(lacks, model=name, attention=stack.label)
    _check_size(first, second, stack)
    return first, second


def _check_size(first: Trace, second: Trace, stack: Stack) -> None:
    layers = [stack.layers(trace) for trace in (first, second)]
    n_heads = [np.prod(shape_of(each)[:2]) for each in layers]
    given = int(np.prod(n_heads) * np.prod(shape_of(layers[1])[2:]))
    if given > limits.MATCHED:
        raise BudgetError(
            N_("Matching all heads of both compares {given} weights; the limit is {limit}: shorten the sentence."),
            given=f"{given:,}",
            limit=f"{limits.MATCHED:,}",
        )


def matches(first: Trace, second: Trace, stack: Stack) -> tuple[list[tuple[int, int]], list[tuple[int, int]]]:
    """Return for each head of A, layer by layer, the layer and head of its match in B; and the same from B to A.

    Raises:
        BudgetError: there are too many pairs of heads for texts of this length.
        TraceError: no row has a partner.
    """
    _check_size(first, second, stack)
    similarity = head_similarity(first, second, stack.name)
    ones, others = (
        [(layer, head) for layer, each in stack.layers(trace).items() for head in range(len(each.value))]
        for trace in (first, second)
    )
    table = similarity.reshape(len(ones), len(others))
    return [others[i] for i in table.argmax(axis=1)], [ones[i] for i in table.argmax(axis=0)]


def _describe_similarity(setting: Setting, table: Any) -> list[str]:
    """Say how similar matched heads are, and what two seeds of one model give."""
    described = setting.gettext(_SIMILARITY).format(
        matched=table["similarity"].mean(), floor=table["floor"].mean(), mutual=int(table["mutual"].sum()), n=len(table)
    )
    trace = setting.patterns
    if {trace.meta.get("model"), setting["other_model"]} == {GPT, GPT_2}:
        return [described, setting.gettext(_IS_NULL)]
    if not {GPT, GPT_2} <= {*setting.source.models, trace.meta.get("model")}:
        return [described]
    text = str((trace.meta.get("target") if setting.part == "decoder" else None) or trace.meta["source"])
    one, other = (setting.source.read(text, model=name) for name in (GPT, GPT_2))
    null = match_heads(one, other, "decoder.self_attn")
    null_described = setting.gettext(_NULL).format(matched=null["similarity"].mean(), floor=null["floor"].mean())
    return [described, null_described]
