"""Modules that are slow to import are imported only when needed. Each case has a process of its own."""

import subprocess
import sys

import pytest

CASES = [
    ("visformer.formulas", "torch"),
    ("visformer; visformer.Trace; visformer.errors", "torch"),
    ("visformer; visformer.TransformerConfig(src_vocab=1, tgt_vocab=1)", "torch"),
    ("visformer; visformer.load", "streamlit"),
    ("visformer; visformer.moments", "torch pandas numpy"),
    ("visformer.export.formats", "numpy"),
    ("visformer.system.settings, visformer.system.limits", "torch numpy streamlit babel"),
    ("visformer.web.payload, visformer.figures", "torch streamlit plotly pandas babel"),
    ("visformer.cli", "torch streamlit plotly"),
    ("visformer.adapters.huggingface.files, visformer.adapters.lookup as l; l.require_model('untrained')", "torch"),
    ("visformer as vf; vf.load('en-zh').trace('I', '我')", "transformers"),
]


@pytest.mark.parametrize(("imported", "slow"), CASES)
def test_slow_modules_are_not_imported(imported, slow):
    code = f"import {imported}; import sys; print([name for name in {slow.split()} if name in sys.modules])"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=120, check=True)
    assert done.stdout.strip() == "[]"
