"""``visformer train`` and ``visformer evaluate``."""

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import click

from visformer.cli.running import PATH, with_default


@click.command()
@click.option("--pairs", "pairs_file", type=PATH, required=True, help="TSV: English, Chinese.")
@click.option("--valid", "valid_file", type=PATH, required=True, help="TSV; one half decides when to stop.")
@with_default("--supplement", "supplement_folder", type=PATH, default=Path("supplement"))
@with_default("--out", "folder", type=PATH, default=Path("runs/en-zh"), help="Resumed if it exists.")
@click.option("--init", type=PATH, help="Start from this checkpoint's weights, sizes and tokenizer.")
@with_default("--epochs", default=18)
@with_default("--vocab", "vocab_size", default=8000)
@with_default("--d-model", default=256)
@with_default("--layers", default=3)
@with_default("--dropout", default=0.25)
@with_default("--bpe-dropout", default=0.1, help="Set it to 0 for the last epochs: tokens as in use.")
@with_default("--learning-rate", default=2e-3)
@with_default("--batch-tokens", default=6000)
@with_default("--supplement-pairs", default=3000, help="Generated afresh for each epoch.")
@with_default("--seed", default=1)
@with_default("--autocast/--no-autocast", default=False, help="bf16; faster only where the CPU has it.")
def train(
    pairs_file: Path,
    valid_file: Path,
    supplement_folder: Path,
    folder: Path,
    init: Path | None,
    vocab_size: int,
    d_model: int,
    layers: int,
    dropout: float,
    **schedule: Any,
) -> None:
    """Train a translator between English and Chinese, in both directions with one model.

    \b
    Example:
      visformer train --pairs train.tsv --valid valid.tsv --out runs/en-zh
    """
    import jieba

    from visformer.model.checkpoints import load_checkpoint, save_checkpoint
    from visformer.model.config import TransformerConfig
    from visformer.model.tokenizer import Tokenizer, jieba_words, training_words
    from visformer.system.memory import keep_freed_memory
    from visformer.training import supplement
    from visformer.training.data import SPLIT_SEED, Pair, read_pairs, split_pairs
    from visformer.training.train import TrainingPlan, train

    keep_freed_memory()
    pairs = read_pairs(pairs_file)
    stop_pairs, _ = split_pairs(read_pairs(valid_file), seed=SPLIT_SEED)
    lists = supplement.load(supplement_folder)
    plan = TrainingPlan(**schedule)

    def more(epoch: int) -> list[Pair]:
        return [Pair(*p) for p in supplement.sample(lists, plan.supplement_pairs, seed=plan.seed * 1000 + epoch)]

    folder.mkdir(parents=True, exist_ok=True)
    tokenizer_file = folder / "tokenizer.json"
    initial = None
    if init is not None:
        initial, own = load_checkpoint(init)
        own.save(tokenizer_file)
    elif not tokenizer_file.exists():
        jieba.setLogLevel("WARNING")
        texts, syllables = supplement.vocabulary(lists)
        texts += [text for pair in pairs for text in (pair.en, pair.zh)]
        words = syllables + [word for text in texts for word in training_words(text, jieba_words)]
        Tokenizer.train(words, vocab_size=vocab_size).save(tokenizer_file)
    tokenizer = Tokenizer.load(tokenizer_file)
    sizes = TransformerConfig(
        src_vocab=len(tokenizer),
        tgt_vocab=len(tokenizer),
        d_model=d_model,
        n_heads=8,
        n_encoder_layers=layers,
        n_decoder_layers=layers,
        d_ff=4 * d_model,
        dropout=dropout,
        tie_embeddings=True,
    )
    config = sizes if initial is None else replace(initial.config, dropout=dropout)
    data: dict[str, Any] = {"pairs": pairs, "stop_pairs": stop_pairs, "supplement": more}
    model = train(plan, config, tokenizer, **data, folder=folder, initial=initial)
    save_checkpoint(folder / "checkpoint", model, tokenizer)
    click.echo(f"Written to {folder / 'checkpoint'}")


@click.command()
@with_default("--model", "name", default="en-zh", help="A bundled model or a checkpoint folder.")
@click.option("--pairs", "pairs_file", type=PATH, help="TSV: English, Chinese. Prints BLEU.")
@click.option("--half/--all", default=False, help="Only the half of the pairs that never stopped a training run.")
@click.option("--names", is_flag=True, help="Exact match on the held-out names of the supplement.")
@click.option("--alignment", is_flag=True, help="Alignment error rate of the cross-attention heads.")
@with_default("--supplement", "folder", type=PATH, default=Path("supplement"))
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
def evaluate(
    name: str, pairs_file: Path | None, half: bool, names: bool, alignment: bool, folder: Path, as_json: bool
) -> None:
    """Measure a translator with greedy decoding.

    \b
    Examples:
      visformer evaluate --pairs test.tsv
      visformer evaluate --names --alignment --json
    """
    import json

    from visformer.training.evaluation import report

    if not (pairs_file or names or alignment):
        raise click.UsageError("Nothing to evaluate: give --pairs FILE, --names or --alignment.")
    result = report(name, pairs_file=pairs_file, half=half, names=names, alignment=alignment, folder=folder)
    click.echo(json.dumps(result, ensure_ascii=False, indent=2) if as_json else "\n".join(_lines(result)))


def _lines(value: object, *, depth: int = 0) -> Iterator[str]:
    """Format nested results, indented."""
    pad = "  " * depth
    for key, inner in value.items() if isinstance(value, dict) else ():
        if isinstance(inner, dict):
            yield f"{pad}{key}:"
            yield from _lines(inner, depth=depth + 1)
        else:
            yield f"{pad}{key}: {inner:.4g}" if isinstance(inner, float) else f"{pad}{key}: {inner}"
