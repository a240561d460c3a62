"""A saved page with every moment of a training: keys turn the moments, and what is selected stays."""

import pytest

import visformer as vf
from tests.browser.support import point_of_cell, state_of
from tests.web.support import made_up_trace
from visformer.pictures.attention import History

STACK = "decoder.cross_attn"
TRACES = [made_up_trace(n_tgt=n_tgt, seed=seed) for seed, n_tgt in enumerate((9, 3, 6))]
FIGURES = ({"step": 0}, {"step": 1200, "loss": 4.25}, {"step": 36000, "loss": 2.3125})


def test_the_head_and_the_cell_stay_while_keys_turn_the_moments(visit, tmp_path):
    vf.export.save(History(tuple(TRACES), FIGURES, (STACK, 1, 2)), tmp_path / "x.html")
    page = visit((tmp_path / "x.html").as_uri())
    page.locator(".vf-root[data-painted]").wait_for()
    page.locator(".vf-large").click(position=point_of_cell(page, 4, 1))
    page.keyboard.press("o")

    def check(moment, *, has_row=True):
        state = state_of(page)
        assert page.url.endswith(f"#moment={moment}")
        assert page.locator(".vf-scrub").input_value() == str(moment)
        assert (state["stack"], state["layer"], state["head"]) == (STACK, "1", "2")
        assert state["order"] == "similarity"
        weight = float(state["weight"]) if has_row else None
        if has_row:
            assert weight == pytest.approx(TRACES[moment]["decoder.1.cross_attn.pattern"][2, 4, 1], rel=1e-3)
            assert state["locked"] == "true"
        else:
            assert "weight" not in state

    check(2)
    page.keyboard.press(",")
    check(1, has_row=False)
    assert page.locator(".vf-said").inner_text() == "Step 1,200 of 36,000 · loss 4.25"
    page.keyboard.press(",")
    check(0)
    page.locator(".vf-scrub").focus()
    page.keyboard.press("ArrowRight")
    page.keyboard.press(".")
    check(2)
    page.keyboard.press(",")
    page.reload()
    assert page.locator(".vf-said").inner_text().startswith("Step 1,200 of"), "the address keeps the moment"
    page.keyboard.press(" ")
    page.wait_for_url("**#moment=2")
