"""A replica is killed while visitors work: they continue on the other one, with their sentence and selection."""

import asyncio
import urllib.error
import urllib.parse
import urllib.request

import pytest

from benchmarks.load.expected import expected
from benchmarks.load.plan import own_sentences
from benchmarks.load.visitor import Visitor
from tests.browser.support import state_of, submit, tokens, type_sentence
from tests.deploy.conftest import run

MARKER = "zyxmarker"
VISITORS = 8


def sentences(count):
    return [sentence.replace(".", f" {MARKER}.") for sentence, _ in zip(own_sentences(), range(count), strict=False)]


def assert_own(answer, expected_here):
    assert answer.picture == expected_here.picture
    assert answer.translation == expected_here.translation


def cookies_of_both(site, count):
    """Return the cookies of ``count`` visitors, at least one for each replica."""
    while True:
        found = [site.cookie() for _ in range(count)]
        assert len(set(found)) == count, "each visitor gets its own"
        places = {cookie: site.replica_of(cookie) for cookie in found}
        if len(set(places.values())) == 2:
            return places


async def room(site, places, typed, looked_up):
    visitors = {cookie: Visitor(site.address, headers={"Cookie": cookie}) for cookie in places}
    first = dict(zip(visitors, typed, strict=False))
    for cookie, visitor in visitors.items():
        await visitor.open()
        assert_own(await visitor.enter(first[cookie]), looked_up[first[cookie]])
    lost = next(iter(places.values()))

    async def work(cookie, more):
        for sentence in more:
            try:
                assert_own(await visitors[cookie].enter(sentence), looked_up[sentence])
            except Exception:
                assert places[cookie] is lost, "nobody else notices"
                return
            await asyncio.sleep(0.02)

    rest = typed[len(visitors) :]
    working = [asyncio.create_task(work(c, rest[i :: len(visitors)])) for i, c in enumerate(visitors)]
    await asyncio.sleep(0.3)
    lost.kill()
    await asyncio.gather(*working)
    for visitor in visitors.values():
        await visitor.close()
    moved = [cookie for cookie, place in places.items() if place is lost]
    for cookie in moved:  # what Streamlit's page does by itself: once more, with the same address
        again = Visitor(site.address, headers={"Cookie": cookie})
        was = urllib.parse.parse_qs(visitors[cookie].query)["text"][0]
        assert_own(await again.open(visitors[cookie].query), looked_up[was])
        assert_own(await again.enter(first[cookie]), looked_up[first[cookie]])
        await again.close()
    return len(moved)


def test_visitors_of_a_killed_replica_go_on_at_the_other(site):
    typed = sentences(5 * VISITORS)
    looked_up = expected(typed)
    places = cookies_of_both(site, VISITORS)
    moved = run(room(site, places, typed, looked_up))
    assert 0 < moved < VISITORS
    logs = site.logs()
    assert b"/_stcore/stream 101" in logs["access.log"]
    assert b" 502, 200" in logs["access.log"] or b" 502, 101" in logs["access.log"], "the other one was asked"
    for name, log in logs.items():
        assert MARKER.encode() not in log, f"{name} holds what was typed"


def test_a_browser_goes_on_by_itself(site, chromium):
    """Streamlit's page reconnects; sentence, page and selected head are in its address."""
    context = chromium.new_context(viewport={"width": 1440, "height": 900})
    page = context.new_page()
    page.set_default_timeout(60_000)
    page.goto(f"{site.address}/?stack=cross&layer=2&head=3")
    page.wait_for_selector(".vf-root[data-painted]")
    page.wait_for_selector("input[type=text]:visible")
    (sentence, another) = sentences(2)
    type_sentence(page, sentence)
    page.wait_for_url(f"**text=*{MARKER}*")
    before, address = state_of(page), page.url
    cookie = next(f"{c['name']}={c['value']}" for c in context.cookies() if c["name"] == "visitor")
    lost = site.replica_of(cookie)
    lost.kill()
    (other,) = [replica for replica in site.replicas if replica is not lost]
    page.wait_for_function("() => document.querySelector('[data-testid=stStatusWidget]') === null", timeout=60_000)
    for _ in range(300):
        with urllib.request.urlopen(f"{other.address}/metrics", timeout=10) as answer:
            if b"visformer_sessions 1.0" in answer.read():
                break
        page.wait_for_timeout(200)
    else:
        pytest.fail("the browser did not come back")
    page.wait_for_timeout(2000)
    assert page.get_by_label("Sentence", exact=True).input_value() == sentence
    assert page.url == address
    after = state_of(page)
    assert {n: v for n, v in after.items() if n != "painted"} == {n: v for n, v in before.items() if n != "painted"}
    found = expected([sentence, another])
    assert tuple(tokens(page)) == found[sentence].picture.tokens[0]
    submit(page, another)
    page.get_by_text(f"Translation: {found[another].translation}", exact=True).wait_for()
    assert tuple(tokens(page)) == found[another].picture.tokens[0]
    context.close()
    for name, log in site.logs().items():
        assert MARKER.encode() not in log, f"{name} holds what was typed"


def test_answers_arrive_with_their_policy(site):
    with urllib.request.urlopen(site.address, timeout=10) as answer:
        assert answer.headers["X-Content-Type-Options"] == "nosniff"
        assert answer.headers["Content-Security-Policy"].startswith("default-src 'none'; ")


def test_health_and_metrics_are_hidden_from_visitors(site):
    for path in ("/healthz", "/metrics", "/_stcore/metrics"):
        assert_not_there(site, path)


def assert_not_there(site, path):
    with pytest.raises(urllib.error.HTTPError, match="404") as refused:
        urllib.request.urlopen(site.address + path, timeout=10)
    refused.value.close()
