"""A process of node, shared by all tests."""

import pytest

from tests.js.node import Node


@pytest.fixture(scope="session")
def node():
    node = Node()
    yield node
    node.close()
