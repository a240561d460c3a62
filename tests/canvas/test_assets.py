"""The canvas's JavaScript, put together from its files."""

import json
import re
import shutil
import subprocess

import pytest

from tests.canvas.support import made_up_trace
from visformer.canvas.assets import script, stylesheet
from visformer.canvas.payload import pack


def test_one_module_without_imports():
    code = script("streamlit.js")
    assert not re.search(r"^import ", code, re.MULTILINE)
    assert code.count("export ") == 1
    assert "/**" not in code


def test_text_never_becomes_html():
    code = script("streamlit.js")
    assert not re.search(r"innerHTML|outerHTML|insertAdjacentHTML|document\.write|\beval\b", code)


def test_nothing_is_fetched_from_elsewhere():
    assert not re.search(r"https?://|@import|url\(", script("streamlit.js") + stylesheet())


@pytest.mark.skipif(shutil.which("node") is None, reason="needs node")
def test_javascript_reads_what_python_packs(tmp_path):
    """At every alignment: a host may hand over a view into a larger buffer."""
    trace = made_up_trace()
    (tmp_path / "payload.bin").write_bytes(pack(trace))
    (tmp_path / "module.mjs").write_text(script("streamlit.js") + "\nexport { readPayload }\n", encoding="utf-8")
    (tmp_path / "read.mjs").write_text(
        """
        import { readFileSync } from "node:fs"
        import { readPayload } from "./module.mjs"
        const file = readFileSync(new URL("payload.bin", import.meta.url))
        const weights = [0, 1, 2, 3].map((shift) => {
          const bytes = new Uint8Array(file.length + shift)
          bytes.set(file, shift)
          const header = readPayload(bytes.subarray(shift))
          return Array.from(header.stacks[2].weightsOf(1, 2))
        })
        console.log(JSON.stringify(weights))
        """,
        encoding="utf-8",
    )
    done = subprocess.run(["node", tmp_path / "read.mjs"], capture_output=True, text=True, timeout=60, check=True)
    wanted = trace["decoder.1.cross_attn.pattern"].value[2].ravel().tolist()
    assert json.loads(done.stdout) == [wanted] * 4
