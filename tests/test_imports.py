"""Modules that are slow to import are imported only when needed. Each group has a process of its own."""

import subprocess
import sys

import pytest

CASES = {
    "torch numpy pandas streamlit babel": """
import visformer.export.formats
import visformer.system.settings, visformer.system.limits
import visformer; visformer.moments
""",
    "torch pandas plotly streamlit babel": """
import visformer.formulas
import visformer.web.payload, visformer.figures
import visformer.cli
import visformer; visformer.Trace; visformer.errors
import visformer; visformer.TransformerConfig(src_vocab=1, tgt_vocab=1)
import visformer.adapters.huggingface.files, visformer.adapters.names as l; l.require_model('untrained')
""",
    "transformers streamlit": """
import visformer; visformer.load
import visformer as vf; vf.load('en-zh').trace('I', '我')
""",
}
"""Slow modules to statements, one a line, that import none of them, together or alone."""


@pytest.mark.parametrize("slow", CASES)
def test_slow_modules_are_not_imported(slow):
    code = f"""
import sys
for line in {CASES[slow].strip().splitlines()}:
    exec(line)
    found = [name for name in {slow.split()} if name in sys.modules]
    if found:
        sys.exit(f"{{line}}: {{found}}")
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=300, check=False)
    assert done.returncode == 0, done.stderr
