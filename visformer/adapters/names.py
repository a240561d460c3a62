"""Which names of models there are, before torch is imported: pages and links use them.

"broken-1" to "broken-8" have a fault each, which the name does not tell.
"""

import os
import re
from importlib.util import find_spec
from pathlib import Path

from visformer.adapters.checkpoints import BUNDLED, TRANSLATOR, find
from visformer.adapters.learning.recipe import Recipe, is_trained_name
from visformer.errors import N_, CheckpointError, ConfigError
from visformer.model.untrained import Untrained, is_untrained_name
from visformer.system.files import require_files

N_FAULTS = 8

_PREFIX = "broken-"
_UNMASKED = "trained-repeat-no-mask-seed0-step300"
_NO_MASK = 7
"""A translator that was trained with a mask and loses it translates as before: its decoding has nothing to hide yet."""


def is_broken_name(name: str | None) -> bool:
    """Whether this is meant as the name of a model with a fault, well-formed or not."""
    return name is not None and name.startswith(_PREFIX)


def number_of(name: str) -> int:
    """Return the number of a model with a fault, from 1.

    Raises:
        ConfigError: there is no such model.
    """
    match = re.fullmatch(rf"{_PREFIX}([1-{N_FAULTS}])", name, re.ASCII)
    if match is None:
        raise ConfigError(
            N_("There is no model {name!r}: the models with a fault are {first} to {last}."),
            name=name,
            first=f"{_PREFIX}1",
            last=f"{_PREFIX}{N_FAULTS}",
        )
    return int(match[1])


def base_of(name: str) -> str:
    """Return the name of the model that this one is, but for its fault.

    Raises:
        ConfigError: there is no such model.
    """
    return _UNMASKED if number_of(name) == _NO_MASK else TRANSLATOR


def require_name(name: str) -> None:
    """Refuse a name that is neither a bundled model nor a folder, and cannot be a hub id.

    Raises:
        CheckpointError: the name is empty, a path without a folder, or a hub id without transformers installed.
    """
    if not name.strip():
        raise CheckpointError(
            N_("{name!r} is not a model name: give a bundled one ({bundled}), a folder, or a Hugging Face hub id."),
            name=name,
            bundled=", ".join(BUNDLED),
        )
    if name in BUNDLED or os.path.isdir(name):
        return
    if Path(name).is_absolute() or name.startswith((".", "~")) or name.count("/") > 1:
        raise CheckpointError(N_("There is no model {name!r}: no such folder."), name=name)
    if find_spec("transformers") is None:
        raise CheckpointError(
            N_(
                "There is no model {name!r}: the bundled ones are {bundled}, and no folder of that name holds a "
                "visformer checkpoint. Models of transformers need one more install: {remedy}"
            ),
            name=name,
            bundled=", ".join(BUNDLED),
            remedy='pip install "visformer[hf]"',
        )


def made_here(name: str) -> str | None:
    """Return the one name of a model that needs no file: untrained, trained here, or with a fault; None: another.

    Raises:
        ConfigError: no such model is possible.
    """
    if is_untrained_name(name):
        return Untrained.named(name).name
    if is_trained_name(name):
        return Recipe.named(name).name
    if is_broken_name(name):
        number_of(name)
        return name
    return None


def require_model(name: str) -> None:
    """Refuse a name that cannot be loaded; the hub is queried for models that are not cached.

    Raises:
        CheckpointError: no such folder, no model or moment in it, or the hub does not know it or does not answer.
        ConfigError: no such untrained Transformer is possible, no such training, or no such fault.
    """
    name, _, chosen = find(name)
    if made_here(name):
        return
    require_name(name)
    if name in BUNDLED:
        return
    if chosen.folder.is_dir():
        require_files(chosen.folder)
        return
    from visformer.adapters.huggingface.files import UNANSWERED, files_of, helpful, is_here, require_weights

    with helpful(name, otherwise=UNANSWERED):
        if not is_here(name):
            require_weights(files_of(name))
