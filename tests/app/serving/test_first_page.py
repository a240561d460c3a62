"""The page that is served before the script has run, with Streamlit's own files."""

import base64
import hashlib
import re

from starlette.applications import Starlette
from starlette.middleware import Middleware
from starlette.middleware.gzip import GZipMiddleware
from starlette.testclient import TestClient
from streamlit.web.server.starlette.starlette_static_routes import create_streamlit_static_assets_routes

from visformer.app.streamlit_private.first_page import FirstPage, inline_scripts

LAYERS = [Middleware(FirstPage), Middleware(GZipMiddleware)]  # Streamlit compresses what is not a file of its own
CLIENT = TestClient(Starlette(routes=create_streamlit_static_assets_routes(""), middleware=LAYERS))


def test_the_first_page_has_the_visitors_language():
    for path, preferred, lang in (
        ("/", "zh-TW,zh;q=0.9,en;q=0.8", "zh"),
        ("/masks", "zh-HK", "zh"),
        ("/?lang=en", "zh-CN", "en"),
        ("/?lang=zh&text=a", "en-GB,en;q=0.9", "zh"),
        ("/?lang=fr", "fr", "en"),
        ("/?lang=%3Cb%3E", "", "en"),
    ):
        response = CLIENT.get(path, headers={"accept-language": preferred})
        assert response.status_code == 200
        assert f'<html lang="{lang}">' in response.text, (path, preferred)
        assert "<title>Visformer</title>" in response.text
        assert int(response.headers["content-length"]) == len(response.content), path
        assert "etag" not in response.headers


def test_the_first_page_says_where_its_server_is_by_a_script_that_the_policy_allows():
    page = CLIENT.get("/masks").text
    scripts = re.findall("<script>(.*?)</script>", page, re.DOTALL)
    assert "BACKEND_BASE_URL" in scripts[0] and page.index(scripts[0]) < page.index('<script type="module"')
    hashes = [base64.b64encode(hashlib.sha256(script.encode()).digest()).decode() for script in scripts]
    assert inline_scripts() == [f"'sha256-{each}'" for each in hashes]


def test_a_head_request_gets_the_length_without_the_page():
    response = CLIENT.head("/")
    assert (response.status_code, response.content) == (200, b"")
    assert int(response.headers["content-length"]) == len(CLIENT.get("/").content)


def test_other_files_pass_unchanged():
    response = CLIENT.get("/favicon.png")
    assert response.headers["content-type"] == "image/png"
    assert "etag" in response.headers
    assert response.content[1:4] == b"PNG"
