"""Links of version 1, in which "/" was the explorer, and files of that version."""

import asyncio
import json

from hypothesis import given
from hypothesis import strategies as st
from starlette.responses import PlainTextResponse
from starlette.testclient import TestClient

from visformer.app.serving.middleware.moved import Moved
from visformer.app.session import url_state

CLIENT = TestClient(Moved(PlainTextResponse("passed on")), follow_redirects=False)


def test_an_old_link_to_the_first_page_opens_the_explorer_with_the_same_state():
    for query in (
        "v=1&lang=zh",
        "v=1&text=I+like+cats.&lesson=x&step=5",
        "stack=cross&layer=3&head=3&view=arcs",
        "text=%E6%88%91%E5%96%9C%E6%AC%A2%E7%8C%AB%E3%80%82",
        "lesson=from-text-to-translation&step=10&layer=2",
    ):
        response = CLIENT.get(f"/?{query}")
        assert (response.status_code, response.headers["location"]) == (307, f"attention?{query}")


def test_every_other_request_passes():
    of_now = ["/", "/?lang=zh", "/?follow=abcdef", "/?lesson=x&step=3&text=a", "/?v=2&text=a&layer=2"]
    for link in (*of_now, "/masks?v=1", "/static/a?v=1"):
        assert CLIENT.get(link).text == "passed on", link


def test_only_requests_of_pages_are_redirected():
    seen = []

    async def app(scope, _receive, _send):
        seen.append(scope["type"])

    scope = {"type": "websocket", "path": "/", "query_string": b"v=1", "headers": []}
    asyncio.run(Moved(app)(scope, None, None))
    assert seen == ["websocket"]


@given(page=st.sampled_from(["", "attention", "masks"]), version=st.sampled_from([1, 2]))
def test_a_file_opens_the_page_that_its_version_meant(page, version):
    content = {"visformer_state": version, "text": "a"} | ({"page": page} if page else {})
    texts, remarks = url_state.from_file(json.dumps(content).encode())
    assert url_state.read(texts)[0].page == (page or ("attention" if version == 1 else ""))
    assert not remarks


def test_the_first_page_has_a_name_that_can_be_typed():
    assert url_state.read({"page": "map"})[0].page == ""
