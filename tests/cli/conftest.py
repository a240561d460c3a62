"""The checkpoint of a tiny translator, for all tests of the command line."""

import pytest

from tests.support import tiny_tokenizer, tiny_translator
from visformer.model.checkpoints import save_checkpoint


@pytest.fixture(scope="session")
def checkpoint(tmp_path_factory):
    folder = tmp_path_factory.mktemp("models") / "m"
    save_checkpoint(folder, tiny_translator().module, tiny_tokenizer())
    return str(folder)


@pytest.fixture(scope="session")
def model(checkpoint):
    """Arguments that select it."""
    return ["--model", checkpoint]
