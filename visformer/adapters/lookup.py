"""Check that a model of a given name exists, before torch is imported."""

import os
from importlib.util import find_spec
from pathlib import Path

from visformer.adapters.bundled import BUNDLED
from visformer.adapters.faults.names import names_broken, number_of
from visformer.adapters.history import find
from visformer.adapters.learning.recipe import Recipe, names_trained
from visformer.errors import N_, CheckpointError
from visformer.model.untrained import Untrained, names_untrained
from visformer.system.files import require_files


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
    if names_untrained(name):
        return Untrained.named(name).name
    if names_trained(name):
        return Recipe.named(name).name
    if names_broken(name):
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
