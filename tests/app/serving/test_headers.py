"""The security headers of every response, and uploads of unknown length."""

import pytest
from starlette.applications import Starlette
from starlette.middleware import Middleware
from starlette.responses import PlainTextResponse
from starlette.routing import Route
from starlette.testclient import TestClient
from streamlit.web.server.starlette.starlette_static_routes import create_streamlit_static_assets_routes

from visformer.app.serving.middleware import SecurityHeaders


async def echo(request):
    return PlainTextResponse(await request.body())


@pytest.fixture
def client():
    routes = [Route("/echo", echo, methods=["PUT"]), *create_streamlit_static_assets_routes("")]
    return TestClient(Starlette(routes=routes, middleware=[Middleware(SecurityHeaders)]))


def test_every_response_has_the_headers(client):
    for path in ("/", "/masks", "/favicon.png", "/static/none.js", "/echo"):
        headers = client.get(path).headers
        assert headers["x-content-type-options"] == "nosniff", path
        policy = dict(part.split(" ", 1) for part in headers["content-security-policy"].split("; "))
        assert policy["default-src"] == policy["base-uri"] == policy["form-action"] == "'none'", path
        assert policy["connect-src"] == policy["frame-ancestors"] == "'self'", path
        assert not {"'unsafe-inline'", "'unsafe-eval'", "*", "data:"} & set(policy["script-src"].split()), path


def test_the_operator_names_who_may_embed_the_app(client, monkeypatch):
    monkeypatch.setenv("VISFORMER_FRAME_ANCESTORS", "https://moodle.example.org, https://*.example.com:8443")
    policy = client.get("/").headers["content-security-policy"]
    assert policy.endswith("; frame-ancestors 'self' https://moodle.example.org https://*.example.com:8443")


def test_a_body_of_unknown_length_is_refused(client):
    refused = client.put("/echo", content=iter([b"a", b"b"]))
    assert refused.status_code == 411
    assert refused.headers["x-content-type-options"] == "nosniff"
    assert client.put("/echo", content=b"ab").text == "ab"
