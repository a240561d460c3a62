"""What a captioner learns from and is measured on: pictures of scenes, and their captions in both languages."""

import random
import re
from collections.abc import Sequence
from itertools import islice
from typing import Any

import numpy as np
from numpy.typing import NDArray

from visformer.adapters.own import Captioner
from visformer.analysis.intervals import counts, percentiles, share
from visformer.analysis.word_alignment import READINGS
from visformer.model.masks import pad
from visformer.model.patches import pixels_of
from visformer.model.tokenizer import EOS, LANGUAGE_TOKEN, Tokenizer, training_words
from visformer.scenes import (
    CHINESE,
    COLOURS,
    LANGUAGES,
    SHAPES,
    Scene,
    caption,
    draw,
    patches_of,
    render,
    words_of,
)
from visformer.training.data import Batch

SCORED, CHOSEN_ON = 1000, 300
"""Held-out scenes that a captioner is scored on, and others on which what is scored is chosen."""

JUDGED = ("colour", "shape")
"""The words that have to be right, and to be read off their object."""

_VOCABULARY_SCENES = 3000
_WORDS = re.compile("|".join(sorted(CHINESE.values(), key=len, reverse=True)) + "|.")
_NAMES = {
    "en": re.compile("|".join((*COLOURS, *SHAPES))),
    "zh": re.compile("|".join(CHINESE[name] for name in (*COLOURS, *SHAPES))),
}


def caption_tokenizer() -> Tokenizer:
    """Learn a vocabulary in which each word of the captions is a token."""
    scenes = islice(draw(0, held_out=False), _VOCABULARY_SCENES)
    texts = [caption(scene, language) for scene in scenes for language in LANGUAGES]
    return Tokenizer.train([word for text in texts for word in training_words(text, _WORDS.findall)], vocab_size=1000)


def caption_batches(tokenizer: Tokenizer, n: int, *, scenes: int, seed: int, held_out: bool = False) -> list[Batch]:
    """Draw ``n`` batches of so many scenes, each with its caption in a language drawn at random."""
    rng, drawn, eos = random.Random(seed), draw(seed, held_out=held_out), tokenizer.token_id(EOS)
    batches = []
    for _ in range(n):
        pictures, rows = [], []
        for scene in islice(drawn, scenes):
            language = rng.choice(LANGUAGES)
            start = tokenizer.token_id(LANGUAGE_TOKEN[language])
            rows.append([start, *tokenizer.encode(caption(scene, language)), eos])
            pictures.append(render(scene))
        tgt = pad(rows)
        batches.append(Batch((pixels_of(pictures), tgt[:, :-1]), tgt[:, 1:]))
    return batches


def held_out_scenes() -> tuple[list[Scene], list[Scene]]:
    """Return the scenes to score on and those to choose on, all different and none in the training."""
    distinct: dict[Scene, None] = {}
    for scene in draw(0, held_out=True):
        distinct[scene] = None
        if len(distinct) == SCORED + CHOSEN_ON:
            break
    scenes = [*distinct]
    return scenes[:SCORED], scenes[SCORED:]


def words_right(scene: Scene, text: str, language: str) -> list[bool]:
    """Whether each colour and shape of a scene, in order, is what a caption says; none if it says more or fewer."""
    wanted = _NAMES[language].findall(caption(scene, language))
    said = _NAMES[language].findall(text)
    return [len(said) == len(wanted) and one == other for one, other in zip(wanted, (*said, *wanted), strict=False)]


def accuracy(model: Captioner, scenes: Sequence[Scene]) -> dict[str, Any]:
    """Caption pictures greedily.

    Args:
        model: the captioner.
        scenes: what they show.

    Returns:
        For each language the share of scenes whose colour and shape words are all right ("scenes"), of those words
        ("words") and of captions that are right to the letter ("exact"), each with n and its 95 % interval; "shuffled"
        is "scenes" and "words" where each caption is of another scene's picture with as many objects.
    """
    found: dict[str, Any] = {}
    others = _shuffled(scenes)
    for language in LANGUAGES:
        texts = [told.text for told in model.translate_many(map(render, scenes), to=language)]
        right = [words_right(*each, language) for each in zip(scenes, texts, strict=True)]
        mixed = [words_right(scene, texts[other], language) for scene, other in zip(scenes, others, strict=True)]
        exact = [caption(scene, language) == text for scene, text in zip(scenes, texts, strict=True)]
        found[language] = _shares(right) | {"exact": share(sum(exact), len(exact)), "shuffled": _shares(mixed)}
    return found


def _shares(right: Sequence[Sequence[bool]]) -> dict[str, Any]:
    words = [one for scene in right for one in scene]
    return {"scenes": share(sum(map(all, right)), len(right)), "words": share(sum(words), len(words))}


def _shuffled(scenes: Sequence[Scene]) -> list[int]:
    """Return for each scene the index of the next one with as many objects."""
    return [
        next(
            j % len(scenes)
            for j in range(i + 1, i + 1 + len(scenes))
            if len(scenes[j % len(scenes)].objects) == len(scene.objects)
        )
        for i, scene in enumerate(scenes)
    ]


def alignment(model: Captioner, scored: Sequence[Scene], chosen_on: Sequence[Scene]) -> dict[str, Any]:
    """Measure how often the patch that a colour or shape word reads most shows its object; the true caption is forced.

    Args:
        model: the captioner.
        scored: scenes to score on.
        chosen_on: other scenes, on which the cross-attention that is scored is chosen: a head, the mean of a
            layer's heads, or of all, and the row: the one that predicts a word, or the one whose input it is.

    Returns:
        "reading", "layer" and "head" (from 0; None: the mean) of what was chosen; "on" the share of words, with n words
        and its interval (bootstrap over scenes), also "by" language and kind of word; the share whose patch is on
        another object ("other"); what is expected of any patch ("area") and of any patch with an object ("any object");
        and the share of "each" reading.
    """
    names, hits, _ = _read(model, chosen_on)
    best = names[int(hits["on"].mean(axis=0).argmax())]
    names, hits, about = _read(model, scored)
    at = names.index(best)
    on, scene = hits["on"][:, at], about["scene"]
    weights = counts(len(scored))  # (resample, scene)
    sums, sizes = (np.bincount(scene, each, minlength=len(scored)) for each in (on, np.ones(len(on))))
    low, high = percentiles((weights @ sums) / (weights @ sizes))
    reading, layer, head = best
    return {
        "reading": reading,
        "layer": layer,
        "head": head,
        "scenes": len(scored),
        "n": len(on),
        "on": float(on.mean()),
        "low": low,
        "high": high,
        "by": {kind: float(on[about["kind"] == kind].mean()) for kind in dict.fromkeys(about["kind"])},
        "other": float(hits["other"][:, at].mean()),
        "area": float(about["area"].mean()),
        "any object": float(about["any object"].mean()),
        "each": {" ".join(map(str, name)): float(hits["on"][:, i].mean()) for i, name in enumerate(names)},
    }


_Reading = tuple[str, int | None, int | None]  # row, layer and head; None: the mean


def _read(
    model: Captioner, scenes: Sequence[Scene]
) -> tuple[list[_Reading], dict[str, NDArray[np.float64]], dict[str, NDArray[Any]]]:
    """Return the readings; whether a word's patch is on its object or on another, (word, reading); and the words."""
    maps: dict[tuple[int | None, int | None], NDArray[np.float32]] = {}
    names: list[_Reading] = []
    hits: dict[str, list[NDArray[np.bool_]]] = {"on": [], "other": []}
    about: dict[str, list[Any]] = {"scene": [], "kind": [], "area": [], "any object": []}
    for language in LANGUAGES:
        texts = [caption(scene, language) for scene in scenes]
        traces = model.trace_many(map(render, scenes), texts, to=language, record="decoder.*.cross_attn.pattern")
        for number, (scene, text, trace) in enumerate(zip(scenes, texts, traces, strict=True)):
            maps = _maps(trace.stack("decoder.cross_attn"))
            names = [(row, *which) for row in READINGS for which in maps]
            shown = patches_of(scene, model.info.patch_size)  # (object, patch)
            tokens = model.tokenizer.spans(text)
            for i, words in enumerate(words_of(scene, language)):
                others = np.logical_or.reduce(shown) & ~shown[i]  # (patch,)
                for kind in JUDGED:
                    rows = _rows(words[kind], tokens)
                    read = [int(maps[layer, head][rows[row]].argmax()) for row, layer, head in names]
                    hits["on"].append(shown[i, read])
                    hits["other"].append(others[read])
                    for what, value in (
                        ("scene", number),
                        ("kind", f"{language} {kind}"),
                        ("area", shown[i].mean()),
                        ("any object", shown[i].sum() / shown.sum()),
                    ):
                        about[what].append(value)
    found = {what: np.stack(each).astype(np.float64) for what, each in hits.items()}
    return names, found, {what: np.array(values) for what, values in about.items()}


def _maps(pattern: NDArray[np.float32]) -> dict[tuple[int | None, int | None], NDArray[np.float32]]:
    """Return what may be read of patterns (layer, head, tgt, patch): each head, each layer's mean, the mean of all."""
    layers, heads = pattern.shape[:2]
    found: dict[tuple[int | None, int | None], NDArray[np.float32]] = {
        (layer, head): pattern[layer, head] for layer in range(layers) for head in range(heads)
    }
    found |= {(layer, None): pattern[layer].mean(axis=0) for layer in range(layers)}
    return found | {(None, None): pattern.mean(axis=(0, 1))}


def _rows(span: tuple[int, int], tokens: Sequence[tuple[int, int]]) -> dict[str, int]:
    """Return the row that predicts a word, its first token, and the one whose input is its last token."""
    inside = [i for i, (start, end) in enumerate(tokens) if span[0] <= start and end <= span[1]]
    return {"prediction": inside[0] + READINGS["prediction"], "input": inside[-1] + READINGS["input"]}


def figures(model: Captioner) -> dict[str, Any]:
    """Measure a captioner on held-out scenes: :func:`accuracy` and :func:`alignment`."""
    scored, chosen_on = held_out_scenes()
    return {"accuracy": accuracy(model, scored), "alignment": alignment(model, scored, chosen_on)}
