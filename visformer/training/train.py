"""Train a model in one run, which can be resumed: warm-up, linear decay, label smoothing (section 5), and Muon."""

import csv
import json
import math
import shutil
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from functools import partial
from pathlib import Path
from typing import Any

import torch
from safetensors import safe_open
from safetensors.torch import save_file
from torch import Tensor, nn
from torch.autograd.function import FunctionCtx
from torch.nn import functional as F
from torch.utils.data import DataLoader, Dataset
from tqdm import tqdm

from visformer.errors import N_, CheckpointError, VisformerError
from visformer.model.checkpoints import save_weights
from visformer.model.kinds import Config, Model, initial_model
from visformer.model.masks import PAD_ID
from visformer.model.transformer import load_state
from visformer.system.files import whole
from visformer.training.data import Batch

_NEWTON_SCHULZ = (3.4445, -4.7750, 2.0315)  # the quintic of the reference implementation


def orthogonalised(matrices: Tensor, *, steps: int = 5) -> Tensor:
    """Return the matrices with singular values near 1, by Newton-Schulz iteration.

    Args:
        matrices: (matrix, row, column), with row <= column for speed.
        steps: iterations; five bring singular values to about 0.7 .. 1.2.
    """
    a, b, c = _NEWTON_SCHULZ
    x: Tensor = matrices / (matrices.norm(dim=(-2, -1), keepdim=True) + 1e-7)
    for _ in range(steps):
        gram = x @ x.mT
        x = a * x + (b * gram + c * gram @ gram) @ x
    return x


class Muon(torch.optim.Optimizer):
    """Muon for two-dimensional weights, with updates of Adam's size (Liu et al. 2025) and decoupled weight decay.

    It steps along the orthogonalised momentum of each weight matrix (Jordan et al. 2024). On this task it overtook Adam
    within the first epoch (docs/adr/0008). torch.optim.Muon always computes in bfloat16, which is many times slower on
    CPUs without bf16 arithmetic; here the precision is an option.

    Args:
        weights: matrices of any shape.
        lr: step size, relative to updates of Adam's size.
        momentum: decay of the average gradient at each step, in [0, 1).
        weight_decay: times ``lr``, the fraction that each step takes off the weights.
        dtype: precision of the Newton-Schulz iteration.
    """

    def __init__(
        self,
        weights: Iterable[nn.Parameter],
        *,
        lr: float,
        momentum: float = 0.95,
        weight_decay: float = 0.0,
        dtype: torch.dtype = torch.float32,
    ) -> None:
        super().__init__(list(weights), {"lr": lr, "momentum": momentum, "weight_decay": weight_decay})
        self.dtype = dtype

    @torch.no_grad()
    def step(self, closure: Any = None) -> None:  # type: ignore[override]
        """Update the weights once; ``closure`` is not used."""
        for group in self.param_groups:
            by_shape: dict[tuple[int, int], list[nn.Parameter]] = {}
            for weight in group["params"]:
                by_shape.setdefault((min(weight.shape), max(weight.shape)), []).append(weight)
            for (_, width), weights in by_shape.items():
                momenta = torch.stack([self._nesterov(w, group["momentum"]) for w in weights])  # (matrix, row, column)
                updates = orthogonalised(momenta.to(self.dtype)).to(momenta.dtype)
                for weight, update in zip(weights, updates * (0.2 * width**0.5), strict=True):
                    weight.mul_(1 - group["lr"] * group["weight_decay"])
                    weight.add_(_wide(update, weight.shape[0] > weight.shape[1]), alpha=-group["lr"])

    def _nesterov(self, weight: nn.Parameter, momentum: float) -> Tensor:
        state = self.state[weight]
        if "momentum" not in state:
            state["momentum"] = torch.zeros_like(weight)
        assert weight.grad is not None
        average = state["momentum"].lerp_(weight.grad, 1 - momentum)
        return _wide(weight.grad.lerp(average, momentum), weight.shape[0] > weight.shape[1])


def _wide(matrix: Tensor, transpose: bool) -> Tensor:
    return matrix.mT if transpose else matrix


@dataclass(frozen=True, kw_only=True)
class TrainingPlan:
    """Hyperparameters. Rates are per optimiser step, probabilities in [0, 1), sizes in tokens (padding included)."""

    epochs: int = 115
    batch_tokens: int = 12_000
    learning_rate: float = 2e-3
    warmup_steps: int = 150
    weight_decay: float = 0.05
    label_smoothing: float = 0.1
    keep_moments: int = 0
    autocast: bool = False
    seed: int = 1


@dataclass
class TrainingProgress:
    """The progress of a run; written beside the weights, so that the run can be resumed."""

    epoch: int = 0
    step: int = 0
    tokens: int = 0
    moments: list[int] = field(default_factory=list)
    curve: list[dict[str, float]] = field(default_factory=list)


def train(
    plan: TrainingPlan,
    config: Config,
    *,
    epoch_batches: Callable[[int], Sequence[Batch]],
    valid: Sequence[Batch],
    folder: Path,
    measure: Callable[[Model], Mapping[str, float]] = lambda model: {},
    start: Mapping[str, Tensor] | None = None,
) -> Model:
    """Train a model, or resume the run in ``folder`` at its last whole epoch.

    Args:
        plan: hyperparameters; the model is trained on the GPU where there is one.
        config: configuration of the model.
        epoch_batches: maps an epoch, from 0, to its batches, the same ones each time.
        valid: batches for the curve; never trained on.
        measure: further columns of the curve, by name.
        start: the state of the model that it begins with; None: one drawn from the seed.
        folder: gets ``state.safetensors`` (to resume), and ``checkpoint/`` with ``curve.csv`` and ``moments/``.

    Returns:
        The model after the last epoch, on the CPU.

    Raises:
        CheckpointError: the state is damaged, or of a model of other sizes.
        VisformerError: the loss is no longer a finite number.
    """
    folder.mkdir(parents=True, exist_ok=True)
    model = initial_model(config, plan.seed)
    if start is not None:
        model.load_state_dict(start)
    model.to(_DEVICE)
    optimizers = _optimizers(plan, model)
    progress = _resume(folder, model, optimizers)
    if progress.curve:
        _write_curve(folder, progress)  # it may have been lost or damaged
    if _DEVICE == "cpu":
        use_fast_dropout(model)
    keep = partial(_keep_checkpoint, folder / "checkpoint" / "moments", plan, model, progress, valid)
    started = time.monotonic()
    for batches in _drawn(epoch_batches, range(progress.epoch, plan.epochs)):
        train_loss = _run_epoch(plan, model, optimizers, batches, progress, keep)
        valid_loss = validation_loss(model, valid)
        progress.epoch += 1
        seconds = time.monotonic() - started
        row = {"epoch": progress.epoch, "step": progress.step, "tokens": progress.tokens, "train_loss": train_loss}
        more = measure(model.eval())
        progress.curve.append(row | {"valid_loss": valid_loss, "seconds": round(seconds, 1), **more})
        parts = [f"train {train_loss:.4f}, held out {valid_loss:.4f} nats a token, {seconds:.0f} s"]
        parts += [f"{name} {value:.3f}" for name, value in more.items()]
        print(f"epoch {progress.epoch}: {', '.join(parts)}", flush=True)
        _write(folder, model, optimizers, progress)
        started = time.monotonic()
    return model.cpu()


_DEVICE = "cuda" if torch.cuda.is_available() else "cpu"


def _drawn(epoch_batches: Callable[[int], Sequence[Batch]], epochs: range) -> Iterable[Sequence[Batch]]:
    """Draw the batches of each epoch; for a GPU, which would wait for them, in other processes while it computes."""
    if _DEVICE == "cpu":
        return map(epoch_batches, epochs)
    torch.multiprocessing.set_sharing_strategy("file_system")  # type: ignore[no-untyped-call]  # no open file for each
    drawn = _Epochs(epoch_batches)
    return DataLoader(drawn, batch_size=None, sampler=epochs, num_workers=3, multiprocessing_context="fork")


@dataclass(frozen=True)
class _Epochs(Dataset[Sequence[Batch]]):
    draw: Callable[[int], Sequence[Batch]]

    def __getitem__(self, epoch: int) -> Sequence[Batch]:
        return self.draw(epoch)


def computes_in_bf16() -> bool:
    """Whether this machine has instructions for bfloat16; without them it is many times slower than float32."""
    return _DEVICE == "cuda" or any(
        torch.cpu.get_capabilities().get(name) for name in ("avx512_bf16", "amx_bf16", "bf16")
    )


def moment_steps(n: int, total: int) -> list[int]:
    """Steps at which to keep the weights: ``n`` moments whose steps grow by one factor, without the first and the last.

    The first, step 0, is :func:`visformer.model.kinds.initial_model`; the last is the trained model.
    """
    return sorted({round(total ** (i / (n - 1))) for i in range(1, n - 1)})


Optimizers = dict[str, torch.optim.Optimizer]


def _optimizers(plan: TrainingPlan, model: Model) -> Optimizers:
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
            expected = (1 - smoothing) * slope.gather(1, chosen) + smoothing * slope.mean(dim=-1, keepdim=True)
            top = slope.amax(dim=-1, keepdim=True)
            total = slope.sub_(top).exp_().sum(dim=-1, keepdim=True)
            loss += ((top + total.log() - expected) * weight[at]).sum()
            slope.div_(total).sub_(smoothing / logits.shape[1])
            slope.scatter_add_(1, chosen, torch.full_like(total, smoothing - 1))
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
    if logits.is_cuda:
        return F.cross_entropy(logits.float(), target, label_smoothing=smoothing, ignore_index=PAD_ID)
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


def learning_rate(plan: TrainingPlan, step: int, done: float) -> float:
    """Linear warm-up, then linear decay to 0 at the end (the paper decays with 1 / sqrt(step), section 5.3).

    Args:
        plan: hyperparameters.
        step: steps taken.
        done: fraction of the training that is done.
    """
    return plan.learning_rate * min((step + 1) / plan.warmup_steps, 1 - done)


def validation_loss(model: nn.Module, batches: Sequence[Batch]) -> float:
    """Mean negative log-likelihood of the targets, in nats per token; no smoothing, no dropout."""
    model.eval()
    total, count = 0.0, 0
    with torch.inference_mode():
        for batch in batches:
            batch = batch.to(next(model.parameters()).device)
            logits, targets = model(*batch.inputs).flatten(0, 1), batch.targets.flatten()
            total += float(F.cross_entropy(logits, targets, ignore_index=PAD_ID, reduction="sum"))
            count += int((targets != PAD_ID).sum())
    return total / count


def _run_epoch(
    plan: TrainingPlan,
    model: Model,
    optimizers: Optimizers,
    batches: Sequence[Batch],
    progress: TrainingProgress,
    keep: Callable[[], None],
) -> float:
    """Train on the batches once, keep the moments on the way, and return the mean loss of the batches."""
    model.train()
    torch.manual_seed(plan.seed + 1 + progress.epoch)  # so that a resumed run equals an uninterrupted one
    if plan.keep_moments and not progress.step:
        progress.moments = moment_steps(plan.keep_moments, plan.epochs * len(batches))
    losses = []
    bar = tqdm(batches, desc=f"epoch {progress.epoch + 1}/{plan.epochs}", unit="batch", mininterval=5.0)
    for i, batch in enumerate(bar):
        rate = learning_rate(plan, progress.step, (progress.epoch + i / len(batches)) / plan.epochs)
        losses.append(_step(plan, model, optimizers, batch, rate))
        if not math.isfinite(losses[-1]):
            raise VisformerError(
                N_("The loss is {loss} in step {step}, with the learning rate {rate:g}: train with a lower one."),
                loss=losses[-1],
                step=progress.step + 1,
                rate=plan.learning_rate,
            )
        progress.step += 1
        progress.tokens += batch.tokens
        bar.set_postfix(loss=f"{losses[-1]:.3f}", refresh=False)
        if progress.step in progress.moments:
            keep()
    return sum(losses) / len(losses)


def _keep_checkpoint(
    folder: Path, plan: TrainingPlan, model: Model, progress: TrainingProgress, valid: Sequence[Batch]
) -> None:
    """Write the weights of this step, and what :func:`visformer.moments` reports of it."""
    loss = validation_loss(model, valid)
    model.train()
    path = folder / f"step-{progress.step:07d}.safetensors"
    save_weights(path, model, seed=plan.seed, step=progress.step, tokens=progress.tokens, loss=loss)


def _step(plan: TrainingPlan, model: Model, optimizers: Optimizers, batch: Batch, rate: float) -> float:
    """Take one step along the gradient of a batch, and return its loss."""
    batch = batch.to(_DEVICE)
    with torch.autocast(_DEVICE, dtype=torch.bfloat16, enabled=plan.autocast):
        logits = model(*batch.inputs)  # (batch, tgt, vocab)
    loss = smoothed_loss(logits.flatten(0, 1), batch.targets.flatten(), plan.label_smoothing)
    model.zero_grad()
    loss.backward()  # type: ignore[no-untyped-call]
    torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
    for optimizer in optimizers.values():
        for group in optimizer.param_groups:
            group["lr"] = rate
        optimizer.step()
    return float(loss.detach())


def _write(folder: Path, model: Model, optimizers: Optimizers, progress: TrainingProgress) -> None:
    """Write what resuming needs, and the curve."""
    moments = {
        f"{kind}.{i}.{name}": value.detach()
        for kind, optimizer in optimizers.items()
        for i, state in optimizer.state_dict()["state"].items()
        for name, value in state.items()
    }
    state = {f"model.{name}": p.detach() for name, p in model.named_parameters()} | moments
    with whole(folder / "state.safetensors") as partial:
        save_file(state, partial, metadata={"progress": json.dumps(asdict(progress))})
    _write_curve(folder, progress)


def _write_curve(folder: Path, progress: TrainingProgress) -> None:
    (folder / "checkpoint").mkdir(exist_ok=True)
    with whole(folder / "checkpoint" / "curve.csv") as partial, partial.open("w", newline="") as file:
        writer = csv.DictWriter(file, fieldnames=list(progress.curve[0]), lineterminator="\n")
        writer.writeheader()
        writer.writerows(progress.curve)


def _resume(folder: Path, model: Model, optimizers: Optimizers) -> TrainingProgress:
    """Load the state of an interrupted run, if there is one."""
    path = folder / "state.safetensors"
    if not path.exists():
        shutil.rmtree(folder / "checkpoint" / "moments", ignore_errors=True)  # of another run
        return TrainingProgress()
    try:
        with safe_open(path, framework="pt") as file:
            state = {name: file.get_tensor(name) for name in file.keys()}  # noqa: SIM118 (no mapping)
            progress = TrainingProgress(**json.loads(file.metadata()["progress"]))
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
            N_("The interrupted run in {path} cannot be resumed ({reason}): remove it to start over."),
            path=path,
            reason=error,
        ) from error
    return progress
