"""``visformer train``, ``visformer train-gpt``, ``visformer train-caption`` and ``visformer evaluate``."""

import hashlib
import json
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import replace
from functools import reduce
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

import click

from visformer.cli.running import PATH, Real, with_default
from visformer.system.files import sha256, write_whole
from visformer.system.shipped import shipped

if TYPE_CHECKING:
    from visformer.model.kinds import Model
    from visformer.model.tokenizer import Tokenizer
    from visformer.training.data import Pair
    from visformer.training.mixture import Mixture
    from visformer.training.train import TrainingPlan

_FOLDER = click.Path(path_type=Path, file_okay=False)
_FROM_0, _FROM_1 = click.IntRange(min=0), click.IntRange(min=1)
_EPOCH = click.IntRange(min=10)  # each kind of pair has its share
_VOCAB = click.IntRange(min=355)  # special tokens, bytes and ASCII characters, which every tokenizer has
_DROPOUT, _RATE = Real(0, 1, max_open=True), Real(min=0, min_open=True)

_HEADS = 8
"""Heads of a translator's layers."""

_RESUMES = "Resumes if the folder holds a run with the same settings."


def _supplement(_context: click.Context, _option: click.Parameter, given: Path | None) -> Path:
    return given or shipped("supplement") or Path("supplement")


_SUPPLEMENT = click.option(
    "--supplement",
    type=_FOLDER,
    callback=_supplement,
    help="Names, grammar and judged sentences; by default those that come with visformer.",
)
_FILES = (
    click.option("--pairs", "pairs_file", type=PATH, required=True, help="TSV: English, Chinese."),
    click.option("--valid", "valid_file", type=PATH, required=True, help="TSV; one half gives the held-out loss."),
    _SUPPLEMENT,
)
_RUN = (
    with_default("--keep-moments", type=_FROM_0, default=0, help="Weights from so many moments on the way."),
    with_default("--seed", type=click.IntRange(0, 2**31 - 1), default=1),
    click.option("--autocast/--no-autocast", default=None, help="bf16; by default where the CPU computes with it."),
)


def _shared(options: Iterable[Callable[..., Any]]) -> Callable[..., Any]:
    """Add options that both kinds of training have."""
    return lambda command: reduce(lambda done, option: option(done), reversed([*options]), command)


@click.command()
@_shared(_FILES)
@with_default("--out", "folder", type=_FOLDER, default=Path("runs/en-zh"), help=_RESUMES)
@with_default("--epochs", type=_FROM_1, default=115)
@with_default("--epoch-pairs", type=_EPOCH, default=24_000, help="The state is written after each epoch.")
@with_default("--vocab", "vocab_size", type=_VOCAB, default=11_000)
@with_default("--d-model", type=_FROM_1, default=256)
@with_default("--layers", type=_FROM_1, default=3)
@with_default("--dropout", type=_DROPOUT, default=0.2)
@with_default("--learning-rate", type=_RATE, default=2e-3)
@with_default("--batch-tokens", type=_FROM_1, default=12_000)
@click.option("--start", help="Begin with this model's weights and tokenizer, a bundled one or a checkpoint folder.")
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
    start: str | None,
    **plan: Any,
) -> None:
    """Train a translator between English and Chinese, in both directions with one model.

    What an epoch is made of is a table in visformer/training/mixture.py; a run that begins with a trained model has
    another one, more of what people type first.

    \b
    Example:
      visformer train --pairs train.tsv --valid valid.tsv --out runs/en-zh
    """
    from visformer.model.checkpoints import save_checkpoint
    from visformer.model.config import TransformerConfig
    from visformer.training.data import Batch, pair_batches
    from visformer.training.mixture import CONTINUED, SCHEDULE
    from visformer.training.train import train

    _require_divisor(d_model, _HEADS)
    known = _known(start, folder)
    mixture, halves, schedule, tokenizer = _begin(pairs_file, valid_file, supplement, folder, vocab_size, plan)
    config = TransformerConfig(
        src_vocab=len(tokenizer),
        tgt_vocab=len(tokenizer),
        d_model=d_model,
        n_heads=_HEADS,
        n_encoder_layers=layers,
        n_decoder_layers=layers,
        d_ff=4 * d_model,
        dropout=dropout,
        tie_embeddings=True,
    )
    if known is not None and replace(known.config, dropout=dropout) != config:
        raise click.ClickException(f"{start} has other sizes than --d-model {d_model} --layers {layers}: give its own.")
    stages = SCHEDULE if known is None else CONTINUED

    def epoch(number: int) -> list[Batch]:
        pairs, bpe_dropout = mixture.epoch(
            number, of=schedule.epochs, size=epoch_pairs, seed=schedule.seed, schedule=stages
        )
        seed = schedule.seed * 100_000 + number
        return pair_batches(tokenizer, pairs, tokens=schedule.batch_tokens, seed=seed, bpe_dropout=bpe_dropout)

    valid = pair_batches(tokenizer, halves[0], tokens=6000)
    with _resumable(folder):
        state = known.state_dict() if known is not None else None
        model = train(schedule, config, epoch_batches=epoch, valid=valid, folder=folder, start=state)
    save_checkpoint(folder / "checkpoint", model, tokenizer)
    click.echo(f"Written to {folder / 'checkpoint'}")


def _known(start: str | None, folder: Path) -> "Model | None":
    """Return the model that a run begins with, and put its tokenizer where the run looks for one; None: none."""
    if start is None:
        return None
    from visformer.adapters.checkpoints import folder_of
    from visformer.model.checkpoints import load_checkpoint

    model, tokenizer = load_checkpoint(folder_of(start))
    folder.mkdir(parents=True, exist_ok=True)
    if not (folder / "tokenizer.json").exists():
        tokenizer.save(folder / "tokenizer.json")
    return model


@click.command()
@_shared(_FILES)
@with_default("--out", "folder", type=_FOLDER, default=Path("runs/mini-gpt"), help=_RESUMES)
@with_default("--epochs", type=_FROM_1, default=40)
@with_default("--epoch-pairs", type=_EPOCH, default=12_000, help="The state is written after each epoch.")
@with_default("--vocab", "vocab_size", type=_VOCAB, default=4_000)
@with_default("--d-model", type=_FROM_1, default=192)
@with_default("--layers", type=_FROM_1, default=4)
@with_default("--heads", type=_FROM_1, default=6)
@with_default("--context", type=click.IntRange(72), default=128, help="Tokens that it reads at most.")
@with_default("--dropout", type=_DROPOUT, default=0.1)
@with_default("--learning-rate", type=_RATE, default=2e-3)
@with_default("--batch-tokens", type=_FROM_1, default=4096)
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
    _require_divisor(d_model, heads)
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
    with _resumable(folder):
        model = train(schedule, config, epoch_batches=epoch, valid=valid, folder=folder, measure=induction)
    save_checkpoint(folder / "checkpoint", model, tokenizer)
    told = json.dumps(figures(model, tokenizer, mixture, halves[1], seed=schedule.seed), indent=2)
    write_whole(folder / "checkpoint" / "evaluation.json", told + "\n")
    click.echo(f"{told}\nWritten to {folder / 'checkpoint'}")


@click.command()
@with_default("--out", "folder", type=_FOLDER, default=Path("runs/mini-caption"), help=_RESUMES)
@with_default("--epochs", type=_FROM_1, default=12)
@with_default("--epoch-batches", type=_FROM_1, default=100, help="The state is written after each epoch.")
@with_default("--batch-scenes", type=_FROM_1, default=64)
@with_default("--patch-size", type=click.Choice(["4", "8"]), default="4", help="Side of a patch, in pixels of 32.")
@with_default("--d-model", type=_FROM_1, default=96)
@with_default("--layers", type=_FROM_1, default=2)
@with_default("--heads", type=_FROM_1, default=4)
@with_default("--dropout", type=_DROPOUT, default=0.0)
@with_default("--learning-rate", type=_RATE, default=3e-3)
@_shared(_RUN)
def train_caption(
    folder: Path,
    epoch_batches: int,
    batch_scenes: int,
    patch_size: str,
    d_model: int,
    layers: int,
    heads: int,
    dropout: float,
    **plan: Any,
) -> None:
    """Train a captioner, in English and Chinese, on scenes of coloured shapes that it draws itself.

    The curve follows the share of held-out scenes whose colours and shapes it names; checkpoint/evaluation.json has
    that share, and how often a word reads its object, with intervals and what chance would give.

    \b
    Example:
      visformer train-caption --out runs/mini-caption
    """
    from visformer.adapters.own import Captioner
    from visformer.model.checkpoints import load_checkpoint, save_checkpoint
    from visformer.model.config import VisionConfig
    from visformer.model.kinds import Model
    from visformer.model.tokenizer import Tokenizer
    from visformer.model.transformer import Transformer
    from visformer.scenes import SIZE
    from visformer.system.memory import keep_freed_memory
    from visformer.training.captions import accuracy, caption_batches, caption_tokenizer, figures, held_out_scenes
    from visformer.training.data import Batch
    from visformer.training.train import TrainingPlan, computes_in_bf16, train

    keep_freed_memory()
    _require_divisor(d_model, heads)
    if plan["autocast"] is None:
        plan["autocast"] = computes_in_bf16()
    _require_same(folder, _given(click.get_current_context(), **plan))
    schedule, tokenizer = TrainingPlan(**plan, label_smoothing=0.0), caption_tokenizer()
    config = VisionConfig(
        len(tokenizer),
        image_size=SIZE,
        patch_size=int(patch_size),
        d_model=d_model,
        n_heads=heads,
        n_encoder_layers=layers,
        n_decoder_layers=layers,
        d_ff=4 * d_model,
        dropout=dropout,
        max_len=48,
    )
    followed = held_out_scenes()[1][:100]

    def epoch(number: int) -> list[Batch]:
        seed = schedule.seed * 100_000 + number
        return caption_batches(tokenizer, epoch_batches, scenes=batch_scenes, seed=seed)

    def captioner(model: Model, tokenizer: Tokenizer) -> Captioner:
        return Captioner(cast(Transformer, model), tokenizer)

    def right(model: Model) -> dict[str, float]:
        found = accuracy(captioner(model, tokenizer), followed)
        return {f"right_{language}": each["scenes"]["share"] for language, each in found.items()}

    valid = caption_batches(tokenizer, 2, scenes=100, seed=1, held_out=True)
    with _resumable(folder):
        model = train(schedule, config, epoch_batches=epoch, valid=valid, folder=folder, measure=right)
    save_checkpoint(folder / "checkpoint", model, tokenizer)
    told = json.dumps(figures(captioner(*load_checkpoint(folder / "checkpoint"))), indent=2)  # as float16
    write_whole(folder / "checkpoint" / "evaluation.json", told + "\n")
    click.echo(f"{told}\nWritten to {folder / 'checkpoint'}")


@contextmanager
def _resumable(folder: Path) -> Iterator[None]:
    """Tell whoever interrupts a training how it goes on."""
    try:
        yield
    except KeyboardInterrupt:
        if (folder / "state.safetensors").exists():
            click.echo("\nInterrupted. The same command resumes after the last whole epoch.", err=True)
        raise


def _require_divisor(d_model: int, heads: int) -> None:
    if d_model % heads:
        near = " or ".join(str(d_model // heads * heads + more) for more in (0, heads) if d_model // heads or more)
        message = f"{d_model} cannot be divided among {heads} heads: choose a multiple, such as {near}."
        raise click.BadParameter(message, param_hint="--d-model")


def _require_supplement(folder: Path) -> None:
    if not folder.is_dir():
        raise click.ClickException(
            f"There is no folder {folder} with the supplement, which comes with visformer: "
            "give --supplement, or reinstall it (README.md)."
        )


def _begin(
    pairs_file: Path, valid_file: Path, supplement: Path, folder: Path, vocab_size: int, plan: dict[str, Any]
) -> "tuple[Mixture, tuple[list[Pair], list[Pair]], TrainingPlan, Tokenizer]":
    """Read the data; return it with the halves of the validation pairs, the hyperparameters and the tokenizer."""
    from visformer.system.memory import keep_freed_memory
    from visformer.training.data import SPLIT_SEED, read_pairs, split_pairs
    from visformer.training.mixture import Mixture
    from visformer.training.train import TrainingPlan, computes_in_bf16

    keep_freed_memory()
    _require_supplement(supplement)
    valid = read_pairs(valid_file)
    mixture = Mixture.load(pairs_file, supplement)
    click.echo(f"{len(mixture.corpus)} pairs; {mixture.left_out} are left out: translators are judged on them")
    _require_held_out(valid, valid_file, mixture)
    if plan["autocast"] is None:
        plan["autocast"] = computes_in_bf16()
    data = {"pairs_file": _pairs_named(mixture.corpus), "valid_file": _pairs_named(valid)}
    settings = _given(click.get_current_context(), **data, supplement=_tables_named(supplement), **plan)
    _require_same(folder, settings)
    schedule = TrainingPlan(**plan)
    tokenizer = _tokenizer(folder / "tokenizer.json", mixture, vocab_size, schedule.seed)
    _require_same(folder, settings | _tokenizer_named(folder))
    return mixture, split_pairs(valid, seed=SPLIT_SEED), schedule, tokenizer


def _require_held_out(valid: "list[Pair]", file: Path, mixture: "Mixture") -> None:
    """Refuse validation pairs that hold nothing out; tell how many are trained on."""
    if len(valid) < 2:
        raise click.ClickException(
            f"{file} has one pair: give at least two, since one half of them is kept for a test."
        )
    both = len({*valid} & {*mixture.corpus})
    if both == len({*valid}):
        raise click.ClickException(f"All pairs of {file} are trained on: give --valid pairs that are not in --pairs.")
    if both:
        click.echo(f"{both} pairs of {file} are trained on: the held-out loss is too low by them", err=True)


def _tokenizer(file: Path, mixture: "Mixture", vocab_size: int, seed: int) -> "Tokenizer":
    """The tokenizer of an interrupted run, or one that learns from what the model will."""
    import jieba

    from visformer.model.tokenizer import Tokenizer, jieba_words, training_words

    if not file.exists():
        jieba.setLogLevel("WARNING")
        texts, syllables = mixture.texts(seed=seed)
        words = syllables + [word for text in texts for word in training_words(text, jieba_words)]
        Tokenizer.train(words, vocab_size=vocab_size).save(file)
    tokenizer = Tokenizer.load(file)
    if len(tokenizer) > vocab_size:
        click.echo(f"{len(tokenizer)} tokens, more than --vocab {vocab_size}: one for each character of the data")
    return tokenizer


@click.command()
@with_default("--model", "name", default="en-zh", help="A bundled model or a checkpoint folder.")
@click.option("--pairs", "pairs_file", type=PATH, help="TSV: English, Chinese. BLEU and chrF.")
@click.option("--half/--all", default=False, help="Only the half of the pairs that training does not look at.")
@click.option("--seen", type=PATH, help="TSV trained on: scores also without pairs that say the same. With --pairs.")
@click.option("--against", metavar="MODEL", help="Another model, to compare BLEU with. With --pairs.")
@click.option("--names", is_flag=True, help="Exact match on the held-out names of the supplement.")
@click.option(
    "--judged", "judgement", is_flag=True, help="Everyday and first sentences, minimal pairs, and its confidence."
)
@click.option("--alignment", is_flag=True, help="Alignment error rate of the cross-attention heads.")
@_SUPPLEMENT
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
    if any(wanted[what] for what in ("seen", "names", "judgement", "alignment")):
        _require_supplement(wanted["supplement"])
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


# The settings of a run, in its folder: it is resumed with the same ones, or not at all --------------------------------

_OF_THE_TOKENIZER = ("--pairs", "--supplement", "--vocab", "--seed")
"""Settings that a tokenizer is learned with."""


def _pairs_named(pairs: "Iterable[Pair]") -> str:
    """Name sentence pairs by a digest; not their file, which may be a pipe."""
    return _digest("".join(f"{pair.en}\t{pair.zh}\n" for pair in pairs))


def _tables_named(folder: Path) -> str:
    """Name the tables in a folder by a digest."""
    tables = sorted(folder.rglob("*.tsv"))
    return _digest("".join(f"{sha256(table)}  {table.relative_to(folder).as_posix()}\n" for table in tables))


def _tokenizer_named(folder: Path) -> dict[str, str]:
    """Name the tokenizer in the folder of a run by a digest, as one more setting: another may have been put there."""
    return {"tokenizer.json": _digest((folder / "tokenizer.json").read_text(encoding="utf-8"))}


def _digest(text: str) -> str:
    return f"data with sha256 {hashlib.sha256(text.encode()).hexdigest()[:12]}"


def _given(context: click.Context, **computed: Any) -> dict[str, Any]:
    """Return what a command trains with, by option; ``computed`` instead of what is given, except the folder."""
    named = {str(option.name): option.opts[0] for option in context.command.params if option.name != "folder"}
    return {flag: computed.get(name, context.params.get(name)) for name, flag in named.items()}


def _require_same(folder: Path, settings: Mapping[str, Any]) -> None:
    """Keep the settings of a new run, and refuse others for a run that has a state.

    Raises:
        ClickException: the message names each setting that differs, with both values.
    """
    kept = _settings_of(folder / "settings.json")
    names = [name for name in settings if kept is None or kept.get(name, "not set") != settings[name]]
    if not names:
        return
    if (folder / "state.safetensors").exists():
        if kept is None:
            raise click.ClickException(
                f"The run in {folder} cannot be resumed without its settings.json, which is missing or damaged: "
                "give another --out."
            )
        raise click.ClickException(
            f"{folder} holds a run with other settings: "
            + "; ".join(f"{name} was {_spelled(kept, name)} and is {_spelled(settings, name)}" for name in names)
            + ". Give the old ones to resume it, or another --out."
        )
    folder.mkdir(parents=True, exist_ok=True)
    if kept is not None and not {*_OF_THE_TOKENIZER}.isdisjoint(names):  # without settings it was put there to be used
        (folder / "tokenizer.json").unlink(missing_ok=True)
    write_whole(folder / "settings.json", json.dumps(settings, indent=2) + "\n")


def _settings_of(path: Path) -> dict[str, Any] | None:
    """Read the settings of a run; None if there are none."""
    try:
        kept = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError, RecursionError):
        return None
    return kept if isinstance(kept, dict) else None


def _spelled(settings: Mapping[str, Any], name: str) -> str:
    value = settings.get(name, "not set")
    return {True: "on", False: "off"}[value] if isinstance(value, bool) else str(value)
