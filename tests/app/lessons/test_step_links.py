"""Links to steps that name no page lead to the step's page, in one entry of the browser's history."""

import pytest
from starlette.applications import Starlette
from starlette.middleware import Middleware
from starlette.responses import PlainTextResponse
from starlette.routing import Route
from starlette.testclient import TestClient

from visformer.app.lessons import lesson_file
from visformer.app.lessons.step_links import StepLinks
from visformer.app.session import url_state

APP = Starlette(
    routes=[Route("/{path:path}", lambda request: PlainTextResponse("served"))], middleware=[Middleware(StepLinks)]
)
STEPS = lesson_file.load(url_state.SHIPPED).steps


def led_to(link):
    """Return where a browser that opens a link is sent; None: the link itself is served."""
    return TestClient(APP, base_url="http://localhost").get(link, follow_redirects=False).headers.get("location")


@pytest.mark.parametrize("number", [i for i, step in enumerate(STEPS, 1) if step.state.page])
def test_a_step_is_opened_on_its_page(number):
    page = STEPS[number - 1].state.page
    assert led_to(f"/?lang=zh&lesson={url_state.SHIPPED}&step={number}") == (
        f"{page}?v=2&lang=zh&lesson={url_state.SHIPPED}&step={number}"
    )
    assert led_to(f"/app/?lesson={url_state.SHIPPED}&step={number}").startswith(f"{page}?"), "below a path of a proxy"
    assert led_to(f"/{page}?lesson={url_state.SHIPPED}&step={number}") is None


@pytest.mark.parametrize(
    "query",
    ["lesson=none", "lesson=", f"lesson={url_state.SHIPPED}&step=99", f"lesson={url_state.SHIPPED}&step=x", "x=1"],
)
def test_what_is_no_step_is_left_to_the_page(query):
    assert led_to(f"/?{query}") is None
