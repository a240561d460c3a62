"""``visformer train``, ``visformer train-gpt`` and ``visformer evaluate``."""

from collections.abc import Callable, Iterable, Iterator
from functools import reduce
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from visformer.cli.running import PATH, with_default

if TYPE_CHECKING:
    from visformer.model.tokenizer import Tokenizer
    from visformer.training.data import Pair
    from visformer.training.mixture import Mixture
    from visformer.training.train import TrainingPlan


_FILES = (
    click.option("--pairs", "pairs_file", type=PATH, required=True, help="TSV: English, Chinese."),
    click.option("--valid", "valid_file", type=PATH, required=True, help="TSV; one half gives the held-out loss."),
    with_default("--supplement", type=PATH, default=Path("supplement")),
)
_RUN = (
    with_default("--keep-moments", default=0, help="Weights from so many moments on the way."),
    with_default("--seed", default=1),
    click.option("--autocast/--no-autocast", default=None, help="bf16; by default where the CPU computes with it."),
)


def _shared(options: Iterable[Callable[..., Any]]) -> Callable[..., Any]:
    """Add options that both kinds of training have."""
    return lambda command: reduce(lambda done, option: option(done), reversed([*options]), command)


@click.command()
@_shared(_FILES)
@with_default("--out", "folder", type=PATH, default=Path("runs/en-zh"), help="Resumes if the folder exists.")
@with_default("--epochs", default=75)
@with_default("--epoch-pairs", default=12_000, help="The state is written after each epoch.")
@with_default("--vocab", "vocab_size", default=11_000)
@with_default("--d-model", default=256)
@with_default("--layers", default=3)
@with_default("--dropout", default=0.25)
@with_default("--learning-rate", default=2e-3)
@with_default("--batch-tokens", default=6000)
@_shared(_RUN)
def train(
    pairs_file: Path,
    valid_file: Path,
    supplement: Path,
    folder: Path,
    epoch_pairs: int,
    vocab_size: int,
    d_model: int,
    layers: int,
    dropout: float,
    **plan: Any,
) -> None:
    """Train a translator between English and Chinese, in both directions with one model.

    What an epoch is made of is a table in visformer/training/mixture.py.

    \b
    Example:
      visformer train --pairs train.tsv --valid valid.tsv --out runs/en-zh
    """
    from visformer.model.checkpoints import save_checkpoint
    from visformer.model.config import TransformerConfig
    from visformer.training.data import Batch, pair_batches
    from visformer.training.train import train

    mixture, halves, schedule, tokenizer = _begin(pairs_file, valid_file, supplement, folder, vocab_size, plan)
    config = TransformerConfig(
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

    def epoch(number: int) -> list[Batch]:
        pairs, bpe_dropout = mixture.epoch(number, of=schedule.epochs, size=epoch_pairs, seed=schedule.seed)
        seed = schedule.seed * 100_000 + number
        return pair_batches(tokenizer, pairs, tokens=schedule.batch_tokens, seed=seed, bpe_dropout=bpe_dropout)

    valid = pair_batches(tokenizer, halves[0], tokens=6000)
    model = train(schedule, config, epoch_batches=epoch, valid=valid, folder=folder)
    save_checkpoint(folder / "checkpoint", model, tokenizer)
    click.echo(f"Written to {folder / 'checkpoint'}")


@click.command()
@_shared(_FILES)
@with_default("--out", "folder", type=PATH, default=Path("runs/mini-gpt"), help="Resumes if the folder exists.")
@with_default("--epochs", default=40)
@with_default("--epoch-pairs", default=12_000, help="The state is written after each epoch.")
@with_default("--vocab", "vocab_size", default=4_000)
@with_default("--d-model", default=192)
@with_default("--layers", default=4)
@with_default("--heads", default=6)
@with_default("--context", type=click.IntRange(72), default=128, help="Tokens that it reads at most.")
@with_default("--dropout", default=0.1)
@with_default("--learning-rate", default=2e-3)
@with_default("--batch-tokens", default=4096)
@_shared(_RUN)
def train_gpt(
    pairs_file: Path,
    valid_file: Path,
    supplement: Path,
    folder: Path,
    epoch_pairs: int,
    vocab_size: int,
    d_model: int,
    layers: int,
    heads: int,
    context: int,
    dropout: float,
    **plan: Any,
) -> None:
    """Train a decoder-only model on the sentences of both languages and on sequences that recur.

    The curve follows the best induction head; checkpoint/evaluation.json has its score and interval, and perplexity.

    \b
    Example:
      visformer train-gpt --pairs train.tsv --valid valid.tsv --out runs/mini-gpt
    """
    import json

    from visformer.model.checkpoints import save_checkpoint
    from visformer.model.config import GPTConfig
    from visformer.model.kinds import Model
    from visformer.system.files import write_whole
    from visformer.training.contexts import context_batches, figures, sentence_batches, sentence_rows
    from visformer.training.data import Batch
    from visformer.training.recurring import best_score
    from visformer.training.train import train

    plan["label_smoothing"] = 0.0  # it would raise the perplexity
    mixture, halves, schedule, tokenizer = _begin(pairs_file, valid_file, supplement, folder, vocab_size, plan)
    config = GPTConfig(
        len(tokenizer),
        d_model=d_model,
        n_heads=heads,
        n_layers=layers,
        d_ff=4 * d_model,
        dropout=dropout,
        max_len=context,
    )

    def epoch(number: int) -> list[Batch]:
        pairs, _ = mixture.epoch(number, of=schedule.epochs, size=epoch_pairs, seed=schedule.seed)
        seed = schedule.seed * 100_000 + number
        return context_batches(tokenizer, pairs, length=context, tokens=schedule.batch_tokens, seed=seed)

    def induction(model: Model) -> dict[str, float]:
        return {"induction": best_score(model, tokenizer)}

    valid = sentence_batches(sentence_rows(tokenizer, [text for pair in halves[0] for text in (pair.en, pair.zh)]))
    model = train(schedule, config, epoch_batches=epoch, valid=valid, folder=folder, measure=induction)
    save_checkpoint(folder / "checkpoint", model, tokenizer)
    told = json.dumps(figures(model, tokenizer, mixture, halves[1], seed=schedule.seed), indent=2)
    write_whole(folder / "checkpoint" / "evaluation.json", told + "\n")
    click.echo(f"{told}\nWritten to {folder / 'checkpoint'}")


def _begin(
    pairs_file: Path, valid_file: Path, supplement: Path, folder: Path, vocab_size: int, plan: dict[str, Any]
) -> "tuple[Mixture, tuple[list[Pair], list[Pair]], TrainingPlan, Tokenizer]":
    """Read the data; return it with the halves of the validation pairs, the hyperparameters and the tokenizer."""
    from visformer.system.memory import keep_freed_memory
    from visformer.training.data import SPLIT_SEED, read_pairs, split_pairs
    from visformer.training.mixture import Mixture
    from visformer.training.train import TrainingPlan, computes_in_bf16

    keep_freed_memory()
    halves = split_pairs(read_pairs(valid_file), seed=SPLIT_SEED)
    mixture = Mixture.load(pairs_file, supplement)
    click.echo(f"{len(mixture.corpus)} pairs; {mixture.left_out} are left out: translators are judged on them")
    folder.mkdir(parents=True, exist_ok=True)
    autocast = plan.pop("autocast")
    schedule = TrainingPlan(**plan, autocast=computes_in_bf16() if autocast is None else autocast)
    return mixture, halves, schedule, _tokenizer(folder / "tokenizer.json", mixture, vocab_size, schedule.seed)


def _tokenizer(file: Path, mixture: "Mixture", vocab_size: int, seed: int) -> "Tokenizer":
    """The tokenizer of an interrupted run, or one that learns from what the model will."""
    import jieba

    from visformer.model.tokenizer import Tokenizer, jieba_words, training_words

    if not file.exists():
        jieba.setLogLevel("WARNING")
        texts, syllables = mixture.texts(seed=seed)
        words = syllables + [word for text in texts for word in training_words(text, jieba_words)]
        Tokenizer.train(words, vocab_size=vocab_size).save(file)
    return Tokenizer.load(file)


@click.command()
@with_default("--model", "name", default="en-zh", help="A bundled model or a checkpoint folder.")
@click.option("--pairs", "pairs_file", type=PATH, help="TSV: English, Chinese. BLEU and chrF.")
@click.option("--half/--all", default=False, help="Only the half of the pairs that training does not look at.")
@click.option("--seen", type=PATH, help="TSV trained on: scores also without pairs that say the same. With --pairs.")
@click.option("--against", metavar="MODEL", help="Another model, to compare BLEU with. With --pairs.")
@click.option("--names", is_flag=True, help="Exact match on the held-out names of the supplement.")
@click.option("--judged", "judgement", is_flag=True, help="Everyday sentences, minimal pairs, and its confidence.")
@click.option("--alignment", is_flag=True, help="Alignment error rate of the cross-attention heads.")
@with_default("--supplement", "folder", type=PATH, default=Path("supplement"))
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
def evaluate(as_json: bool, **wanted: Any) -> None:
    """Measure a translator with greedy decoding.

    \b
    Examples:
      visformer evaluate --pairs test.tsv
      visformer evaluate --pairs test.tsv --seen train.tsv --against runs/before/checkpoint
      visformer evaluate --judged --names --alignment --json > evaluation.json
    """
    import json

    from visformer.training.evaluation.report import report

    if not any(wanted[what] for what in ("pairs_file", "names", "judgement", "alignment")):
        raise click.UsageError("Nothing to evaluate: give --pairs FILE, --names, --judged or --alignment.")
    for option in ("seen", "against"):
        if wanted[option] is not None and wanted["pairs_file"] is None:
            raise click.UsageError(f"--{option} makes no difference without --pairs FILE.")
    result = report(**wanted)
    click.echo(json.dumps(result, ensure_ascii=False, indent=2) if as_json else "\n".join(_lines(result)))


def _lines(value: object, *, depth: int = 0) -> Iterator[str]:
    """Format nested results, indented; the rows of a table by their numbers."""
    pad = "  " * depth
    rows = enumerate(value, start=1) if isinstance(value, list) else value.items() if isinstance(value, dict) else ()
    for key, inner in rows:
        if isinstance(inner, dict | list):
            yield f"{pad}{key}:"
            yield from _lines(inner, depth=depth + 1)
        else:
            yield f"{pad}{key}: {inner:.4g}" if isinstance(inner, float) else f"{pad}{key}: {inner}"
