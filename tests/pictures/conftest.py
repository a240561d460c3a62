"""A trace of all tensors of a small model."""

import pytest

from tests.support import tiny_translator


@pytest.fixture(scope="session")
def model():
    return tiny_translator(tie_embeddings=True)


@pytest.fixture(scope="session")
def trace(model):
    return model.trace("She likes the school, the school.", "我喜欢学校。", record=("*",))
