"""What a visitor does on the page."""

from urllib.parse import parse_qsl, urlsplit

from tests.addresses import fields_of

DONE = "[data-testid=stApp][data-test-script-state=notRunning]"


def wait_until_done(page):
    """Until the server has sent all of the page: the picture comes first, the address last."""
    page.locator(DONE).wait_for()


def address_of(page):
    """The fields of its address."""
    return fields_of(parse_qsl(urlsplit(page.url).query))


def shown(page):
    """What the picture says about itself: stack, layer, head, query, key, weight, painted."""
    return page.locator(".vf-root").evaluate("element => ({...element.dataset})")


def type_sentence(page, text, *, box="Sentence"):
    """Type and press Enter; wait until another picture is painted."""
    before = shown(page)["painted"]
    submit(page, text, box=box)
    page.locator(f".vf-root[data-painted]:not([data-painted='{before}'])").wait_for()
    wait_until_done(page)


def show(page, text):
    """Have this sentence on the page, whatever was there before."""
    if page.get_by_label("Sentence", exact=True).input_value() != text:
        type_sentence(page, text)


def submit(page, text, *, box="Sentence"):
    """Type and press Enter."""
    page.get_by_label(box, exact=True).fill(text)
    page.get_by_label(box, exact=True).press("Enter")


def turn_to(page, title):
    """Choose a page in the side bar."""
    page.get_by_test_id("stPageLink-NavLink").filter(has_text=title).click()
    wait_until_done(page)


def tokens(page, line=0):
    """The tokens of the source (0) or the target (1)."""
    return page.locator(".vf-side").nth(line).locator(".vf-token").all_inner_texts()


def place_of(page, selector):
    """Where things lie inside a canvas: the numbers that it says of itself."""
    return page.locator(selector).evaluate(
        "e => Object.fromEntries(Object.entries(e.dataset).map(([k, v]) => [k, Number(v)]))"
    )


def points_of_cells(page, cells, *, inside=0.5):
    """Where cells of the large head lie inside its canvas; inside: how far from their upper left corners."""
    place = place_of(page, ".vf-large")
    return [
        {
            "x": place["left"] + (key - place["column"] + inside) * place["cellWidth"],
            "y": place["top"] + (query - place["row"] + inside) * place["cellHeight"],
        }
        for query, key in cells
    ]


def point_of_cell(page, query, key):
    """The middle of a cell of the large head, inside its canvas."""
    return points_of_cells(page, [(query, key)])[0]


def points_of_thumb(page, number, shape, *, canvas=".vf-thumbs"):
    """The middles of the cells of a thumbnail, the so-manieth of a grid; shape: its rows and columns."""
    place = place_of(page, canvas)
    row, column = divmod(number, int(place["columns"]))
    left, top = place["left"] + column * place["step"], place["top"] + row * place["rise"]
    return [
        {"x": left + (c + 0.5) / shape[1] * place["size"], "y": top + (r + 0.5) / shape[0] * place["size"]}
        for r in range(shape[0])
        for c in range(shape[1])
    ]


def point_of_thumb(page, number, *, canvas=".vf-thumbs"):
    """The middle of the so-manieth thumbnail of a grid."""
    return points_of_thumb(page, number, (1, 1), canvas=canvas)[0]


def point_of_head(page, layer, head):
    """The middle of a head's thumbnail in the overview, where heads are in their places."""
    return point_of_thumb(page, layer * int(place_of(page, ".vf-thumbs")["columns"]) + head)


IMAGE = """
  const copy = new OffscreenCanvas(canvas.width, canvas.height).getContext("2d", { willReadFrequently: true })
  copy.drawImage(canvas, 0, 0)
  const { data } = copy.getImageData(0, 0, canvas.width, canvas.height)
"""
"""A canvas as it is on the screen; reading its own pixels would slow it down, and the browser would say so."""


def _image(page, canvas, body, given=None):
    return page.locator(canvas).evaluate(f"(canvas, given) => {{ {IMAGE} {body} }}", given)


def colours_at(page, canvas, points):
    """Red, green and blue of each point (CSS pixels) of a canvas."""
    body = """
      const ratio = canvas.width / parseFloat(canvas.style.width)
      const at = ({ x, y }) => 4 * (Math.floor(y * ratio) * canvas.width + Math.floor(x * ratio))
      return given.map((point) => Array.from(data.subarray(at(point), at(point) + 3)))
    """
    return _image(page, canvas, body, points)


def colours_of(page, canvas):
    """Every opaque colour of a canvas, as "#rrggbb"."""
    body = """
      const hex = (pixel) => [0, 8, 16].map((shift) => ((pixel >>> shift) & 255).toString(16).padStart(2, "0")).join("")
      const opaque = [...new Set(new Uint32Array(data.buffer))].filter((pixel) => pixel >>> 24 === 255)
      return opaque.map((pixel) => `#${hex(pixel)}`)
    """
    return set(_image(page, canvas, body))


def inked(page, canvas):
    """How many pixels of a canvas are not empty."""
    return _image(page, canvas, "return data.filter((part, i) => i % 4 === 3 && part).length")


def pixels(page, canvas):
    """A digest of what a canvas shows, and how many colours there are in it."""
    body = """
      let sum = 0
      for (let i = 0; i < data.length; i++) sum = (sum * 31 + data[i]) | 0
      return [sum, new Set(new Uint32Array(data.buffer)).size]
    """
    return _image(page, canvas, body)


def wait_for_panels(page):
    """Until panels are painted, and what comes after them has its place."""
    page.locator(".vf-root[data-painted] canvas.vf-matrix").first.wait_for()
    wait_until_done(page)


def click_cell(page, panel, row, column):
    """Click a cell of a panel."""
    canvas, position = _cell(page, panel, row, column)
    canvas.click(position=position)


def hover_cell(page, panel, row, column):
    """Point at a cell of a panel."""
    canvas, position = _cell(page, panel, row, column)
    canvas.hover(position={"x": 1, "y": 1})
    canvas.hover(position=position)


def _cell(page, panel, row, column):
    canvas = page.locator(f"canvas[data-panel='{panel}']").first
    place = {name: float(v) for name, v in canvas.evaluate("e => ({...e.dataset})").items() if name != "panel"}
    x, y = place["left"] + (column + 0.5) * place["cellWidth"], place["top"] + (row + 0.5) * place["cellHeight"]
    return canvas, {"x": x, "y": y}
