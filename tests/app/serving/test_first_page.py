"""The page that is served before the script has run, with Streamlit's own files."""

import asyncio

import pytest
from starlette.applications import Starlette
from starlette.middleware import Middleware
from streamlit.web.server.starlette.starlette_static_routes import create_streamlit_static_assets_routes

from visformer.app.streamlit_private.first_page import FirstPage

APP = Starlette(routes=create_streamlit_static_assets_routes(""), middleware=[Middleware(FirstPage)])


def get(path, preferred, method="GET"):
    """Return status, headers and body of a response."""
    path, _, query = path.partition("?")
    scope = {"type": "http", "method": method, "path": path, "root_path": "", "query_string": query.encode()}
    scope |= {"headers": [(b"accept-language", preferred.encode())], "http_version": "1.1", "server": ("visformer", 80)}
    sent = []

    async def receive():  # the client never disconnects
        await asyncio.Event().wait()

    async def send(message):
        sent.append(message)

    asyncio.run(APP(scope, receive, send))
    headers = {name.decode(): value.decode() for name, value in sent[0]["headers"]}
    return sent[0]["status"], headers, b"".join(message.get("body", b"") for message in sent[1:])


@pytest.mark.parametrize(
    ("path", "preferred", "lang"),
    [
        ("/", "zh-TW,zh;q=0.9,en;q=0.8", "zh"),
        ("/masks", "zh-HK", "zh"),
        ("/?lang=en", "zh-CN", "en"),
        ("/?lang=zh&text=a", "en-GB,en;q=0.9", "zh"),
        ("/?lang=fr", "fr", "en"),
        ("/?lang=%3Cb%3E", "", "en"),
    ],
)
def test_the_first_page_has_the_visitors_language(path, preferred, lang):
    status, headers, body = get(path, preferred)
    assert status == 200
    assert f'<html lang="{lang}">' in body.decode()
    assert "<title>Visformer</title>" in body.decode()
    assert int(headers["content-length"]) == len(body)
    assert "etag" not in headers


def test_its_length_is_told_without_it():
    status, headers, body = get("/", "zh", method="HEAD")
    assert (status, body) == (200, b"")
    assert int(headers["content-length"]) == len(get("/", "zh")[2])


def test_other_files_pass_unchanged():
    _, headers, body = get("/favicon.png", "zh")
    assert headers["content-type"] == "image/png"
    assert "etag" in headers
    assert body[1:4] == b"PNG"
