"""Copy a trained checkpoint into the package, with its curve, its moments and the Trace that the first page opens with.

python scripts/bundle.py runs/en-zh valid.tsv, with what visformer evaluate --json printed as evaluation.json in its
checkpoint; python -m scripts.model_card then writes the figures into the card.
"""

import json
import shutil
import sys
from collections.abc import Sequence
from pathlib import Path

import torch

import visformer as vf
from visformer.adapters.history import history
from visformer.adapters.own import Translator
from visformer.app.session.examples import EXAMPLES
from visformer.model.checkpoints import FOLDER, load_checkpoint
from visformer.model.moments import pack
from visformer.model.transformer import PAD_ID, Transformer
from visformer.system.checksums import write_sums
from visformer.training.data import SPLIT_SEED, Example, Pair, batches, read_pairs, split_pairs, to_examples
from visformer.training.evaluation.alignment import align, read_aligned
from visformer.training.evaluation.bleu import outputs, scores
from visformer.training.train import validation_loss

MOST_BYTES = 45_000_000
MOST_DIVERGENCE = 0.005  # nats a token
ALIGNED = Path(__file__).resolve().parents[1] / "supplement" / "alignment.tsv"


def bundle(run: Path, valid_file: Path, name: str = "en-zh") -> None:
    """Copy ``run``'s checkpoint to the bundled model ``name``; the model card is not changed."""
    source, target = run / "checkpoint", FOLDER / name
    target.mkdir(exist_ok=True)
    for file in ("model.safetensors", "tokenizer.json", "curve.csv", "evaluation.json"):
        shutil.copyfile(source / file, target / file)  # not the permissions: everybody may read the weights
    bundle_moments(source, target, *split_pairs(read_pairs(valid_file), seed=SPLIT_SEED))
    vf.load(name).trace(EXAMPLES[0]).save(target / "example.safetensors")
    write_sums(target)


def bundle_moments(source: Path, target: Path, looked_at: Sequence[Pair], held_out: Sequence[Pair]) -> None:
    """Pack the moments of the checkpoint ``source`` beside its copy ``target``, with the figures of what is shipped.

    Args:
        source: the checkpoint that was trained.
        target: its copy; gets ``moments/``.
        looked_at: the half of the validation pairs that gives the loss, as in training.
        held_out: the other half, which gives BLEU and the divergence of the packed weights.

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
            row["kl"] = divergence(trained, module, to_examples(tokenizer, held_out))
        model = Translator(module, tokenizer)
        told = scores(held_out, outputs(model, held_out))
        row["loss"] = validation_loss(module, to_examples(tokenizer, looked_at))
        row |= {"bleu_en_zh": told["en-zh"]["bleu"], "bleu_zh_en": told["zh-en"]["bleu"], **alignment_errors(model)}
        rows.append(row)
        print(row, flush=True)
    told = {"seed": moments[0].weights, "moments": rows}
    (folder / "moments.json").write_text(json.dumps(told, indent=2) + "\n", encoding="utf-8")
    nbytes = sum(path.stat().st_size for path in folder.iterdir())
    most = max((row["kl"] for row in rows if "kl" in row), default=0.0)
    if nbytes > MOST_BYTES or most > MOST_DIVERGENCE:
        raise ValueError(f"{nbytes:,} bytes that differ by {most:.4f} nats a token: more than may be shipped")


def divergence(trained: Transformer, packed: Transformer, examples: Sequence[Example]) -> float:
    """Mean KL divergence of the packed model's predictions from the trained one's, in nats a token, teacher-forced."""
    total, count = 0.0, 0
    with torch.inference_mode():
        for src, tgt in batches(examples, tokens=6000, seed=None):
            real = tgt[:, 1:] != PAD_ID
            p, q = (model(src, tgt[:, :-1])[real].log_softmax(dim=-1) for model in (trained, packed))  # (token, vocab)
            total += float((p.exp() * (p - q)).sum())
            count += int(real.sum())
    return total / count


def alignment_errors(model: Translator) -> dict[str, float]:
    """The alignment error rate of each direction, on the pairs aligned by hand, of rows whose input is the word."""
    gold = read_aligned(ALIGNED)
    found = {"en_zh": align(model, gold, to="zh"), "zh_en": align(model, [pair.reversed() for pair in gold], to="en")}
    return {f"aer_{way}": each["input"]["aer"] for way, each in found.items()}


if __name__ == "__main__":
    bundle(Path(sys.argv[1]), Path(sys.argv[2]))
