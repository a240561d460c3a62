"""What a visitor does on the page."""


def shown(page):
    """What the picture says about itself: stack, layer, head, query, key, weight, painted."""
    return page.locator(".vf-root").evaluate("element => ({...element.dataset})")


def type_sentence(page, text, *, box="Sentence"):
    """Type and press Enter; wait until another picture is painted."""
    before = shown(page)["painted"]
    submit(page, text, box=box)
    page.locator(f".vf-root[data-painted]:not([data-painted='{before}'])").wait_for()


def show(page, text):
    """Have this sentence on the page, whatever was there before."""
    if page.get_by_label("Sentence", exact=True).input_value() != text:
        type_sentence(page, text)


def submit(page, text, *, box="Sentence"):
    """Type and press Enter."""
    page.get_by_label(box, exact=True).fill(text)
    page.get_by_label(box, exact=True).press("Enter")


def tokens(page, line=0):
    """The tokens of the source (0) or the target (1)."""
    return page.locator(".vf-side").nth(line).locator(".vf-token").all_inner_texts()


def point_of_cell(page, query, key):
    """Where a cell of the large head lies inside its canvas."""
    place = {name: float(value) for name, value in page.locator(".vf-large").evaluate("e => ({...e.dataset})").items()}
    return {
        "x": place["left"] + (key + 0.5) * place["cellWidth"],
        "y": place["top"] + (query + 0.5) * place["cellHeight"],
    }


def point_of_head(page, layer, head):
    """Where a thumbnail lies inside the overview."""
    place = {name: float(value) for name, value in page.locator(".vf-thumbs").evaluate("e => ({...e.dataset})").items()}
    middle = place["size"] / 2
    return {"x": place["left"] + head * place["step"] + middle, "y": place["top"] + layer * place["step"] + middle}


def pixels(page, canvas):
    """A digest of what a canvas shows, and how many colours there are in it."""
    return page.locator(canvas).evaluate(
        """canvas => {
          const {data} = canvas.getContext("2d").getImageData(0, 0, canvas.width, canvas.height)
          const colours = new Set(new Uint32Array(data.buffer))
          let sum = 0
          for (let i = 0; i < data.length; i++) sum = (sum * 31 + data[i]) | 0
          return [sum, colours.size]
        }"""
    )


def wait_for_panels(page):
    """Until panels are painted."""
    page.locator(".vf-root[data-painted] canvas.vf-matrix").first.wait_for()


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
