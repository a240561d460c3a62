"""The whole model, on a bare page and in the app."""

from tests.browser.bare import text_of
from tests.browser.support import wait_until_done
from visformer.web.bundle import stylesheet
from visformer.web.map import pack_map, pack_place

MOUNT = """async ({ texts, hosted }) => {
  const { mountMap } = await import("./map/map.js")
  const { readMessage } = await import("./shared/message.js")
  const read = (text) => readMessage(Uint8Array.from(atob(text), (letter) => letter.charCodeAt(0)))
  window.map?.destroy()
  Object.assign(window, { zooms: [], followed: [] })
  const host = { onSelect: ({ stack, layer, head }) => followed.push([stack, layer, head]) }
  if (hosted) host.onZoom = (place) => zooms.push(place)
  const [first, ...others] = texts.map(read)
  window.map = mountMap(document.querySelector("#host"), first, host)
  for (const message of others) map.update(message)
}"""
DRAWN = """() => {
  const drawn = []
  const own = CanvasRenderingContext2D.prototype.fillText
  CanvasRenderingContext2D.prototype.fillText = function (text, ...place) {
    drawn.push(String(text))
    return own.call(this, text, ...place)
  }
  window.map.repaint()
  CanvasRenderingContext2D.prototype.fillText = own
  return drawn
}"""
"""Paint, and return the texts that are written, in order."""


def mount(bare, trace, zoom="", *, hosted=False, cell=None, lacks="", **options):
    """Mount a Trace in place of the one before.

    Args:
        zoom: the place that it opens at.
        hosted: whether by a host that computes the sums of cells.
    """
    bare.page.add_style_tag(content=stylesheet("map/map.css"))
    messages = [pack_map(trace, **options)]
    if hosted:
        messages.insert(0, pack_place(zoom, opened=1, cell=cell, lacks=lacks))
    bare.page.evaluate(MOUNT, {"texts": [text_of(message) for message in messages], "hosted": hosted})
    return bare.page


def open_map(visitor, query="", **settings):
    """Open the whole model in the app; query: more fields of its address."""
    page = visitor.page(**{"width": 1280, "height": 720, **settings})
    page.goto(f"{visitor.server}/?v=2&text=I+like+cats.{query}")
    page.locator(".vf-model").wait_for()
    page.locator(".vf-path button, .vf-place-button").first.wait_for()
    wait_until_done(page)
    return page
