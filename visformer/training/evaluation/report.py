"""What ``visformer evaluate`` prints; a model card has its figures from it."""

from dataclasses import asdict
from pathlib import Path
from typing import Any

from visformer.adapters.load import load
from visformer.adapters.own import Translator
from visformer.errors import N_, VisformerError
from visformer.training import grammar
from visformer.training.data import SPLIT_SEED, read_pairs, split_pairs
from visformer.training.evaluation.alignment import align, from_grammar, read_aligned
from visformer.training.evaluation.judged import (
    calibration,
    first_judged,
    held_out_names,
    judged,
    judged_report,
    names_report,
)


def report(
    name: str,
    *,
    supplement: Path,
    pairs_file: Path | None,
    half: bool,
    seen: Path | None,
    against: str | None,
    names: bool,
    judgement: bool,
    alignment: bool,
) -> dict[str, Any]:
    """Return what ``visformer evaluate`` prints, as JSON values; its ``--help`` says what each argument asks for.

    Raises:
        VisformerError: a model is not one of visformer's own Transformers.
    """
    model = _translator(name)
    sizes = {key: value for key, value in asdict(model.module.config).items() if key != "dropout"}
    parameters = sum(weight.numel() for weight in model.module.parameters())
    result: dict[str, Any] = {"model": {"name": model.info.name, "parameters": parameters, **sizes}}
    if pairs_file is not None:
        result["bleu"] = _bleu(model, supplement, pairs_file, half=half, seen=seen, against=against)
    if names:
        result["names"] = names_report(held_out_names(model, supplement))
    if judgement:
        judgements, firsts = judged(model, supplement), first_judged(model, supplement)
        result |= {"judged": judged_report(judgements), "first sentences": judged_report(firsts)}
        result["calibration"] = calibration([*judgements, *firsts])
    if alignment:
        golds = {"by hand": read_aligned(supplement / "alignment.tsv"), "grammar": from_grammar(supplement / "grammar")}
        result["alignment"] = {
            kind: {
                "en-zh": align(model, gold, to="zh"),
                "zh-en": align(model, [pair.reversed() for pair in gold], to="en"),
            }
            for kind, gold in golds.items()
        }
    return result


def _translator(name: str) -> Translator:
    model = load(name)
    if not isinstance(model, Translator):
        raise VisformerError(
            N_("{name} is no translator of visformer's: only those, bundled or trained, can be evaluated."), name=name
        )
    return model


def _bleu(
    model: Translator, supplement: Path, pairs_file: Path, *, half: bool, seen: Path | None, against: str | None
) -> dict[str, Any]:
    """Score all pairs and, if it is known what was seen in training, the others among them."""
    from visformer.training.evaluation import bleu  # imports sacrebleu, which only training installs

    pairs = read_pairs(pairs_file)
    if half:
        _, pairs = split_pairs(pairs, seed=SPLIT_SEED)
    ours = bleu.outputs(model, pairs)
    theirs = None if against is None else bleu.outputs(_translator(against), pairs)
    result: dict[str, Any] = {"all": bleu.scores(pairs, ours, theirs)}
    if seen is not None:
        overlaps = bleu.overlaps(pairs, read_pairs(seen), grammar.load(supplement / "grammar").refusals)
        result["overlaps"] = {kind: overlaps.count(kind) for kind in ("equal", "content")}
        if unseen := [pair for pair, overlap in zip(pairs, overlaps, strict=True) if not overlap]:
            result["unseen"] = bleu.scores(unseen, ours, theirs)
    return result
