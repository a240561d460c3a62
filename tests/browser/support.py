"""Actions of a visitor, and helpers that read the page."""

from urllib.parse import parse_qsl, urljoin, urlsplit

import numpy as np
from playwright.sync_api import expect

from tests.addresses import fields_of

DONE = "[data-testid=stApp][data-test-script-state=notRunning]"


def wait_until_done(page):
    """Wait until the script run has ended; the address changes last. Parts whose code still loads are skeletons."""
    page.locator(DONE).wait_for()
    expect(page.locator("[data-testid=stSkeleton]")).to_have_count(0)


def address_of(page):
    """Return the fields in the page's address."""
    return fields_of(parse_qsl(urlsplit(page.url).query))


def state_of(page):
    """Return the explorer's data attributes, such as stack, layer, head, query, key, weight and painted."""
    return page.locator(".vf-root").evaluate("element => ({...element.dataset})")


def type_sentence(page, text, *, box="Sentence"):
    """Submit a sentence, and wait until a new picture is painted."""
    before = state_of(page)["painted"]
    submit(page, text, box=box)
    page.locator(f".vf-root[data-painted]:not([data-painted='{before}'])").wait_for()
    wait_until_done(page)


def ensure_sentence(page, text):
    """Submit a sentence unless the page shows it already."""
    if page.get_by_label("Sentence", exact=True).input_value() != text:
        type_sentence(page, text)


def submit(page, text, *, box="Sentence"):
    """Fill in a text box and press Enter."""
    page.get_by_label(box, exact=True).fill(text)
    page.get_by_label(box, exact=True).press("Enter")


def go_to(page, title):
    """Open the page with this title from the side bar."""
    link = page.get_by_test_id("stPageLink-NavLink").filter(has_text=title)
    wanted = urlsplit(urljoin(page.url, f"./{link.first.get_attribute('href')}")).path  # the first page's has no path
    link = link.filter(visible=True)  # Streamlit has another one for phones, with its help beside it
    if not link.count():
        page.locator(".st-key-research summary").click()
    link.click()
    page.wait_for_url(lambda url: urlsplit(url).path == wanted)  # until then the last run counts as done
    wait_until_done(page)


def tokens(page):
    """Return the tokens of the source."""
    return page.locator(".vf-side").first.locator(".vf-token").all_inner_texts()


def layout_of(page, selector):
    """Return the layout of a canvas, from its data attributes."""
    return page.locator(selector).first.evaluate(
        "e => Object.fromEntries(Object.entries(e.dataset).map(([k, v]) => [k, Number(v)]))"
    )


def points_of_cells(page, cells, *, inside=0.5):
    """Return positions of cells of the large head in its canvas; inside: fraction from a cell's upper left corner."""
    layout = layout_of(page, ".vf-large")
    return [
        {
            "x": layout["left"] + (key - layout["column"] + inside) * layout["cellWidth"],
            "y": layout["top"] + (query - layout["row"] + inside) * layout["cellHeight"],
        }
        for query, key in cells
    ]


def point_of_cell(page, query, key):
    """Return the centre of a cell of the large head in its canvas."""
    return points_of_cells(page, [(query, key)])[0]


def points_of_thumb(page, number, shape, *, canvas=".vf-thumbs"):
    """Return the centres of the cells of a thumbnail; number: its index in the grid; shape: its rows and columns."""
    layout = layout_of(page, canvas)
    row, column = divmod(number, int(layout["columns"]))
    left, top = layout["left"] + column * layout["step"], layout["top"] + row * layout["rise"]
    return [
        {"x": left + (c + 0.5) / shape[1] * layout["size"], "y": top + (r + 0.5) / shape[0] * layout["size"]}
        for r in range(shape[0])
        for c in range(shape[1])
    ]


def point_of_thumb(page, number, *, canvas=".vf-thumbs"):
    """Return the centre of a thumbnail; number: its index in the grid."""
    return points_of_thumb(page, number, (1, 1), canvas=canvas)[0]


def point_of_head(page, layer, head):
    """Return the centre of a head's thumbnail in an overview ordered by layer and head."""
    return point_of_thumb(page, layer * int(layout_of(page, ".vf-thumbs")["columns"]) + head)


def click_head(page, layer, head, **options):
    """Click a head's thumbnail in the overview."""
    page.locator(".vf-thumbs").click(position=point_of_head(page, layer, head), **options)


def head_of(trace, stack, layer, head):
    """Return the pattern (query, key) of a head."""
    return trace[f"{stack.replace('.', f'.{layer}.')}.pattern"].value[head]


def check_cell(page, trace, stack, *, layer, head, query, key):
    """Check that the weight shown is that of the Trace, to four significant digits."""
    data = state_of(page)
    weight = float(f"{head_of(trace, stack, layer, head)[query, key]:.3e}")
    selected = (data["stack"], *(int(data[name]) for name in ("layer", "head", "query", "key")))
    assert (*selected, float(data["weight"])) == (stack, layer, head, query, key, weight)
    assert float(page.locator(".vf-weight").inner_text()) == weight


IMAGE = """
  const copy = new OffscreenCanvas(canvas.width, canvas.height).getContext("2d", { willReadFrequently: true })
  copy.drawImage(canvas, 0, 0)
  const { data } = copy.getImageData(0, 0, canvas.width, canvas.height)
"""
"""Copy a canvas and read the copy's pixels: reading those of the canvas causes a console warning."""


def _image(page, canvas, body, args=None):
    settled = page.locator(canvas).and_(page.locator(":not([data-changing])"))  # its colours may still be changing
    return settled.evaluate(f"(canvas, args) => {{ {IMAGE} {body} }}", args)


def colours_at(page, canvas, points):
    """Return red, green and blue at points (CSS pixels) of a canvas."""
    body = """
      const ratio = canvas.width / parseFloat(canvas.style.width)
      const at = ({ x, y }) => 4 * (Math.floor(y * ratio) * canvas.width + Math.floor(x * ratio))
      return args.map((point) => Array.from(data.subarray(at(point), at(point) + 3)))
    """
    return _image(page, canvas, body, points)


def colours_of(page, canvas):
    """Return all opaque colours of a canvas, as "#rrggbb"."""
    body = """
      const hex = (pixel) => [0, 8, 16].map((shift) => ((pixel >>> shift) & 255).toString(16).padStart(2, "0")).join("")
      const opaque = [...new Set(new Uint32Array(data.buffer))].filter((pixel) => pixel >>> 24 === 255)
      return opaque.map((pixel) => `#${hex(pixel)}`)
    """
    return set(_image(page, canvas, body))


def opaque_pixels(page, canvas):
    """Count the pixels of a canvas that are not transparent."""
    return _image(page, canvas, "return data.filter((part, i) => i % 4 === 3 && part).length")


def fingerprint(page, canvas):
    """Return a hash of a canvas's pixels, and the number of its colours."""
    body = """
      let sum = 0
      for (let i = 0; i < data.length; i++) sum = (sum * 31 + data[i]) | 0
      return [sum, new Set(new Uint32Array(data.buffer)).size]
    """
    return _image(page, canvas, body)


def wait_for_panels(page):
    """Wait until panels are painted, and the script run has ended."""
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
    canvas = f"canvas[data-panel='{panel}']"
    layout = layout_of(page, canvas)
    x = layout["left"] + (column + 0.5) * layout["cellWidth"]
    return page.locator(canvas).first, {"x": x, "y": layout["top"] + (row + 0.5) * layout["cellHeight"]}


def displayed_weights(page, rows, columns):
    """Return the weight that the explorer displays for each cell."""
    weights = page.locator(".vf-large").evaluate(
        """(canvas, points) => points.map(({ x, y }) => {
          const { left, top } = canvas.getBoundingClientRect()
          canvas.dispatchEvent(new PointerEvent("pointermove", { clientX: left + x, clientY: top + y }))
          return Number(document.querySelector(".vf-root").dataset.weight)
        })""",
        points_of_cells(page, np.ndindex(rows, columns)),
    )
    return np.array(weights).reshape(rows, columns)
