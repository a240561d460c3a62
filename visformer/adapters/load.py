"""Turn a name or a module into a model that translates and traces."""

import os
import sys
import zlib
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import replace
from functools import cache, lru_cache
from math import prod
from pathlib import Path
from typing import Any, cast

import torch
from safetensors import SafetensorError, safe_open
from torch import nn

from visformer.adapters.base import TracedModel
from visformer.adapters.checkpoints import BUNDLED, TRANSLATOR, Checkpoint, find, folder_of
from visformer.adapters.faults import broken
from visformer.adapters.learning.recipe import Recipe, is_trained_name
from visformer.adapters.learning.training import config_of, trained
from visformer.adapters.names import base_of, is_broken_name, require_name
from visformer.adapters.own import OwnModel, Translator, adapted
from visformer.errors import N_, ArgumentError, CheckpointError, ConfigError, VisformerError
from visformer.model.checkpoints import load_checkpoint, unpack, unsure_below
from visformer.model.config import TransformerConfig
from visformer.model.gpt import GPT
from visformer.model.kinds import build, initial_model
from visformer.model.positions import PositionName
from visformer.model.tokenizer import Tokenizer
from visformer.model.transformer import Transformer
from visformer.model.untrained import Untrained, is_untrained_name
from visformer.system.files import called
from visformer.system.memory import keep_freed_memory


def load(
    name: str | Path,
    *,
    moment: int | None = None,
    device: str | torch.device = "cpu",
    dtype: torch.dtype | None = None,
    device_map: Any = None,
    revision: str | None = None,
    quantization_config: Any = None,
) -> TracedModel:
    """Load a model by name: bundled, from a local folder, from the Hugging Face hub, or untrained.

    Bundled models and folders use no network. Also tells malloc, process-wide, to keep freed memory for the next
    trace (:mod:`visformer.system.memory`).

    Args:
        name: "en-zh", "mini-gpt", "mini-gpt-2" or "mini-caption", the bundled ones; a folder with a visformer or
            transformers checkpoint, or with an adapter of peft's, whose base model is loaded, too; a hub id,
            "owner/model"; the name of an untrained Transformer (:mod:`visformer.model.untrained`); that of a small one
            that is trained now, in seconds (:mod:`visformer.adapters.learning.recipe`); or "broken-1" to "broken-8",
            which have a fault to be found.
        moment: an earlier moment of its training, as numbered by :func:`visformer.moments`; negative numbers count from
            the end. The name "en-zh@3" means moment 3 as well.
        device: device to run the model on.
        dtype: torch.float32, float64, float16 or bfloat16, of the weights; None: as a transformers model was saved, and
            float32 for others.
        device_map: as for transformers' from_pretrained, in place of ``device``: "auto", or module to device; what does
            not fit is offloaded. Needs accelerate.
        revision: branch, tag or commit of a model on the hub.
        quantization_config: as for transformers' from_pretrained.

    Returns:
        The model, ready to translate and to trace.

    Raises:
        ArgumentError: ``name`` is neither a text nor a path.
        CheckpointError: no such model or moment, or its files are missing or damaged; the message says how to restore
            them.
        ConfigError: no such untrained Transformer is possible, no such model with a fault, no such device can be used,
            dtype is another one, or an option is for transformers' models only.
    """
    _require_place(device, dtype)
    given = {"device_map": device_map, "revision": revision, "quantization_config": quantization_config}
    options = {option: value for option, value in given.items() if value is not None}
    keep_freed_memory()
    if not isinstance(name, str | os.PathLike):  # or its text would be looked for on the hub
        raise ArgumentError(
            N_("{name!r} is not a model name: give a bundled one ({bundled}), a folder, or a Hugging Face hub id."),
            name=name,
            bundled=", ".join(BUNDLED),
        )
    name, moment, chosen = find(str(name), moment)
    if options and (name in BUNDLED or is_untrained_name(name) or is_trained_name(name) or is_broken_name(name)):
        raise ConfigError(
            N_("{option} is for models of transformers, and {name} is none: leave it out."),
            option=next(iter(options)),
            name=name,
        )
    if is_untrained_name(name):
        random = _from_seed(Untrained.named(name))
        random.module.to(device=device, dtype=dtype)
        return random
    if is_trained_name(name):
        learned = trained_here(name)
        learned.module.to(device=device, dtype=dtype)
        return learned
    if is_broken_name(name):
        return broken(name, cast(OwnModel, load(base_of(name), device=device, dtype=dtype)))
    require_name(name)
    model = _load(name, chosen, device=device, dtype=dtype, **options)
    if chosen.folder != folder_of(name):  # one of a folder of transformers', which its other moments are found by
        model.info = replace(model.info, source=str(folder_of(name)))
    if moment is not None:
        model.info = replace(model.info, name=f"{called(folder_of(name))}@{moment}", moment=moment)
    return model


_DTYPES = (torch.float32, torch.float64, torch.float16, torch.bfloat16)


def _require_place(device: str | torch.device, dtype: torch.dtype | None) -> None:
    """Refuse a device that cannot be used, and a dtype in which no model computes."""
    if dtype is not None and dtype not in _DTYPES:
        raise ConfigError(
            N_("{name}={value!r} is not known: choose one of {choices}."),
            name="dtype",
            value=dtype,
            choices=", ".join(map(str, _DTYPES)),
        )
    try:
        torch.empty(1, device=device)
    except (RuntimeError, TypeError, AssertionError, NotImplementedError) as error:
        raise ConfigError(
            N_("device={value!r} cannot be used here ({reason}): leave it out to compute on the CPU."),
            value=device,
            reason=str(error).splitlines()[0].rstrip("."),
        ) from error


def _load(
    name: str, chosen: Checkpoint, *, device: str | torch.device, dtype: torch.dtype | None, **options: Any
) -> TracedModel:
    folder = chosen.folder
    if not folder.is_dir() or _is_of_transformers(folder):
        from visformer.adapters.huggingface.load import load_hub

        return load_hub(str(folder) if folder.is_dir() else name, device=device, dtype=dtype, **options)
    module, tokenizer = load_checkpoint(folder, weights=chosen.weights, dtype=dtype or torch.float32)
    licence, source = "-", str(folder)
    if name in BUNDLED:
        licence, source = "Apache-2.0", BUNDLED[name].source
    model = adapted(module.to(device), tokenizer, name=called(folder), licence=licence, source=source)
    if isinstance(model, Translator) and chosen.weights is None:  # the threshold is of the trained model
        model.unsure_below = unsure_below(folder)
    return model


def _is_of_transformers(folder: Path) -> bool:
    """Whether transformers or peft has written a folder: visformer writes neither file."""
    return any((folder / file).is_file() for file in ("config.json", "adapter_config.json"))


def load_to_serve(name: str | Path) -> TracedModel:
    """Load a model as :func:`load` does, giving torch half of the cores (OMP_NUM_THREADS overrides it).

    A sentence is too short to gain from more. The other cores decode for other visitors, or draw where the browser runs
    on the same machine. Threads that wait for each other on a busy core take several times as long as a single thread.
    """
    if "OMP_NUM_THREADS" not in os.environ:
        torch.set_num_threads(max(1, (os.cpu_count() or 2) // 2))
    return load(name)


def nbytes_of(name: str) -> int:
    """Return the bytes that a model's weights will take, without loading them; 0 if its files cannot be read.

    The model is bundled, untrained, or on this machine.
    """
    if is_untrained_name(name):
        return _untrained_nbytes(replace(Untrained.named(name), seed=0))
    if is_trained_name(name):
        with torch.device("meta"):
            return sum(weight.nbytes for weight in build(config_of(Recipe.named(name))).parameters())
    if is_broken_name(name):
        return nbytes_of(base_of(name))
    try:
        folder = find(name)[2].folder
        if not folder.is_dir():
            from visformer.adapters.huggingface.files import snapshot_of

            folder = snapshot_of(name)
    except (CheckpointError, ValueError):  # the latter: no name on a hub; loading it says what is wrong
        return 0
    nbytes = 0
    with suppress(OSError, SafetensorError, zlib.error):  # here, too
        for path in folder.glob("model.z"):
            return sum(weight.nbytes for weight in unpack(path.read_bytes()).values())
        for path in [*folder.glob("model.safetensors")] or folder.glob("model-*-of-*.safetensors"):
            with safe_open(path, framework="pt") as file:
                for weight in map(file.get_slice, file.keys()):
                    kept = _is_of_transformers(folder) and weight.get_dtype() in ("F16", "BF16")
                    nbytes += (2 if kept else 4) * prod(weight.get_shape())
    return nbytes


def trained_here(name: str, weights: Mapping[str, Any] | None = None) -> TracedModel:
    """Return a small model by the name of its training; ``weights``: where it was trained before, NumPy arrays.

    Raises:
        ConfigError: there is no such training.
    """
    recipe = Recipe.named(name)
    module, tokenizer = trained(recipe, weights)
    return adapted(
        module, tokenizer, name=recipe.name, source=f"trained here for {recipe.step} steps, seed {recipe.seed}"
    )


def outline(name: str) -> Translator:
    """Return an untrained model without its numbers: its vocabulary, its sizes and the names of its tensors.

    Raises:
        ConfigError: as for :func:`load`.
    """
    return _from_seed(Untrained.named(name), device="meta")


@lru_cache(maxsize=64)
def _untrained_nbytes(sizes: Untrained) -> int:
    """Return the bytes of the weights, kept for other seeds: an outline takes as long as drawing a page."""
    return sum(weight.nbytes for weight in _from_seed(sizes, device="meta").module.parameters())


def wrap(module: nn.Module, tokenizer: Any) -> TracedModel:
    """Wrap a model that is already in memory. Between two calls it is as it was before: its mode, attention and hooks.

    Args:
        module: a visformer Transformer or GPT, or a transformers model, which computes with visformer's attention
            function while a call lasts.
        tokenizer: its tokenizer: of visformer's own models a :class:`visformer.model.tokenizer.Tokenizer`, of others
            as returned by transformers' AutoTokenizer; of a model that reads pictures what AutoImageProcessor returns,
            or AutoProcessor if it reads texts, too.

    Returns:
        The same model, ready to translate and to trace.

    Raises:
        VisformerError: another kind of module or tokenizer; the model reads sound, or pictures that are no grid.
        CheckpointError: the tokenizer of another model, with more tokens than this one has embeddings.
    """
    if isinstance(module, Transformer | GPT):
        _require_tokenizer(tokenizer, Tokenizer, "visformer.model.tokenizer.Tokenizer")
        return adapted(module, tokenizer)
    if "transformers" in sys.modules:
        plain = _without_peft(module)

        from visformer.adapters.huggingface.model import is_pretrained
        from visformer.adapters.huggingface.pictures import adapted as adapted_of_transformers

        if is_pretrained(plain):
            return adapted_of_transformers(plain, tokenizer)
    raise VisformerError(
        N_("wrap takes a visformer.Transformer, a visformer.GPT or a transformers model, not {kind}."),
        kind=type(module).__name__,
    )


def _without_peft(module: Any) -> Any:
    """Return the model that a PeftModel is around, whose modules hold the adapters."""
    if not hasattr(module, "get_base_model") or not hasattr(module, "peft_config"):
        return module
    for adapter in module.peft_config.values():
        if adapter.is_prompt_learning:
            raise VisformerError(
                N_("{kind} adapters put tokens before the text, which cannot be shown: wrap the model without it."),
                kind=str(getattr(adapter.peft_type, "value", adapter.peft_type)),
            )
    return module.get_base_model()


def _require_tokenizer(tokenizer: Any, kind: type, wanted: str) -> None:
    if not isinstance(tokenizer, kind):
        raise VisformerError(
            N_("wrap needs the {what} of this model, {wanted}, not {kind}."),
            what=N_("tokenizer"),
            wanted=wanted,
            kind=type(tokenizer).__name__,
        )


def untrained(
    like: TracedModel | None = None,
    *,
    seed: int = 0,
    d_model: int | None = None,
    n_heads: int | None = None,
    n_encoder_layers: int | None = None,
    n_decoder_layers: int | None = None,
    d_ff: int | None = None,
    norm: str | None = None,
    position: PositionName | None = None,
) -> Translator:
    """Create a Transformer with random weights, as training starts from.

    ``untrained(d_model=128, n_heads=4)`` has the bundled tokenizer; ``untrained(model, norm="pre")`` has the tokenizer
    and the sizes of ``model``.

    Args:
        like: model to copy tokenizer and sizes from; None: the bundled tokenizer, and the sizes of
            :class:`visformer.model.untrained.Untrained`.
        seed: seed of the weights; torch's global generator is not affected.
        d_model: width of every vector between layers; None, here and below: as ``like`` has it.
        n_heads: attention heads per layer; must divide d_model.
        n_encoder_layers: encoder blocks.
        n_decoder_layers: decoder blocks.
        d_ff: inner width of the feed-forward networks.
        norm: "post" or "pre".
        position: positional encoding, see :class:`visformer.TransformerConfig`.

    Returns:
        The model, in evaluation mode; it translates and traces as a trained one does.

    Raises:
        ConfigError: no such Transformer is possible.
        VisformerError: ``like`` is not one of visformer's own Transformers.
    """
    given: dict[str, Any] = {
        "d_model": d_model,
        "n_heads": n_heads,
        "n_encoder_layers": n_encoder_layers,
        "n_decoder_layers": n_decoder_layers,
        "d_ff": d_ff,
        "norm": norm,
        "position": position,
    }
    choices = {name: value for name, value in given.items() if value is not None}
    if like is None:
        return _from_seed(Untrained(seed=seed, **choices))
    if not isinstance(like, Translator):
        raise VisformerError(
            N_(
                "Pre- and post-norm are compared in untrained copies of visformer's own Transformers; "
                "this is another model."
            )
        )
    config = like.module.config
    assert isinstance(config, TransformerConfig)  # a translator reads text
    sizes = {name: getattr(config, name) for name in Untrained().sizes}
    return _from_seed(Untrained(**{**sizes, **choices}, seed=seed), like.tokenizer, config)


def _from_seed(
    wanted: Untrained,
    tokenizer: Tokenizer | None = None,
    like: TransformerConfig | None = None,
    *,
    device: str = "cpu",
) -> Translator:
    tokenizer = tokenizer or _bundled_tokenizer()
    config = wanted.config(len(tokenizer)) if like is None else replace(like, **wanted.sizes)
    with torch.device(device):
        module = initial_model(config, wanted.seed)
    return Translator(module.eval(), tokenizer, name=wanted.name, source=f"random weights, seed {wanted.seed}")


@cache
def _bundled_tokenizer() -> Tokenizer:
    return Tokenizer.load(folder_of(TRANSLATOR) / "tokenizer.json")
