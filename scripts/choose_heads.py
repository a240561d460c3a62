"""Choose the heads and numbers that texts speak of: ``python -m scripts.choose_heads`` prints them.

Run it for new weights, and edit the lesson by its output. Each point that a text makes has a measure between 0 and 1,
computed for the first example, whose numbers the text quotes, and in general, for all sentences at hand; the value of a
head is the lesser of the two, so that what is told of the example is its habit. Layers and heads count from 1.
"""

import argparse
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

import visformer as vf
from visformer.adapters.own import Translator
from visformer.analysis.heads import head_scores
from visformer.analysis.word_alignment import Aligned, Candidates, by_words, head_names, word_shares
from visformer.edits import Silence
from visformer.model.tokenizer import EOS
from visformer.pictures.examples import EXAMPLES
from visformer.trace.row_totals import separators
from visformer.trace.stacks import short_name
from visformer.training.evaluation.alignment import forced_pattern, read_aligned
from visformer.training.supplement import FOLDER

Values = NDArray[np.floating]
FIRST = Aligned(
    source=("I", "went", "to", "Northeastern", "University", "."),
    target=("我", "去", "东北", "大学", "。"),
    source_text=EXAMPLES[0],
    target_text=EXAMPLES[1],
    sure=frozenset({(0, 0), (1, 1), (3, 2), (4, 3), (5, 4)}),
    possible=frozenset({(0, 0), (1, 1), (2, 1), (3, 2), (4, 3), (5, 4)}),
)
"""The first example, and the second, which is its translation."""

NAME = ("Northeastern", "东北")


@dataclass(frozen=True)
class Point:
    """What a text says of a head, and the measure of each, (layer, head), for the first example and in general."""

    says: str
    stack: str
    first: Values
    general: Values

    @property
    def values(self) -> Values:
        """The lesser of both."""
        return np.minimum(self.first, self.general)

    def best(self, n: int = 3, *, layer: int | None = None) -> list[tuple[int, int]]:
        """Return the places of the n best heads, from 0, of one layer or of all."""
        places = [place for place in np.ndindex(self.values.shape) if layer in (None, place[0])]
        return sorted(places, key=lambda place: -self.values[place])[:n]


# Measures of a pattern (..., query, key) -----------------------------------------------------------------------------


def reads_itself(pattern: Values, words: NDArray[np.bool_]) -> Values:
    """Mean weight of a word on itself; ``words``: which tokens are neither special nor punctuation."""
    return np.diagonal(pattern, axis1=-2, axis2=-1)[..., words].mean(axis=-1)


def readers(pattern: Values, key: int, words: NDArray[np.bool_]) -> Values:
    """Mean weight that the two words with most give to ``key``, itself left out."""
    others = words & (np.arange(len(words)) != key)
    return np.sort(pattern[..., others, key], axis=-1)[..., -2:].mean(axis=-1)


def partners(model: Translator, pairs: Sequence[Aligned], *, to: str) -> Candidates:
    """Count for every head the content words whose largest weight, where they are the input, lies on their partner.

    A content word has a letter and a sure link; its partners are the words that it is surely linked to. Special tokens
    count among what is read, as in the picture.
    """
    hits, counts = [], []
    for pair in pairs:
        pattern = forced_pattern(model, pair, to=to)  # (layer, head, tgt token, src token)
        source = word_shares(model, pair.source_text, pair.source)  # (word, token)
        target = word_shares(model, pair.target_text, pair.target)
        n = pattern.shape[-1]
        keys = np.vstack([np.pad(source, ((0, 0), (0, n - source.shape[1]))), np.eye(n)[source.shape[1] :]])
        table = target @ pattern[..., 1 : target.shape[1] + 1, :] @ keys.T  # (layer, head, word, word or special token)
        linked = np.zeros(table.shape[-2:], dtype=bool)
        for i, j in pair.sure:
            linked[j, i] = any(map(str.isalpha, pair.target[j]))
        found = np.take_along_axis(linked, table.argmax(axis=-1).reshape(-1, len(linked)).T, axis=1)  # (target, head)
        hits.append(found.sum(axis=0).astype(float))
        counts.append(float(linked.any(axis=1).sum()))
    return Candidates(tuple(head_names(table.shape[:2])), np.stack(hits, axis=-1), np.array(counts))


# The points of the texts ---------------------------------------------------------------------------------------------


def points(model: Translator) -> Iterator[Point]:
    """Yield every point."""
    traces = [model.trace(example) for example in EXAMPLES]
    encoder = [trace.stack("encoder.self_attn") for trace in traces]
    words = [~separators(trace.tokens["src"], trace.special["src"]) for trace in traces]
    per_trace = [reads_itself(*both) for both in zip(encoder, words, strict=True)]
    yield Point("Its words read themselves.", "encoder.self_attn", per_trace[0], np.mean(per_trace, axis=0))
    for key in np.flatnonzero(words[0]):
        value = readers(encoder[0], key, words[0])
        yield Point(f"Two other words read {traces[0].tokens['src'][key]}.", "encoder.self_attn", value, value)

    per_trace = [previous(trace) for trace in traces]
    yield Point("A token reads the one before it.", "decoder.self_attn", per_trace[0], np.mean(per_trace, axis=0))

    gold = read_aligned(FOLDER / "alignment.tsv")
    both = (gold, "zh", FIRST), ([pair.reversed() for pair in gold], "en", FIRST.reversed())
    ahead = [by_words(model, forced_pattern(model, first, to=to), first)["prediction"] for _, to, first in both]
    name, target = FIRST.source.index(NAME[0]), FIRST.target.index(NAME[1])
    yield Point(
        "It finds the name one token before it is written.",
        "decoder.cross_attn",
        ahead[0][..., target, name],
        ahead[1][..., name, target],
    )
    first, *general = (
        1 - partners(model, pairs, to=to).error_rates.reshape(ahead[0].shape[:2])
        for pairs, to in (([FIRST], "zh"), *((pairs, to) for pairs, to, _ in both))
    )
    yield Point(START, "decoder.cross_attn", first, np.mean(general, axis=0))


START = "Each row reads the partner of its own word."
"""The head that is shown first: its text says so, and its picture has to."""


def previous(trace: vf.Trace) -> Values:
    """The score "previous" of the decoder's heads."""
    tokens = trace.tokens["tgt"]
    layers = trace.stack("decoder.self_attn")
    return head_scores(layers, queries=tokens, keys=tokens, special=trace.special["tgt"], cross=False)["previous"]


def start(model: Translator) -> dict[str, object]:
    """Return the selection with which the explorer starts."""
    (point,) = [point for point in points(model) if point.says == START]
    ((layer, head),) = point.best(1)
    return {"stack": "decoder.cross_attn", "layer": layer, "head": head}


# What silencing a head changes ---------------------------------------------------------------------------------------


def paths(model: Translator) -> list[str]:
    """Return the path of every attention."""
    encoder = [f"encoder.{layer}.self_attn" for layer in range(model.info.n_encoder_layers)]
    layers = range(model.info.n_decoder_layers)
    return encoder + [f"decoder.{layer}.{kind}" for kind in ("self_attn", "cross_attn") for layer in layers]


def heads_of(model: Translator) -> list[Silence]:
    """Return for every head the edit that silences it."""
    return [Silence(path, head) for path in paths(model) for head in range(model.info.n_heads)]


def expected(model: Translator, source: str, ids: Sequence[int], *edits: Silence) -> tuple[Values, bool]:
    """Force a translation: return its tokens' probabilities, </s> last, and whether each is still the likeliest."""
    logits = model.trace(source, tuple(ids), record=("logits",), edits=edits)["logits"].value.astype(np.float64)
    wanted = np.array([*ids, model.tokenizer.token_id(EOS)])
    shares = np.exp(logits - np.logaddexp.reduce(logits, axis=-1, keepdims=True))  # (tgt, vocab)
    return shares[np.arange(len(wanted)), wanted], bool((logits.argmax(axis=-1) == wanted).all())


# What is printed -----------------------------------------------------------------------------------------------------


def named(path: str, head: int) -> str:
    """Name a head as a lesson does: "cross layer 3 head 4"."""
    part, layer, kind = path.split(".")
    return f"{short_name(f'{part}.{kind}')} layer {int(layer) + 1} head {head + 1}"


def show_points(model: Translator, trace: vf.Trace) -> None:
    """Print the best heads of every point, and what each row of theirs reads most in the first example."""
    print("# Heads: value = the lesser of (first example, in general); rows, counted from 1: what they read most")
    for point in points(model):
        print(f"\n{point.says}")
        part, kind = point.stack.split(".")
        places = point.best()
        places += [place for place in point.best(1, layer=0) if place not in places]
        for layer, head in places:
            values = [float(values[layer, head]) for values in (point.values, point.first, point.general)]
            path = f"{part}.{layer}.{kind}"
            print("  {}: {:.2f} ({:.2f}, {:.2f})".format(named(path, head), *values))
            print(f"    {reading(trace, path, head)}")


def reading(trace: vf.Trace, path: str, head: int) -> str:
    """Write for each row what it reads most: "2 went → 5 University .785"."""
    queries, keys = (trace.tokens[side] for side in SIDES[path.split(".")[0], path.split(".")[2]])
    rows = trace[f"{path}.pattern"].value[head]
    return ", ".join(
        f"{i} {query} → {row.argmax() + 1} {keys[row.argmax()]} {row.max():.3f}"
        for i, (query, row) in enumerate(zip(queries, rows, strict=True), 1)
    )


SIDES = {
    ("encoder", "self_attn"): ("src", "src"),
    ("decoder", "self_attn"): ("tgt", "tgt"),
    ("decoder", "cross_attn"): ("tgt", "src"),
}


def show_start(model: Translator) -> None:
    """Print how often the head that is chosen by half of the pairs reads a word's partner in the other half."""
    gold = read_aligned(FOLDER / "alignment.tsv")
    print("\nContent words whose largest weight lies on their partner, in the row whose input they are:")
    for pairs, to in ((gold, "zh"), ([pair.reversed() for pair in gold], "en")):
        heads = partners(model, pairs, to=to)
        best = heads.chosen()
        share, low, high = (f"{1 - value:.1%}" for value in (best.error, best.high, best.low))
        print(f"  to {to}: {heads.names[best.best]}, {share} ({low} to {high}) of {heads.sizes.sum():.0f} words")


def show_name(model: Translator) -> None:
    """Print in which heads of each layer the name is read most where it is predicted, and where it is the input."""
    name, target = FIRST.source.index(NAME[0]), FIRST.target.index(NAME[1])
    tables = by_words(model, forced_pattern(model, FIRST, to="zh"), FIRST)
    print(f"\nCross heads that read {NAME[0]} most in the row that predicts {NAME[1]}, and in the row that it is:")
    for layer in range(model.info.n_decoder_layers):
        rows = [tables[reading][layer, :, target].argmax(axis=-1) for reading in ("prediction", "input")]
        predicted, own = ([int(head) + 1 for head in np.flatnonzero(row == name)] for row in rows)
        print(f"  layer {layer + 1}: heads {predicted}, heads {own}")


def show_numbers(model: Translator, trace: vf.Trace) -> None:
    """Print the other numbers that the lesson quotes."""
    print(f"\n# Numbers of the first example\nsource: {' · '.join(trace.tokens['src'])}")
    depth = model.info.n_encoder_layers
    added, after = (
        np.array([np.linalg.norm(trace[f"encoder.{layer}.{name}"].value, axis=-1) for layer in range(depth)])
        for name in ("ffn.out", "resid_post")
    )  # (layer, token)
    for layer, at in sorted(np.ndindex(added.shape), key=lambda place: -added[place])[:4]:
        token = trace.tokens["src"][at]
        print(f"the feed-forward network of encoder layer {layer + 1} adds {added[layer, at]:.1f} to {token}", end="")
        print(f", which has {after[layer, at]:.1f} after LN")
    greedy, beams = model.translate(EXAMPLES[0]), model.translate(EXAMPLES[0], beam_size=4)
    first = ", ".join(f"{each.token} {each.probability:.4f}" for each in greedy.steps[0].candidates[:3])
    print(f"step 1: {first}\nchosen: {', '.join(f'{s.chosen.token} {s.chosen.probability:.3f}' for s in greedy.steps)}")
    print(f"greedy: {greedy.text}\nfour beams: {beams.text}")


def show_silenced(model: Translator) -> None:
    """Print what silencing a head does to the name."""
    ids = model.translate(EXAMPLES[0]).ids
    at = model.tokenizer.shown(ids).index(NAME[1])
    before = expected(model, EXAMPLES[0], ids)[0][at]
    print(f"\n# Silencing one head: the probability of {NAME[1]} in the first example is {before:.4f}, and")
    rest = [(float(expected(model, EXAMPLES[0], ids, edit)[0][at]), edit) for edit in heads_of(model)]
    for value, edit in sorted(rest, key=lambda one: one[0])[:3]:
        print(f"  {value:.4f} without {named(edit.where, edit.head)}")


def main() -> None:
    """Print all of it."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("model", nargs="?", default="en-zh", help="a bundled model, or the folder of a checkpoint")
    model = vf.load(parser.parse_args().model)
    trace = model.trace(EXAMPLES[0], record=("*",))
    show_points(model, trace)
    show_start(model)
    show_name(model)
    show_numbers(model, trace)
    show_silenced(model)


if __name__ == "__main__":
    main()
