"""The likeliest next tokens, and their names in a Trace."""

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as arrays

from tests.kinds import KINDS, model_of, trace_of
from tests.support import tiny_tokenizer
from visformer.adapters.generating import alternatives
from visformer.trace.tokens import CANDIDATES, likeliest

ROWS = arrays.arrays(np.float32, st.integers(1, 40), elements=st.sampled_from([-3.0, 0.0, 0.5, 2.0, np.nan, np.inf]))


@given(ROWS)
def test_the_likeliest_are_the_largest_and_of_equal_ones_the_first(row):
    wanted = np.argsort(-np.nan_to_num(row, nan=-np.inf, posinf=np.inf), kind="stable")[:CANDIDATES]
    assert likeliest(row) == tuple(wanted)


@given(st.integers(0, 2**31))
def test_the_likeliest_are_those_of_torch(seed):
    row = torch.randn(1000, generator=torch.Generator().manual_seed(seed))
    assert likeliest(row.numpy()) == tuple(row.topk(CANDIDATES).indices.tolist())


@pytest.mark.parametrize("kind", [kind for kind in KINDS if kind not in ("attention", "decoder", "maps")])
def test_every_row_with_logits_names_its_likeliest_tokens(kind):
    trace, text = trace_of(kind), model_of(kind).text
    rows = trace["logits"].value if "logits" in trace and "tgt" in trace.tokens else []
    named = trace.meta.get("likeliest", [])
    assert len(named) == len(rows)
    for texts, row in zip(named, rows, strict=True):
        ids = np.argsort(-row, kind="stable")[:CANDIDATES]
        assert len({*texts}) == len(texts) == len(ids), "told apart"
        assert all(text.shown([i])[0].lstrip("␣") in shown for i, shown in zip(ids.tolist(), texts, strict=True))


def test_names_are_not_read_as_a_text_and_tell_apart_what_looks_alike():
    text = tiny_tokenizer()
    parts = text.encode("龘")
    assert text.shown(parts) == ("龘₁", "龘₂", "龘₃")
    spelled = {text.spelled(i): i for i in range(len(text))}
    one, other = next((i, spelled[f"␣{name}"]) for name, i in spelled.items() if f"␣{name}" in spelled)
    logits = np.zeros(len(text))
    logits[[*parts, one, other]] = 5, 4, 3, 2, 1
    *separate, plain, marked = alternatives(text, logits)
    assert all(token.startswith("<0x") for token in separate)
    assert marked == f"␣{plain}"
