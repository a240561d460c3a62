"""What a visitor sees when the server or the connection fails and recovers."""

import signal
import time

import pytest

from tests.browser.conftest import free_port, start
from tests.browser.proxy import Proxy
from tests.browser.support import click_head, state_of, submit, tokens, type_sentence
from visformer.i18n import translations

pytestmark = pytest.mark.full

NOTICE = ".vf-connection"
DIALOG = "[data-testid='stDialog']"
LOST = (
    "The connection to the server is lost. You can still explore what you see, and your sentence is kept; the "
    "page reconnects by itself as soon as the server answers."
)
OUTAGE = 15.0
"""Seconds."""
CHECK_NOTICE = """(notice) => {
  const app = document.querySelector("[data-testid=stApp]")
  new MutationObserver((_, observer) => {
    observer.disconnect()
    setTimeout(() => (window.noticedEarly = notice.checkVisibility()), 500)
  }).observe(app, { attributeFilter: ["data-test-connection-state"] })
}"""
"""Checks whether the notice is visible half a second after the connection is lost, by the browser's own clock."""
IS_ON_TOP = """(notice) => {
  const { left, right, top, height } = notice.getBoundingClientRect()
  const at = (x) => notice.getRootNode().elementFromPoint(x, top + height / 2)
  return [left + 8, right - 8].every((x) => at(x) === notice)
}"""


class Server:
    """A server of the app that can be stopped, killed and restarted on the same port."""

    def __init__(self, folder):
        self.port, self.log = free_port(), folder / "log.txt"
        self.address = f"http://127.0.0.1:{self.port}"
        self.start()

    def start(self):
        self.process = start(self.port, self.log, MALLOC_ARENA_MAX="1")

    def send(self, number):
        self.process.send_signal(number)

    def kill(self):
        self.process.kill()
        self.process.wait(timeout=20)


@pytest.fixture(scope="module")
def server(tmp_path_factory):
    server = Server(tmp_path_factory.mktemp("server"))
    yield server
    server.send(signal.SIGCONT)
    server.kill()
    log = server.log.read_text()
    assert "Traceback" not in log, log


@pytest.fixture
def proxy(server):
    proxy = Proxy(server.port)
    yield proxy
    proxy.close()


@pytest.fixture
def visit(chromium):
    """Open pages without recording their problems: losing the server causes console errors."""
    contexts = []

    def open_page(address, **context):
        contexts.append(chromium.new_context(viewport={"width": 1440, "height": 900}, **context))
        page = contexts[-1].new_page()
        page.set_default_timeout(90_000)
        page.goto(address)
        page.wait_for_selector(".vf-root[data-painted]")
        page.wait_for_selector("input[type=text]:visible")
        return page

    yield open_page
    for context in contexts:
        context.close()


def wait_for_sentence(page, text, box="Sentence"):
    page.get_by_label(box, exact=True).and_(page.locator(f"[value='{text}']")).wait_for()
    page.locator(".vf-side").first.get_by_text(text.split()[0], exact=True).first.wait_for(state="attached")


def test_sentence_and_selection_survive_a_cut_connection_and_a_suspended_server(server, proxy, visit):
    """One visitor's connection is cut; another's server is suspended, like a laptop with its lid closed."""
    cut = visit(proxy.address + "/attention", locale="zh-CN")
    type_sentence(cut, "She likes the old school.", box="句子")
    click_head(cut, 1, 2)
    suspended = visit(server.address + "/attention", locale="en-US")
    start = time.monotonic()
    cut.locator(NOTICE).evaluate(CHECK_NOTICE)
    proxy.cut()
    server.send(signal.SIGSTOP)
    submit(suspended, "We went home.")

    cut.locator(NOTICE).wait_for()
    assert cut.evaluate("window.noticedEarly") is False, "most interruptions are shorter"
    assert cut.locator(NOTICE).inner_text() == translations("zh").gettext(LOST) != LOST
    cut.wait_for_timeout(4000)  # Streamlit's own dialog would appear after some attempts
    assert not cut.locator(DIALOG).is_visible()
    click_head(cut, 2, 5)
    cut.locator(".vf-root[data-layer='2'][data-head='5']").wait_for()
    cut.wait_for_timeout(max(0, 1000 * (OUTAGE - (time.monotonic() - start))))

    server.send(signal.SIGCONT)
    proxy.restore()
    wait_for_sentence(suspended, "We went home.")
    assert not suspended.locator(NOTICE).is_visible()
    cut.locator(NOTICE).wait_for(state="hidden")
    assert cut.get_by_label("句子", exact=True).input_value() == "She likes the old school."
    assert {name: state_of(cut)[name] for name in ("layer", "head")} == {"layer": "2", "head": "5"}
    type_sentence(cut, "It was late.", box="句子")
    assert tokens(cut)[0] == "It"
    cut.wait_for_timeout(500)
    assert not cut.locator(DIALOG).is_visible()


@pytest.mark.parametrize("request_is_read", [True, False])
def test_a_restarted_server_computes_the_sentence_during_which_it_was_killed(server, visit, request_is_read):
    page = visit(server.address + "/attention?view=arcs&stack=cross&layer=3&head=2")
    type_sentence(page, "She likes the old school.")
    if not request_is_read:
        server.send(signal.SIGSTOP)
    submit(page, "We went to the school yesterday.")
    page.wait_for_timeout(20 if request_is_read else 200)
    server.kill()
    page.locator(NOTICE).wait_for()
    page.set_viewport_size({"width": 1280, "height": 720})
    assert page.locator(NOTICE).evaluate(IS_ON_TOP), "on a projector it reaches over the side bar"
    server.start()
    page.locator(NOTICE).wait_for(state="hidden")
    wait_for_sentence(page, "We went to the school yesterday.")
    assert tokens(page) == ["We", "went", "to", "the", "school", "yesterday", ".", "</s>"]
    state = state_of(page)
    assert (state["stack"], state["layer"], state["head"], state["view"]) == ("decoder.cross_attn", "2", "1", "arcs")
    query = "v=2&text=We+went+to+the+school+yesterday.&stack=cross&view=arcs&layer=3&head=2"
    page.wait_for_url(f"{server.address}/attention?{query}")
