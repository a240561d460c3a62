"""Edits of the model, to a text for a link and back."""

from contextlib import suppress

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from visformer.app.edits import editing
from visformer.edits import Block
from visformer.errors import EditError, LinkError
from visformer.system import limits

LAYERS, HEADS, QUERIES, KEYS = SHAPE = 2, 3, 4, 5
NUMBERS = st.sampled_from([(0, 1), (2, 5)])
WHERE = editing.Scope("decoder.self_attn", (0, 1))
FULL = np.ones((LAYERS, QUERIES, KEYS), dtype=bool)
MASKS = st.sampled_from([FULL, np.tril(FULL), np.stack([FULL[0], np.tril(FULL[1])])])
FEW = arrays(np.bool_, SHAPE, elements=st.sampled_from([False] * 30 + [True]))


@given(MASKS, NUMBERS, FEW | arrays(np.bool_, SHAPE), st.booleans(), st.booleans())
def test_edits_and_their_text_switch_exactly_the_selected_cells(mask, layers, switched, is_same_in_all_heads, is_row):
    if is_same_in_all_heads:
        switched = np.broadcast_to(switched[:1, :1], SHAPE).copy()
    if is_row:
        switched[0, 1, 2] = mask[0, 2]
    edits = editing.mask_edits(editing.Scope("decoder.self_attn", layers), switched, mask)
    assert bool(edits) == bool(switched.any())
    for row, layer in enumerate(layers):
        name, tensor = f"decoder.{layer}.self_attn.mask", torch.from_numpy(mask[row]).expand(1, HEADS, QUERIES, KEYS)
        for edit in edits:
            tensor = edit(name, tensor) if edit.applies(name) else tensor
        assert np.array_equal(tensor[0].numpy(), switched[row] ^ mask[row])
    text = editing.cells_text(edits)
    if not switched.any():
        assert text == ""
    else:
        assert np.array_equal(editing.cells_from_text(text, mask, HEADS, layers=layers), switched)
        assert len(text) <= limits.CHOICE_CHARACTERS or switched.sum() > 10


@given(
    arrays(np.float64, (3, 8), elements=st.sampled_from([1.0] * 9 + [0.0, 0.25, 0.5, 1.75, 2.0])),
    st.sampled_from([(0, 1, 2), (1, 4, 5)]),
)
def test_factors_of_heads_survive_the_round_trip(scales, layers):
    text = editing.heads_text(scales, layers)
    assert np.array_equal(editing.heads_from_text(text, layers, 8) if text else np.ones((3, 8)), scales)


def test_texts_and_edits_have_the_numbers_of_the_model_s_layers():
    scales = np.array([[1.0, 0.0], [0.5, 1.0]])
    assert editing.heads_text(scales, (2, 5)) == "3.2.0_6.1.50"
    assert [edit.where for edit in editing.head_edits("decoder.self_attn", scales, layers=(2, 5))] == [
        "decoder.2.self_attn",
        "decoder.5.self_attn",
    ]
    switched = editing.cells_from_text("b6.2.3.4", FULL, HEADS, layers=(2, 5))
    assert np.argwhere(switched).tolist() == [[1, 1, 2, 3]]
    for text in ("b5.2.3.4", "b2.2.3.4", "b3-5.2.3.4"):
        with pytest.raises(LinkError):
            editing.cells_from_text(text, FULL, HEADS, layers=(2, 5))


@given(st.text(max_size=60) | st.from_regex(r"[ob]?([0-9]{1,4}\.?){0,5}", fullmatch=True))
def test_any_text_is_read_or_refused(text):
    with suppress(LinkError):
        assert editing.cells_from_text(text, FULL, HEADS, layers=(0, 1)) is not None
    with suppress(LinkError):
        assert editing.heads_from_text(text, (0, 1), HEADS) is not None


@pytest.mark.parametrize("text", ["", "o", "o0.0.0", "o0.0.0.6", "b3.0.0.0", "b0.0.0.0_", "x0.0.0.0", "o\u0661.0.0.0"])
def test_invalid_cells_are_refused(text):
    with pytest.raises(LinkError):
        editing.cells_from_text(text, FULL, HEADS, layers=(0, 1))


def test_removing_a_whole_mask_is_one_item():
    mask = np.tril(FULL)
    switched = np.repeat(~mask[:, None], HEADS, axis=1)
    assert editing.cells_text(editing.mask_edits(WHERE, switched, mask)) == "o0.0.0.0"


def test_a_column_of_a_long_sentence_is_two_rectangles():
    """With an edit for each cell, a link of 188 characters kept both workers busy for minutes."""
    mask = np.tril(np.ones((1, 230, 230), dtype=bool))
    switched = np.zeros((1, HEADS, 230, 230), dtype=bool)
    switched[..., 100] = True
    edits = editing.mask_edits(WHERE, switched, mask)
    assert [(edit.value, edit.query) for edit in edits] == [(False, (100, 230)), (True, (0, 100))]
    assert editing.cells_text(edits) == "b0.0.101-230.101_o0.0.1-100.101"


def test_an_edit_is_limited_to_the_tokens_decoded_so_far():
    edit = Block("decoder.0.self_attn", query=(1, 4), key=(0, 2))
    assert edit.within((1, HEADS, 3, 3)) == Block("decoder.0.self_attn", query=(1, 3), key=(0, 2))
    assert edit.within((1, HEADS, 1, 1)) is None
    with pytest.raises(EditError, match="3 is not in 0 to 2"):
        edit("decoder.0.self_attn.mask", torch.ones(1, HEADS, 3, 3, dtype=torch.bool))


def test_a_link_holds_an_edit_of_several_heads():
    text = editing.cells_text([Block("encoder.0.self_attn", head=(0, 2), query=1)])
    cells = editing.cells_from_text(text, np.ones((2, 3, 3), dtype=bool), 3, layers=(0, 1))
    assert np.argwhere(cells).tolist() == [[0, head, 1, key] for head in (0, 2) for key in range(3)]
