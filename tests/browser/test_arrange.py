"""How panels are arranged in a window, without drawing any."""

ARRANGE = """
const panel = (name) => ({ name, rows: { key: name }, columns: { key: "same" }, before: "" })
const asked = []
const layout = { left: 10, top: 20, width: 400, height: 100, boxWidth: 400, matrixWidth: 380, matrixHeight: 80 }
const layoutOf = (panel, cells) => {
  asked.push(cells)
  return { ...layout, cellWidth: 20, cellHeight: 20, numbered: true, worded: true, moreLines: 0, free: false }
}
const { lines } = m.arrange([[panel("a")], [panel("b")]], { width: 500, height: 600 }, layoutOf)
return { lines: lines.length, unlabelled: asked.filter(({ columns }) => columns === false).length }
"""


def test_a_panel_below_another_keeps_its_column_labels(bare):
    assert bare.run("panels/arrange.js", ARRANGE, None) == {"lines": 2, "unlabelled": 0}
