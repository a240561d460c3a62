"""Rooms of a test."""

import pytest

from visformer.app.presentation import following, rooms
from visformer.app.presentation.rooms import Waking


@pytest.fixture
def own_rooms(monkeypatch):
    """Rooms in which every session but "gone" is connected; a test reruns sessions and closes rooms itself."""
    own = rooms.Rooms(lambda session: session != "gone")
    monkeypatch.setattr(following, "ROOMS", own)
    monkeypatch.setattr(following, "WAKING", Waking(lambda session: None))
    monkeypatch.setattr(following, "own_address", lambda: "192.0.2.1")
    monkeypatch.setattr(following, "_start_checks", lambda: None)
    return own
