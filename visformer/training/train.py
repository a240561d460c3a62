"""Train the translator: warm-up, label smoothing, BPE-dropout, early stopping, checkpoint averaging (section 5)."""

import csv
import json
import time
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path

import torch
from safetensors import safe_open
from safetensors.torch import load_file, save_file
from torch import Tensor, nn
from torch.autograd.function import FunctionCtx
from torch.nn import functional as F
from tqdm import tqdm

from visformer.errors import N_, CheckpointError
from visformer.model.config import TransformerConfig
from visformer.model.tokenizer import Tokenizer
from visformer.model.transformer import PAD_ID, Transformer, load_state
from visformer.system.files import whole
from visformer.training.data import Example, Pair, batches, to_examples
from visformer.training.optimizer import Muon


@dataclass(frozen=True, kw_only=True)
class TrainingPlan:
    """Hyperparameters. Rates are per optimiser step, probabilities in [0, 1), sizes in tokens (padding included)."""

    epochs: int = 18
    batch_tokens: int = 6000
    learning_rate: float = 2e-3
    warmup_steps: int = 150
    weight_decay: float = 0.05
    label_smoothing: float = 0.1
    bpe_dropout: float = 0.1
    supplement_pairs: int = 3000
    patience: int = 4
    average: int = 5
    autocast: bool = False
    seed: int = 1


@dataclass
class Progress:
    """The progress of a run; written beside the weights, so that the run can be resumed."""

    epoch: int = 0
    step: int = 0
    best_loss: float = float("inf")
    stale_epochs: int = 0
    curve: list[dict[str, float]] = field(default_factory=list)


def train(
    plan: TrainingPlan,
    config: TransformerConfig,
    tokenizer: Tokenizer,
    *,
    pairs: Sequence[Pair],
    stop_pairs: Sequence[Pair],
    supplement: Callable[[int], list[Pair]],
    folder: Path,
    initial: Transformer | None = None,
) -> Transformer:
    """Train a model, or resume the run in ``folder``, and return the best model.

    Args:
        plan: hyperparameters.
        config: configuration of the model.
        tokenizer: tokenizer for both languages.
        pairs: training pairs, used once an epoch in both directions.
        stop_pairs: pairs for early stopping; never trained on.
        supplement: maps an epoch to additional pairs, different ones each time.
        initial: trained model to start from, with the same config and tokenizer; None: random weights.
        folder: gets ``state.safetensors`` (to resume), ``epoch-NN.safetensors`` and ``curve.csv``.

    Returns:
        The average of the last checkpoints if its loss on ``stop_pairs`` is lower than the best one's, else the best.
    """
    folder.mkdir(parents=True, exist_ok=True)
    torch.manual_seed(plan.seed)
    model = Transformer(config)
    if initial is not None:
        load_state(model, {name: weight.detach() for name, weight in initial.named_parameters()})
    optimizers = _optimizers(plan, model)
    progress = _resume(folder, model, optimizers)
    use_fast_dropout(model)
    stop_examples = to_examples(tokenizer, stop_pairs)
    while progress.epoch < plan.epochs and progress.stale_epochs < plan.patience:
        started = time.monotonic()
        examples = _epoch_examples(plan, tokenizer, [*pairs, *supplement(progress.epoch)], epoch=progress.epoch)
        train_loss = _run_epoch(plan, model, optimizers, examples, progress)
        stop_loss = validation_loss(model, stop_examples)
        progress.epoch += 1
        progress.stale_epochs = 0 if stop_loss < progress.best_loss else progress.stale_epochs + 1
        progress.best_loss = min(progress.best_loss, stop_loss)
        seconds = time.monotonic() - started
        row = {"epoch": progress.epoch, "step": progress.step, "train_loss": train_loss}
        progress.curve.append(row | {"stop_loss": stop_loss, "seconds": round(seconds, 1)})
        print(
            f"epoch {progress.epoch}: train {train_loss:.4f}, held out {stop_loss:.4f} nats a token, {seconds:.0f} s",
            flush=True,
        )
        _write(folder, model, optimizers, progress, keep=plan.average + plan.patience)
    return _choose(plan, model, stop_examples, folder, progress)


Optimizers = dict[str, torch.optim.Optimizer]


def _optimizers(plan: TrainingPlan, model: Transformer) -> Optimizers:
    """Muon for the matrices of the layers, Adam (section 5.3) for embeddings, biases and norms."""
    matrices = [w for name, w in model.named_parameters() if w.dim() == 2 and name.startswith(("encoder", "decoder"))]
    taken = {id(w) for w in matrices}
    others = [w for w in model.parameters() if id(w) not in taken]
    return {
        "muon": Muon(
            matrices,
            lr=plan.learning_rate,
            weight_decay=plan.weight_decay,
            dtype=torch.bfloat16 if plan.autocast else torch.float32,
        ),
        "adam": torch.optim.AdamW(
            others, lr=plan.learning_rate, betas=(0.9, 0.98), weight_decay=plan.weight_decay, fused=True
        ),
    }


class _LabelSmoothing(torch.autograd.Function):
    """Cross-entropy with label smoothing (section 5.4), its gradient computed in the forward pass.

    Equal to ``F.cross_entropy(..., label_smoothing=e, ignore_index=PAD_ID)``. It takes a few rows at a time, which fit
    into the processor's cache; with a large vocabulary the loss would otherwise take a third of a step on a CPU.
    """

    ROWS = 128

    @staticmethod
    def forward(ctx: FunctionCtx, logits: Tensor, target: Tensor, smoothing: float) -> Tensor:
        precise = torch.promote_types(logits.dtype, torch.float32)
        real = (target != PAD_ID).to(precise)
        weight = (real / real.sum())[:, None]  # (token, 1)
        slopes, loss = torch.empty_like(logits), torch.zeros((), dtype=torch.float64)
        for first in range(0, len(target), _LabelSmoothing.ROWS):
            at = slice(first, first + _LabelSmoothing.ROWS)
            slope = logits[at].to(precise, copy=True)  # (row, vocab)
            chosen = target[at, None]  # (row, 1)
            log_sum = slope.logsumexp(dim=-1, keepdim=True)
            expected = (1 - smoothing) * slope.gather(1, chosen) + smoothing * slope.mean(dim=-1, keepdim=True)
            loss += ((log_sum - expected) * weight[at]).sum()
            slope.sub_(log_sum).exp_().sub_(smoothing / logits.shape[1])
            slope.scatter_add_(1, chosen, torch.full_like(log_sum, smoothing - 1))
            slopes[at] = slope.mul_(weight[at])
        ctx.save_for_backward(slopes)
        return loss.to(precise)

    @staticmethod
    def backward(ctx: FunctionCtx, grad: Tensor) -> tuple[Tensor, None, None]:
        (slopes,) = ctx.saved_tensors  # type: ignore[attr-defined]
        return slopes * grad.to(slopes.dtype), None, None


def smoothed_loss(logits: Tensor, target: Tensor, smoothing: float) -> Tensor:
    """Mean label-smoothed cross-entropy, in nats.

    Args:
        logits: (token, vocab), float64, float32 or bfloat16; summed in float32 at least.
        target: int64 (token,); 0 is padding and does not count.
        smoothing: probability spread evenly over the vocabulary.
    """
    loss: Tensor = _LabelSmoothing.apply(logits, target, smoothing)  # type: ignore[no-untyped-call]
    return loss


class FastDropout(nn.Module):
    """``nn.Dropout`` for CPUs: one random byte for each activation, where torch draws a full random number.

    The probability is rounded to 1/256. It replaces the model's dropout while training.
    """

    def __init__(self, p: float) -> None:
        super().__init__()
        self.dropped = round(256 * p)

    def forward(self, x: Tensor) -> Tensor:
        """Apply dropout to a tensor of any shape."""
        if not self.training or not self.dropped:
            return x
        words = torch.empty((x.numel() + 7) // 8, dtype=torch.int64).random_(torch.iinfo(torch.int64).min, None)
        kept = words.view(torch.uint8)[: x.numel()].view(x.shape) >= self.dropped
        return x * (kept * (256 / (256 - self.dropped))).to(x.dtype)


def use_fast_dropout(model: nn.Module) -> None:
    """Replace each ``nn.Dropout`` by a :class:`FastDropout`."""
    for module in model.modules():
        for name, child in module.named_children():
            if isinstance(child, nn.Dropout):
                setattr(module, name, FastDropout(child.p))


def learning_rate(plan: TrainingPlan, step: int, total_steps: int) -> float:
    """Linear warm-up, then linear decay to 0 at the last step (the paper decays with 1 / sqrt(step), section 5.3)."""
    warmup = (step + 1) / plan.warmup_steps
    decay = (total_steps - step) / max(1, total_steps - plan.warmup_steps)
    return plan.learning_rate * max(0.0, min(warmup, decay))


def validation_loss(model: Transformer, examples: Sequence[Example]) -> float:
    """Mean negative log-likelihood of the targets, in nats per token; no smoothing, no dropout."""
    model.eval()
    total, count = 0.0, 0
    with torch.inference_mode():
        for src, tgt in batches(examples, tokens=6000, seed=None):
            logits = model(src, tgt[:, :-1])
            wanted = tgt[:, 1:]
            loss = F.cross_entropy(logits.flatten(0, 1), wanted.flatten(), ignore_index=PAD_ID, reduction="sum")
            total += float(loss)
            count += int((wanted != PAD_ID).sum())
    return total / count


def _epoch_examples(plan: TrainingPlan, tokenizer: Tokenizer, pairs: list[Pair], *, epoch: int) -> list[Example]:
    """Encode the pairs with BPE-dropout, which is seeded: one choice of merges for each slice of the pairs."""
    slices = 16
    examples: list[Example] = []
    for i in range(slices):
        with_dropout = tokenizer.with_dropout(plan.bpe_dropout, seed=plan.seed * 100_000 + epoch * slices + i)
        examples += to_examples(with_dropout, pairs[(i + epoch) % slices :: slices])
    return examples


def _run_epoch(
    plan: TrainingPlan,
    model: Transformer,
    optimizers: Optimizers,
    examples: Sequence[Example],
    progress: Progress,
) -> float:
    """Train on the examples once and return the mean loss of the batches."""
    model.train()
    torch.manual_seed(plan.seed + 1 + progress.epoch)  # so that a resumed run equals an uninterrupted one
    planned = list(batches(examples, tokens=plan.batch_tokens, seed=plan.seed + progress.epoch))
    total_steps = plan.epochs * len(planned)
    losses = []
    bar = tqdm(planned, desc=f"epoch {progress.epoch + 1}/{plan.epochs}", unit="batch", mininterval=5.0)
    for src, tgt in bar:
        for group in [group for optimizer in optimizers.values() for group in optimizer.param_groups]:
            group["lr"] = learning_rate(plan, progress.step, total_steps)
        with torch.autocast("cpu", dtype=torch.bfloat16, enabled=plan.autocast):
            logits = model(src, tgt[:, :-1])  # (batch, tgt, vocab)
        loss = smoothed_loss(logits.flatten(0, 1), tgt[:, 1:].flatten(), plan.label_smoothing)
        model.zero_grad()
        loss.backward()  # type: ignore[no-untyped-call]
        torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        for optimizer in optimizers.values():
            optimizer.step()
        progress.step += 1
        losses.append(float(loss.detach()))
        bar.set_postfix(loss=f"{losses[-1]:.3f}", refresh=False)
    return sum(losses) / len(losses)


def _write(folder: Path, model: Transformer, optimizers: Optimizers, progress: Progress, *, keep: int) -> None:
    """Write what resuming needs, this epoch's weights and the curve; delete old epochs."""
    weights = {name: p.detach() for name, p in model.named_parameters()}
    moments = {
        f"{kind}.{i}.{name}": value.detach()
        for kind, optimizer in optimizers.items()
        for i, state in optimizer.state_dict()["state"].items()
        for name, value in state.items()
    }
    state = {f"model.{name}": value for name, value in weights.items()} | moments
    with whole(folder / "state.safetensors") as partial:
        save_file(state, partial, metadata={"progress": json.dumps(asdict(progress))})
    with whole(folder / f"epoch-{progress.epoch:03d}.safetensors") as partial:
        save_file(weights, partial)
    for old in sorted(folder.glob("epoch-*.safetensors"))[:-keep]:
        old.unlink()
    with whole(folder / "curve.csv") as partial, partial.open("w", newline="") as file:
        writer = csv.DictWriter(file, fieldnames=list(progress.curve[0]), lineterminator="\n")
        writer.writeheader()
        writer.writerows(progress.curve)


def _resume(folder: Path, model: Transformer, optimizers: Optimizers) -> Progress:
    """Load the state of an interrupted run, if there is one."""
    path = folder / "state.safetensors"
    if not path.exists():
        return Progress()
    try:
        with safe_open(path, framework="pt") as file:
            state = {name: file.get_tensor(name) for name in file.keys()}  # noqa: SIM118 (no mapping)
            progress = Progress(**json.loads(file.metadata()["progress"]))
        load_state(model, {n.removeprefix("model."): v for n, v in state.items() if n.startswith("model.")})
        for kind, optimizer in optimizers.items():
            moments: dict[int, dict[str, Tensor]] = {}
            for name, value in state.items():
                if name.startswith(f"{kind}."):
                    _, i, key = name.split(".")
                    moments.setdefault(int(i), {})[key] = value
            optimizer.load_state_dict({"state": moments, "param_groups": optimizer.state_dict()["param_groups"]})
    except Exception as error:
        raise CheckpointError(
            N_("The interrupted run in {path} cannot be continued ({reason}): remove it to start anew."),
            path=path,
            reason=error,
        ) from error
    return progress


def _choose(
    plan: TrainingPlan, model: Transformer, stop_examples: Sequence[Example], folder: Path, progress: Progress
) -> Transformer:
    """Choose the best among the last epochs and the averages of the last 2 ... ``plan.average`` of them."""
    epochs = sorted(folder.glob("epoch-*.safetensors"))
    candidates = {path.stem: [path] for path in epochs}
    candidates |= {f"average of {n}": epochs[-n:] for n in range(2, plan.average + 1) if n <= len(epochs)}
    losses = {}
    for name, paths in candidates.items():
        load_state(model, average(paths))
        losses[name] = validation_loss(model, stop_examples)
    best = min(losses, key=lambda name: losses[name])
    print(f"kept: {best}, {losses[best]:.4f} nats a token (best single epoch {progress.best_loss:.4f})", flush=True)
    load_state(model, average(candidates[best]))
    return model


def average(paths: Sequence[Path]) -> dict[str, Tensor]:
    """Average the weights of several checkpoints."""
    states = [load_file(path) for path in paths]
    return {name: torch.stack([state[name] for state in states]).mean(dim=0) for name in states[0]}
