"""The two sides of the payload agree: Python packs, the browser's own JavaScript reads."""

import base64

import pytest

from tests.canvas.support import made_up_trace
from visformer.canvas.assets import script
from visformer.canvas.payload import pack

pytestmark = pytest.mark.browser

READ = """
async ({ code, file }) => {
  const { readPayload } = await import("data:text/javascript;base64," + code)
  const payload = Uint8Array.from(atob(file), (c) => c.charCodeAt(0))
  return [0, 1, 2, 3].map((shift) => {
    const bytes = new Uint8Array(payload.length + shift)
    bytes.set(payload, shift)
    return Array.from(readPayload(bytes.subarray(shift)).stacks[2].weightsOf(1, 2))
  })
}
"""


def test_javascript_reads_what_python_packs(chromium):
    """At every alignment: a host may hand over a view into a larger buffer."""
    trace = made_up_trace()
    code = script("streamlit_attention.js") + "\nexport { readPayload }\n"
    given = {"code": base64.b64encode(code.encode()).decode(), "file": base64.b64encode(pack(trace)).decode()}
    page = chromium.new_page()
    read = page.evaluate(READ, given)
    page.close()
    assert read == [trace["decoder.1.cross_attn.pattern"].value[2].ravel().tolist()] * 4
