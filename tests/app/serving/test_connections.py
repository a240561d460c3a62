"""The connections of browsers; websockets are spoken to by the websockets library's own client."""

import pytest
from websockets.client import ClientProtocol
from websockets.extensions.permessage_deflate import ClientPerMessageDeflateFactory
from websockets.uri import parse_uri

from visformer.app.serving import connections
from visformer.app.serving.connections import Frames
from visformer.system import limits


@pytest.fixture
def clock(monkeypatch):
    now = [1000.0]
    monkeypatch.setattr(connections.time, "monotonic", lambda: now[0])
    return now


@pytest.fixture
def pair():
    """A client and a server after their handshake; ``sent`` takes to the server what the client wrote."""
    client = ClientProtocol(parse_uri("ws://localhost/"), extensions=[ClientPerMessageDeflateFactory()])
    server = Frames(max_size=limits.SENT_BYTES)

    def sent():
        server.receive_data(b"".join(client.data_to_send()))
        return [frame for frame in server.events_received() if hasattr(frame, "opcode")]

    client.send_request(client.connect())
    server.receive_data(b"".join(client.data_to_send()))
    server.send_response(server.accept(server.events_received()[0]))
    client.receive_data(b"".join(server.data_to_send()))
    assert client.state.name == server.state.name == "OPEN"
    assert not client.extensions, "nothing is compressed"
    return client, server, sent


FLOODS = {
    "pings": lambda client: client.send_ping(b""),
    "ends that never come": lambda client: client.send_continuation(b"", fin=False),
    "messages": lambda client: client.send_binary(b""),
    "long messages": lambda client: client.send_binary(bytes(limits.SENT_BYTES)),
}


@pytest.mark.parametrize("flood", FLOODS)
def test_a_flood_ends_the_connection_in_its_midst(pair, clock, flood):
    client, server, sent = pair
    if flood.startswith("ends"):
        client.send_binary(b"x", fin=False)
    for _ in range(5 if flood == "long messages" else 1_000):
        FLOODS[flood](client)
    read = sent()
    assert str(server.parser_exc) == "too many messages"
    assert len(read) <= connections.AT_ONCE * limits.SENT_RATE / connections.FRAME == 300
    assert sum(len(frame.data) for frame in read) <= connections.AT_ONCE * limits.SENT_RATE


def test_an_arrow_that_is_held_down_for_minutes_is_no_flood(pair, clock):
    """Fifteen messages a second of 4 kB each."""
    client, server, sent = pair
    for _ in range(15 * 300):
        client.send_binary(bytes(4_000))
        assert len(sent()) == 1
        clock[0] += 1 / 15
    assert server.parser_exc is None


@pytest.mark.parametrize("parts", [[limits.SENT_BYTES + 1], [limits.SENT_BYTES, 1]], ids=str)
def test_a_message_that_is_too_long_is_not_read(pair, parts):
    client, server, sent = pair
    client.send_binary(bytes(parts[0]), fin=len(parts) == 1)
    for part in parts[1:]:
        client.send_continuation(bytes(part), fin=True)
    assert sum(len(frame.data) for frame in sent()) <= limits.SENT_BYTES
    assert "exceeds limit" in str(server.parser_exc)


def test_an_address_has_so_many_websockets_at_once_and_others_later(clock, monkeypatch):
    openings = connections.Openings()
    assert {openings.wait("hall") for _ in range(limits.OPENINGS)} == {0.0}
    assert [openings.wait("hall") for _ in range(2)] == pytest.approx(
        [1 / limits.OPENING_RATE, 2 / limits.OPENING_RATE]
    )
    assert openings.wait("elsewhere") == 0.0
    clock[0] += 1
    assert openings.wait("hall") == 0.0


@pytest.mark.parametrize(
    ("allowed", "most", "visitors", "raised"),
    [(1024, 1024, 167, 1024), (256, 4096, 935, 4096), (1024, -1, 1000, 4356), (-1, -1, 1000, None)],
)
def test_open_files_are_enough_for_all_visitors(monkeypatch, caplog, allowed, most, visitors, raised):
    """4 files each, and 356 for all else; -1: no limit."""
    resource, had = connections.resource, []
    monkeypatch.setattr(resource, "getrlimit", lambda _: (had[-1] if had else allowed, most))
    monkeypatch.setattr(resource, "setrlimit", lambda _, both: had.append(both[0]))
    openings = connections.Openings()
    openings.begin()
    assert openings.most == visitors
    assert had[-1:] == ([] if raised is None else [raised])
    assert (f"{visitors} visitors" in caplog.text) == (visitors < limits.SESSIONS)
