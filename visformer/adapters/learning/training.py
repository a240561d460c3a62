"""The training of a small model, a step at a time: its vocabulary, its optimizer, and the snapshots that are drawn.

AdamW at a constant learning rate after a short warm-up, one torch thread: the models are so small that two are slower.
"""

import math
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn
from torch.nn import functional as F

from visformer.adapters.learning.recipe import EVERY, Recipe, Snapshot, TrainingInfo, weights_at
from visformer.adapters.learning.tasks import NOTHING, Probe, TaskBatch
from visformer.errors import N_, TextError
from visformer.model import taps
from visformer.model.config import GPTConfig, TransformerConfig
from visformer.model.embedding import sinusoidal_encoding
from visformer.model.gpt import GPT
from visformer.model.kinds import Config, Model, initial_model
from visformer.model.positions import PositionName
from visformer.model.tokenizer import SPECIALS, Tokenizer, require_unicode
from visformer.model.transformer import load_state
from visformer.system import cancellation

_BETAS = (0.9, 0.98)
_EPSILON = 1e-8
_DECAY = 0.01


class AdamW:
    """Steps of Adam with decoupled weight decay (Loshchilov and Hutter 2019), for all weights alike.

    Without ``torch.optim``, which imports torch's compiler: that takes a second, and makes a folder for the code that
    it compiles wherever temporary files are, or fails if it cannot.
    """

    def __init__(self, weights: Iterable[nn.Parameter]) -> None:
        """Begin with averages of zero."""
        self._weights = [*weights]
        self._means = [torch.zeros_like(weight) for weight in self._weights]
        self._squares = [torch.zeros_like(weight) for weight in self._weights]
        self._steps = 0

    def step(self, rate: float) -> None:
        """Take one step along the gradients, and drop them; ``rate``: the learning rate."""
        self._steps += 1
        (of_mean, of_square), t = _BETAS, self._steps
        size, spread = rate / (1 - of_mean**t), math.sqrt(1 - of_square**t)  # the averages began with zero
        with torch.no_grad():
            for weight, mean, square in zip(self._weights, self._means, self._squares, strict=True):
                assert weight.grad is not None
                mean.lerp_(weight.grad, 1 - of_mean)
                square.mul_(of_square).addcmul_(weight.grad, weight.grad, value=1 - of_square)
                weight.mul_(1 - rate * _DECAY)
                weight.addcdiv_(mean, square.sqrt().div_(spread).add_(_EPSILON), value=-size)
                weight.grad = None


_SHOWN = 24  # symbols that a message lists


class Symbols(Tokenizer):
    """A tokenizer that knows only its symbols: letters, digits or words; ids 0 to 3 are the special tokens."""

    scheme = "symbols"

    def __init__(self, symbols: Sequence[str]) -> None:
        self._tokens = (*SPECIALS, *symbols)
        self._ids = {token: i for i, token in enumerate(self._tokens)}
        longest_first = sorted(symbols, key=len, reverse=True)
        self._symbol = re.compile("|".join(map(re.escape, longest_first)))
        self._joint = " " if any(len(symbol) > 1 and symbol.isascii() for symbol in symbols) else ""

    def token_id(self, token: str) -> int:
        """The id of a token of the vocabulary."""
        return self._ids[token]

    def encode(self, text: str) -> list[int]:
        """The ids of the text, without specials; spaces between symbols are ignored.

        Raises:
            TextError: the text has a symbol that this vocabulary lacks.
        """
        return [self._ids[text[first:last]] for first, last in self.spans(text)]

    def spans(self, text: str) -> tuple[tuple[int, int], ...]:
        """Return (start, end) of each token of ``encode(text)`` in ``text``."""
        require_unicode(text)
        found, at = [], 0
        while at < len(text):
            if text[at].isspace():
                at += 1
                continue
            match = self._symbol.match(text, at)
            if match is None:
                symbols = self._tokens[len(SPECIALS) :]
                raise TextError(
                    N_("This small model knows only {n} symbols, and {symbol!r} is none of them: {symbols}."),
                    n=len(symbols),
                    symbol=text[at],
                    symbols=(self._joint or "").join(symbols[:_SHOWN]) + "…" * (len(symbols) > _SHOWN),
                )
            found.append(match.span())
            at = match.end()
        return tuple(found)

    def pieces(self, text: str) -> tuple[str, ...]:
        """The symbols of a text: none is merged."""
        return tuple(text[first:last] for first, last in self.spans(text))

    def merging(self, piece: str) -> list[tuple[str, ...]]:
        """A symbol is one token from the start."""
        return [(piece,)]

    def decode(self, ids: Sequence[int]) -> str:
        """The text of ids; specials are omitted."""
        joint = self._joint
        return joint.join(self._tokens[i] for i in ids if len(SPECIALS) <= i < len(self._tokens))

    def words(self, ids: Sequence[int]) -> tuple[int, ...]:
        """Each symbol is a word of its own."""
        return tuple(range(len(ids)))

    def shown(self, ids: Sequence[int]) -> tuple[str, ...]:
        """The text displayed for each id."""
        return tuple(self._tokens[i] for i in ids)


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
        sequences = recipe.about.sequences
        self._batch = recipe.options.batch or sequences.batch
        self.module = _first_weights(config_of(recipe), recipe.seed)
        self.tokenizer = Symbols(sequences.symbols)
        self._rng = np.random.default_rng([recipe.seed, 1])
        self.probe: Probe = sequences.probe(np.random.default_rng(_PROBE_SEED))
        self._rate = recipe.options.rate
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
        loss = _loss(self.module, self._batch(self._rng))
        loss.backward()  # type: ignore[no-untyped-call]
        self._optimizer.step(self._rate * min(1.0, self.step / WARM_UP))
        self._losses.append(loss.item())

    def moment(self) -> Snapshot:
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
        return Snapshot(
            step=self.step,
            loss=sum(losses) / len(losses),
            probed=probed,
            right=right,
            scores=np.stack([weights_at(patterns, *cells) for cells in self.probe.cells.values()]),
            patterns=np.rint(255 * patterns[0]).astype(np.uint8),
        )

    @property
    def sight(self) -> TrainingInfo:
        """What all moments have in common."""
        batch = self.probe.batch
        keys = batch.ids if batch.source is None else batch.source
        shown = [self.tokenizer.shown(ids[0].tolist()) for ids in (batch.ids, keys)]
        return TrainingInfo(shown[0], shown[1], sum(weight.numel() for weight in self.module.parameters()))

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


def watch(recipe: Recipe) -> Iterator[Snapshot]:
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
    about, options = recipe.about, recipe.options
    vocab = len(SPECIALS) + len(about.sequences.symbols)
    position: PositionName = "learned" if options.has_positions else "none"
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
    return GPTConfig(vocab, n_layers=options.n_layers, causal=options.causal, **common)


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


def _logits(module: Model, batch: TaskBatch) -> Tensor:
    ids = torch.from_numpy(batch.ids)
    if isinstance(module, GPT):
        return module(ids)
    assert batch.source is not None
    return module(torch.from_numpy(batch.source), ids)


def _loss(module: Model, batch: TaskBatch) -> Tensor:
    """Mean cross entropy of the scored targets, nats a token."""
    logits = _logits(module, batch)
    return F.cross_entropy(logits.flatten(0, 1), torch.from_numpy(batch.targets).flatten(), ignore_index=NOTHING)
