"""A replica is killed while visitors work: they continue on the other one, with their sentence and selection."""

import asyncio
import urllib.parse
import urllib.request

import pytest

from benchmarks.load.expected import expected
from benchmarks.load.plan import own_sentences
from benchmarks.load.visitor import Visitor
from tests.browser.support import state_of, submit, tokens, type_sentence, wait_until_done
from tests.deploy.conftest import MARKER, run

VISITORS = 8


def sentences(count):
    return [sentence.replace(".", f" {MARKER}.") for sentence, _ in zip(own_sentences(), range(count), strict=False)]


def assert_nothing_typed_is_logged(logs):
    assert not [name for name, log in logs.items() if MARKER.encode() in log]


def replicas_by_cookie(site, count):
    """Return the cookies of ``count`` visitors and their replicas, both of which have visitors."""
    while True:
        cookies = [site.cookie() for _ in range(count)]
        assert len(set(cookies)) == count, "each visitor gets a cookie of their own"
        replicas = {cookie: site.replica_of(cookie) for cookie in cookies}
        if len(set(replicas.values())) == 2:
            return replicas


async def work_while_a_replica_is_killed(site, replicas, typed, results):
    """Return how many visitors had to change the replica."""
    visitors = {cookie: Visitor(site.address, headers={"Cookie": cookie}) for cookie in replicas}
    first = dict(zip(visitors, typed, strict=False))

    def check(answer, sentence):
        assert answer.picture == results[sentence].picture
        assert answer.translation == results[sentence].translation

    for cookie, visitor in visitors.items():
        await visitor.open()
        check(await visitor.enter(first[cookie]), first[cookie])
    killed, answered = next(iter(replicas.values())), asyncio.Semaphore(0)

    async def work(cookie, more):
        for sentence in more:
            try:
                answer = await visitors[cookie].enter(sentence)
            except Exception:
                assert replicas[cookie] is killed, "visitors of the other replica are not affected"
                return
            finally:
                answered.release()
            check(answer, sentence)

    rest = typed[len(visitors) :]
    working = [asyncio.create_task(work(c, rest[i :: len(visitors)])) for i, c in enumerate(visitors)]
    for _ in visitors:  # all of them are at work
        await answered.acquire()
    killed.kill()
    await asyncio.gather(*working)
    for visitor in visitors.values():
        await visitor.close()
    moved = [cookie for cookie, replica in replicas.items() if replica is killed]
    for cookie in moved:  # what Streamlit's page does by itself: connect again, with the same address
        again = Visitor(site.address, headers={"Cookie": cookie})
        check(await again.open(visitors[cookie].query), urllib.parse.parse_qs(visitors[cookie].query)["text"][0])
        check(await again.enter(first[cookie]), first[cookie])
        await again.close()
    return len(moved)


@pytest.mark.full
def test_visitors_of_a_killed_replica_continue_on_the_other(site):
    typed = sentences(5 * VISITORS)
    moved = run(work_while_a_replica_is_killed(site, replicas_by_cookie(site, VISITORS), typed, expected(typed)))
    assert 0 < moved < VISITORS
    logs = site.logs()
    assert b"/_stcore/stream 101" in logs["access.log"]
    assert b" 502, 200" in logs["access.log"] or b" 502, 101" in logs["access.log"], "the other one was asked"
    assert_nothing_typed_is_logged(logs)


@pytest.mark.full
def test_a_browser_reconnects_by_itself(site, chromium):
    """Streamlit's page reconnects; sentence, page and selected head are in its address."""
    context = chromium.new_context(viewport={"width": 1440, "height": 900})
    page = context.new_page()
    page.set_default_timeout(120_000)
    page.goto(f"{site.address}/?stack=cross&layer=2&head=3")
    page.wait_for_selector(".vf-root[data-painted]")
    page.wait_for_selector("input[type=text]:visible")
    (sentence, another) = sentences(2)
    type_sentence(page, sentence)
    page.wait_for_url(f"**text=*{MARKER}*")
    before, address = state_of(page), page.url
    cookie = next(f"{c['name']}={c['value']}" for c in context.cookies() if c["name"] == "visitor")
    killed = site.replica_of(cookie)
    killed.kill()
    (other,) = [replica for replica in site.replicas if replica is not killed]
    page.wait_for_function("() => document.querySelector('[data-testid=stStatusWidget]') === null", timeout=120_000)
    for _ in range(600):
        with urllib.request.urlopen(f"{other.address}/metrics", timeout=120) as answer:
            if b"visformer_sessions 1.0" in answer.read():
                break
        page.wait_for_timeout(200)
    else:
        pytest.fail("the browser did not reconnect")
    wait_until_done(page)
    assert page.get_by_label("Sentence", exact=True).input_value() == sentence
    assert page.url == address
    after = state_of(page)
    assert {n: v for n, v in after.items() if n != "painted"} == {n: v for n, v in before.items() if n != "painted"}
    results = expected([sentence, another])
    assert tuple(tokens(page)) == results[sentence].picture.tokens[0]
    submit(page, another)
    page.get_by_text(f"Translation: {results[another].translation}", exact=True).wait_for()
    assert tuple(tokens(page)) == results[another].picture.tokens[0]
    context.close()
    assert_nothing_typed_is_logged(site.logs())
