"""Delivery of messages to views, with each script loaded separately as by Streamlit."""

import pytest

from tests.browser.bare import ORIGIN, text_of
from tests.web.support import made_up_trace
from visformer.web.message import write_message
from visformer.web.payload import pack

SETUP = f"""async () => {{
  const script = (name) => import("{ORIGIN}streamlit/" + name + ".js")
  const [{{ streamlitView }}, {{ deliver }}] = await Promise.all([script("view"), script("mailbox")])
  const {{ mountAttention }} = await import("{ORIGIN}explorer/explorer.js")
  const view = streamlitView(mountAttention)
  const bytes = (text) => Uint8Array.from(atob(text), (c) => c.charCodeAt(0))
  window.post = {{
    place() {{
      const place = document.createElement("div")
      place.innerHTML = '<div class="vf-host"></div>'
      document.body.append(place)
      return place
    }},
    view(place, name) {{
      return view({{ data: new TextEncoder().encode(name), parentElement: place }})
    }},
    feed: (place, text) => deliver({{ data: bytes(text), parentElement: place }}),
    heads: (place) => Number(place.querySelector(".vf-thumbs")?.dataset.columns ?? 0),
    waiting: () => globalThis[Symbol.for("visformer.mailbox")].sent.size,
  }}
}}"""


@pytest.fixture
def run(bare):
    """Run a function body with ``post`` above, and with messages named by their view and its number of heads."""
    bare.page.evaluate(SETUP)
    messages = {f"{name}{n}": text_of(pack(made_up_trace(n_heads=n), to=name)) for name in "ab" for n in (2, 3)}
    messages["empty"] = text_of(write_message("nothing", {}, to="a"))
    yield lambda body: bare.page.evaluate(f"(messages) => {{ {body} }}", messages)
    assert not bare.problems


@pytest.mark.parametrize("first", ["view", "feed"])
def test_a_message_may_come_before_or_after_its_view(run, first):
    steps = ["const unmount = post.view(place, 'a')", "const unfeed = post.feed(feeder, messages.a3)"]
    order = "; ".join(steps if first == "view" else steps[::-1])
    heads = run(
        f"const [place, feeder] = [post.place(), post.place()]; {order}; const heads = post.heads(place);"
        "post.feed(feeder, messages.a2); const updated = post.heads(place);"
        "unmount(); unfeed(); return [heads, updated, post.heads(place), post.waiting()]"
    )
    assert heads == [3, 2, 0, 0]


def test_each_view_gets_its_own_message(run):
    heads = run(
        "const [a, b, feederA, feederB] = [1, 2, 3, 4].map(() => post.place());"
        "const ends = [post.view(a, 'a'), post.feed(feederB, messages.b2), post.feed(feederA, messages.a3),"
        "  post.view(b, 'b')];"
        "const heads = [post.heads(a), post.heads(b)]; ends.forEach((end) => end()); return [...heads, post.waiting()]"
    )
    assert heads == [3, 2, 0]


def test_a_remounted_view_gets_its_message_and_unmounting_the_old_one_does_not_disturb_it(run):
    """Streamlit may mount the new view before it unmounts the old one."""
    heads = run(
        "const [oldPlace, newPlace, feeder] = [1, 2, 3].map(() => post.place());"
        "const unfeed = post.feed(feeder, messages.a3);"
        "const unmountOld = post.view(oldPlace, 'a'); const unmountNew = post.view(newPlace, 'a');"
        "unmountOld(); post.feed(feeder, messages.a2);"
        "const heads = [post.heads(oldPlace), post.heads(newPlace)];"
        "unmountNew(); unfeed(); post.feed(feeder, messages.a2); const unmount = post.view(oldPlace, 'a');"
        "heads.push(post.heads(oldPlace)); unmount(); return heads"
    )
    assert heads == [0, 2, 2]


def test_an_empty_message_removes_the_picture_until_the_next(run):
    heads = run(
        "const [place, feeder] = [post.place(), post.place()]; const unmount = post.view(place, 'a');"
        "const unfeed = post.feed(feeder, messages.a3); const heads = [post.heads(place)];"
        "for (const next of ['empty', 'a2']) { post.feed(feeder, messages[next]); heads.push(post.heads(place)) }"
        "unmount(); unfeed(); return heads"
    )
    assert heads == [3, 0, 2]
