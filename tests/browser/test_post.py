"""Delivery of messages to views, whichever comes first, with each script loaded separately as Streamlit does."""

import pytest

from tests.browser.bare import ORIGIN, text_of
from tests.web.support import made_up_trace
from visformer.web.message import write_message
from visformer.web.payload import pack

pytestmark = pytest.mark.browser

SET_UP = f"""async () => {{
  const file = (name) => import("{ORIGIN}streamlit/" + name + ".js")
  const [view, feed] = await Promise.all([file("attention"), file("feed")])
  const bytes = (text) => Uint8Array.from(atob(text), (c) => c.charCodeAt(0))
  window.post = {{
    place() {{
      const place = document.createElement("div")
      place.innerHTML = '<div class="vf-host"></div>'
      document.body.append(place)
      return place
    }},
    view(place, name) {{
      return view.default({{ data: new TextEncoder().encode(name), parentElement: place, setStateValue() {{}} }})
    }},
    feed: (place, text) => feed.default({{ data: bytes(text), parentElement: place }}),
    heads: (place) => Number(place.querySelector(".vf-thumbs")?.dataset.columns ?? 0),
    waiting: () => globalThis[Symbol.for("visformer.post")].sent.size,
  }}
}}"""


def for_view(name, n_heads):
    return text_of(pack(made_up_trace(n_heads=n_heads), to=name))


@pytest.fixture
def post(bare):
    """Run a function body with the post in ``post``, and messages named by view and number of heads in ``given``."""
    bare.page.evaluate(SET_UP)
    given = {f"{name}{n}": for_view(name, n) for name in "ab" for n in (2, 3)}
    given["nothing"] = text_of(write_message("nothing", {}, to="a"))
    yield lambda body: bare.page.evaluate(f"(given) => {{ {body} }}", given)
    assert not bare.complaints


@pytest.mark.parametrize("first", ["view", "feed"])
def test_whichever_comes_first(post, first):
    steps = ["const end = post.view(place, 'a')", "const gone = post.feed(feeder, given.a3)"]
    order = "; ".join(steps if first == "view" else steps[::-1])
    found = post(
        f"const [place, feeder] = [post.place(), post.place()]; {order}; const heads = post.heads(place);"
        "post.feed(feeder, given.a2); const later = post.heads(place);"
        "end(); gone(); return [heads, later, post.heads(place), post.waiting()]"
    )
    assert found == [3, 2, 0, 0]


def test_each_view_gets_its_own(post):
    found = post(
        "const [a, b, one, other] = [1, 2, 3, 4].map(() => post.place());"
        "const ends = [post.view(a, 'a'), post.feed(one, given.b2), post.feed(other, given.a3), post.view(b, 'b')];"
        "const heads = [post.heads(a), post.heads(b)]; ends.forEach((end) => end()); return [...heads, post.waiting()]"
    )
    assert found == [3, 2, 0]


def test_a_remounted_view_gets_its_message_and_unmounting_the_old_one_does_not_disturb_it(post):
    """Streamlit may mount the new view before it unmounts the old one."""
    found = post(
        "const [old, young, feeder] = [1, 2, 3].map(() => post.place());"
        "const gone = post.feed(feeder, given.a3); const end = post.view(old, 'a'); const last = post.view(young, 'a');"
        "end(); post.feed(feeder, given.a2); const heads = [post.heads(old), post.heads(young)];"
        "last(); gone(); post.feed(feeder, given.a2); const again = post.view(old, 'a');"
        "const back = post.heads(old); again(); return [...heads, back]"
    )
    assert found == [0, 2, 2]


def test_an_empty_message_removes_the_picture_until_the_next(post):
    found = post(
        "const [place, feeder] = [post.place(), post.place()]; const end = post.view(place, 'a');"
        "const gone = post.feed(feeder, given.a3); const heads = [post.heads(place)];"
        "for (const next of ['nothing', 'a2']) { post.feed(feeder, given[next]); heads.push(post.heads(place)) }"
        "end(); gone(); return heads"
    )
    assert found == [3, 0, 2]
