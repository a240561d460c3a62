"""The training of a small model, a step at a time, and the moments of it that are drawn.

AdamW at a constant learning rate after a short warm-up, one torch thread: the models are so small that two are slower.
"""

import math
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn
from torch.nn import functional as F

from visformer.adapters.learning.moment import EVERY, Moment, Sight, weights_at
from visformer.adapters.learning.optimizer import AdamW
from visformer.adapters.learning.recipe import Recipe
from visformer.adapters.learning.symbols import Symbols
from visformer.adapters.learning.tasks import NOTHING, Batch, Probe
from visformer.model import taps
from visformer.model.config import GPTConfig, TransformerConfig
from visformer.model.embedding import sinusoidal_encoding
from visformer.model.gpt import GPT
from visformer.model.kinds import Config, Model, initial_model
from visformer.model.positions import PositionName
from visformer.model.tokenizer import SPECIALS
from visformer.model.transformer import load_state
from visformer.system import cancellation

RATE, HIGH_RATE = 3e-3, 1e-1
WARM_UP = 20  # steps
_PROBE_SEED = 99
_WEIGHTS, _EMBEDDING, _OUTPUT = 0.05, 0.3, 0.02
"""Standard deviations of the first weights. With embeddings this much larger than the rest, and an output apart from
them, heads that look at the token before form first, and induction heads after 140 to 170 steps."""


class Training:
    """One training; its model is that of the same name everywhere."""

    def __init__(self, recipe: Recipe) -> None:
        """Draw the first weights; ``recipe.step`` is not read."""
        self.recipe, self.step = recipe, 0
        self._sequences = recipe.about.sequences
        self.module = _first_weights(config_of(recipe), recipe.seed)
        self.tokenizer = Symbols(self._sequences.symbols)
        self._rng = np.random.default_rng([recipe.seed, 1])
        self.probe: Probe = self._sequences.probe(np.random.default_rng(_PROBE_SEED))
        self._rate = HIGH_RATE if recipe.variant == "high-rate" else RATE
        self._optimizer = AdamW(self.module.parameters())
        self._losses: list[float] = []

    @property
    def is_over(self) -> bool:
        """Whether it has taken all of its steps."""
        return self.step >= self.recipe.about.steps

    def advance(self) -> None:
        """Take one step."""
        cancellation.check()
        self.step += 1
        loss = _loss(self.module, self._batch())
        loss.backward()  # type: ignore[no-untyped-call]
        self._optimizer.step(self._rate * min(1.0, self.step / WARM_UP))
        self._losses.append(loss.item())

    def _batch(self) -> Batch:
        return self._sequences.batch(self._rng, self.recipe.variant)

    def moment(self) -> Moment:
        """Return what is drawn of the present step."""
        batch, taken = self.probe.batch, _Patterns("self" if self.probe.batch.source is None else "cross")
        with torch.no_grad():
            with taps.session(taken, wanted=taken.wants):
                logits = _logits(self.module, batch)
            targets = torch.from_numpy(batch.targets)
            probed = float(F.cross_entropy(logits.flatten(0, 1), targets.flatten(), ignore_index=NOTHING))
            counted = targets != NOTHING
            right = float((logits.argmax(-1) == targets)[counted].float().mean())
            losses = self._losses or [float(_loss(self.module, batch))]
        patterns = np.stack([taken.found[name] for name in sorted(taken.found)], axis=1)  # (row, layer, head, q, k)
        self._losses = []
        return Moment(
            step=self.step,
            loss=sum(losses) / len(losses),
            probed=probed,
            right=right,
            scores=np.stack([weights_at(patterns, *cells) for cells in self.probe.cells.values()]),
            patterns=np.rint(255 * patterns[0]).astype(np.uint8),
        )

    @property
    def sight(self) -> Sight:
        """What all moments have in common."""
        batch = self.probe.batch
        keys = batch.ids if batch.source is None else batch.source
        shown = [self.tokenizer.shown(ids[0].tolist()) for ids in (batch.ids, keys)]
        return Sight(shown[0], shown[1], sum(weight.numel() for weight in self.module.parameters()))

    def weights(self) -> dict[str, NDArray[np.float32]]:
        """Copy the weights of the present step, by name."""
        return {name: weight.numpy().copy() for name, weight in self.module.state_dict().items()}


class _Patterns:
    """A tap that keeps the patterns of a decoder-only model, or of a translator's cross-attention, as arrays."""

    def __init__(self, kind: str) -> None:
        self._name = f"{kind}_attn.pattern"
        self.found: dict[str, NDArray[np.float32]] = {}

    def wants(self, name: str) -> bool:
        return name.startswith("decoder") and name.endswith(self._name)

    def __call__(self, name: str, value: Tensor) -> Tensor:
        if self.wants(name):
            self.found[name] = value.numpy()  # (row, head, query, key)
        return value


def trained(recipe: Recipe, weights: Mapping[str, NDArray[np.float32]] | None = None) -> tuple[Model, Symbols]:
    """Return a model, in evaluation mode, and its tokenizer; ``weights``: as it was trained before; None: train it."""
    training = Training(recipe)
    if weights is not None:
        load_state(training.module, {name: torch.from_numpy(array) for name, array in weights.items()})
    else:
        with one_thread():
            while training.step < recipe.at:
                training.advance()
    return training.module.eval(), training.tokenizer


def watch(recipe: Recipe) -> Iterator[Moment]:
    """Train a model and yield its moments, every EVERY steps and the last; abandoned, it stops."""
    with one_thread():
        training = Training(recipe)
        yield training.moment()
        while training.step < recipe.at:
            training.advance()
            if training.step % EVERY == 0 or training.step == recipe.at:
                yield training.moment()


def keep_to_one_thread() -> None:
    """Give torch one thread in this process for good, see :func:`one_thread`."""
    torch.set_num_threads(1)


@contextmanager
def one_thread() -> Iterator[None]:
    """Compute with one torch thread, process-wide: two are slower here, and would round otherwise."""
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        yield
    finally:
        torch.set_num_threads(before)


def config_of(recipe: Recipe) -> Config:
    """Return the sizes of the model."""
    about, variant = recipe.about, recipe.variant
    vocab = len(SPECIALS) + len(about.sequences.symbols)
    position: PositionName = "none" if variant == "no-positions" else "learned"
    common: dict[str, Any] = {
        "d_model": 64,
        "n_heads": 4,
        "d_ff": about.d_ff,
        "dropout": 0.0,
        "max_len": about.sequences.length,
        "position": position,
    }
    if about.translates:
        return TransformerConfig(vocab, vocab, n_encoder_layers=1, n_decoder_layers=1, norm="pre", **common)
    return GPTConfig(vocab, n_layers=1 if variant == "one-layer" else 2, causal=variant != "no-mask", **common)


def _first_weights(config: Config, seed: int) -> Model:
    module = initial_model(config, seed)
    if isinstance(module, GPT):
        generator = torch.Generator().manual_seed(seed)
        with torch.no_grad():
            for name, weight in module.named_parameters():
                if weight.dim() > 1:
                    std = _OUTPUT if name == "output.weight" else _EMBEDDING if "token" in name else _WEIGHTS
                    nn.init.normal_(weight, std=std, generator=generator)
            if module.config.position == "learned":
                rows = sinusoidal_encoding(module.config.max_len, module.config.d_model)
                module.embedding.position.copy_(_EMBEDDING * math.sqrt(2) * rows)
    return module


def _logits(module: Model, batch: Batch) -> Tensor:
    ids = torch.from_numpy(batch.ids)
    if isinstance(module, GPT):
        return module(ids)
    assert batch.source is not None
    return module(torch.from_numpy(batch.source), ids)


def _loss(module: Model, batch: Batch) -> Tensor:
    """Mean cross entropy of the scored targets, nats a token."""
    logits = _logits(module, batch)
    return F.cross_entropy(logits.flatten(0, 1), torch.from_numpy(batch.targets).flatten(), ignore_index=NOTHING)
