"""Copy a trained checkpoint into the package, with its curve, its moments, and what pages begin with or offer.

python -m scripts.bundle runs/en-zh valid.tsv, with what visformer evaluate --json printed as evaluation.json in its
checkpoint; python -m scripts.model_card then writes the figures into the card.
python -m scripts.bundle runs/mini-gpt valid.tsv mini-gpt copies a decoder-only model, and with --packed, without its
moments, a second seed in about five bits a weight; python -m scripts.bundle runs/mini-caption mini-caption a captioner.
"""

import json
import shutil
import sys
from collections.abc import Sequence
from pathlib import Path

import torch
from safetensors import safe_open

import visformer as vf
from scripts import choose_silences
from scripts.choose_heads import start
from visformer.adapters.checkpoints import CAPTIONER, history
from visformer.adapters.own import Translator
from visformer.model.checkpoints import FOLDER, load_checkpoint, pack
from visformer.model.kinds import Model
from visformer.model.masks import PAD_ID
from visformer.model.tokenizer import Tokenizer
from visformer.model.transformer import Transformer
from visformer.pictures.examples import EXAMPLES
from visformer.pictures.map import RECORD
from visformer.system.files import write_sums
from visformer.training.contexts import sentence_batches, sentence_rows
from visformer.training.data import SPLIT_SEED, Batch, Pair, pair_batches, read_pairs, split_pairs
from visformer.training.evaluation.alignment import align, read_aligned
from visformer.training.evaluation.bleu import outputs, scores
from visformer.training.recurring import best_score
from visformer.training.train import validation_loss

MOST_BYTES = {"en-zh": 45_000_000, "mini-gpt": 18_000_000}
MOST_DIVERGENCE = 0.005  # nats a token
ALIGNED = Path(__file__).resolve().parents[1] / "supplement" / "alignment.tsv"


def bundle(run: Path, valid_file: Path, name: str = "en-zh", *, packed: bool = False) -> None:
    """Copy ``run``'s checkpoint to the bundled model ``name``; the model card is not changed."""
    source, target = run / "checkpoint", copy(run, name)
    looked_at, held_out = split_pairs(read_pairs(valid_file), seed=SPLIT_SEED)
    if packed:
        print(f"{pack_checkpoint(target, held_out):.4f} nats a token from the trained weights")
    else:
        bundle_moments(source, target, looked_at, held_out, most_bytes=MOST_BYTES[name])
    model = vf.load(target)
    if isinstance(model, Translator):
        model.trace(EXAMPLES[0], record=model.available(RECORD)).save(target / "example.safetensors")
        (target / "start.json").write_text(json.dumps(start(model)) + "\n", encoding="utf-8")
        choose_silences.write(model, target)
    write_sums(target)


def copy(run: Path, name: str) -> Path:
    """Copy the files of ``run``'s checkpoint to the bundled model ``name``, and return that folder."""
    target = FOLDER / name
    target.mkdir(exist_ok=True)
    for file in ("model.safetensors", "tokenizer.json", "curve.csv", "evaluation.json"):
        shutil.copyfile(run / "checkpoint" / file, target / file)  # not the permissions: everybody may read the weights
    write_sums(target)
    return target


def pack_checkpoint(folder: Path, held_out: Sequence[Pair]) -> float:
    """Replace model.safetensors by model.z; returns the divergence of what is shipped, in nats a token.

    Raises:
        ValueError: it differs too much.
    """
    path = folder / "model.safetensors"
    trained, tokenizer = load_checkpoint(folder)
    with safe_open(path, framework="pt") as file:
        (folder / "model.z").write_bytes(pack(dict(trained.named_parameters()), file.metadata()))
    path.unlink()
    shipped, _ = load_checkpoint(folder)
    differs = divergence(trained, shipped, batches_for(trained, tokenizer, held_out))
    if differs > MOST_DIVERGENCE:
        raise ValueError(f"{path} differs by {differs:.4f} nats a token once it is packed: more than may be shipped")
    return differs


def bundle_moments(
    source: Path, target: Path, looked_at: Sequence[Pair], held_out: Sequence[Pair], *, most_bytes: int
) -> None:
    """Pack the moments of the checkpoint ``source`` beside its copy ``target``, with the figures of what is shipped.

    Args:
        source: the checkpoint that was trained.
        target: its copy; gets ``moments/``.
        looked_at: the half of the validation pairs that gives the loss, as in training.
        held_out: the other half, which gives the divergence of the packed weights, and a translator's BLEU.
        most_bytes: of all moments together.

    Raises:
        ValueError: the packed weights differ too much from the trained ones, or are too large.
    """
    folder = target / "moments"
    shutil.rmtree(folder, ignore_errors=True)  # of another training
    folder.mkdir()
    moments = history(str(source))
    rows = []
    for moment in moments:
        module, tokenizer = load_checkpoint(source, weights=moment.weights)
        row = dict(moment.figures)
        if isinstance(moment.weights, Path):
            packed = folder / moment.weights.with_suffix(".z").name
            packed.write_bytes(pack(dict(module.named_parameters())))
            trained, (module, _) = module, load_checkpoint(target, weights=packed)
            row["kl"] = divergence(trained, module, batches_for(module, tokenizer, held_out))
        row["loss"] = validation_loss(module, batches_for(module, tokenizer, looked_at))
        if isinstance(module, Transformer):
            model = Translator(module, tokenizer)
            told = scores(held_out, outputs(model, held_out))
            row |= {"bleu_en_zh": told["en-zh"]["bleu"], "bleu_zh_en": told["zh-en"]["bleu"], **alignment_errors(model)}
        else:
            row["induction"] = best_score(module, tokenizer)
        rows.append(row)
        print(row, flush=True)
    told = {"seed": moments[0].weights, "moments": rows}
    (folder / "moments.json").write_text(json.dumps(told, indent=2) + "\n", encoding="utf-8")
    nbytes = sum(path.stat().st_size for path in folder.iterdir())
    most = max((row["kl"] for row in rows if "kl" in row), default=0.0)
    if nbytes > most_bytes or most > MOST_DIVERGENCE:
        raise ValueError(f"{nbytes:,} bytes that differ by {most:.4f} nats a token: more than may be shipped")


def batches_for(module: Model, tokenizer: Tokenizer, pairs: Sequence[Pair]) -> list[Batch]:
    """Batches of pairs for a translator, or of their sentences for a decoder-only model."""
    if isinstance(module, Transformer):
        return pair_batches(tokenizer, pairs, tokens=6000)
    return sentence_batches(sentence_rows(tokenizer, [text for pair in pairs for text in (pair.en, pair.zh)]))


def divergence(trained: Model, packed: Model, batches: Sequence[Batch]) -> float:
    """Mean KL divergence of the packed model's predictions from the trained one's, in nats a token, teacher-forced."""
    total, count = 0.0, 0
    with torch.inference_mode():
        for batch in batches:
            real = batch.targets != PAD_ID
            p, q = (model(*batch.inputs)[real].log_softmax(dim=-1) for model in (trained, packed))  # (token, vocab)
            total += float((p.exp() * (p - q)).sum())
            count += int(real.sum())
    return total / count


def alignment_errors(model: Translator) -> dict[str, float]:
    """The alignment error rate of each direction, on the pairs aligned by hand, of rows whose input is the word."""
    gold = read_aligned(ALIGNED)
    found = {"en_zh": align(model, gold, to="zh"), "zh_en": align(model, [pair.reversed() for pair in gold], to="en")}
    return {f"aer_{way}": each["input"]["aer"] for way, each in found.items()}


if __name__ == "__main__":
    run, valid, *name = (argument for argument in sys.argv[1:] if argument != "--packed")
    if valid == CAPTIONER:
        copy(Path(run), CAPTIONER)
    else:
        bundle(Path(run), Path(valid), *name, packed="--packed" in sys.argv)
