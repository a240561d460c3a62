"""Two passes side by side: one head of both, their difference, and a number of each head."""

import numpy as np
import pytest

import visformer as vf
from tests.kinds import model_of
from visformer import analysis
from visformer.errors import BudgetError, TraceError, VisformerError
from visformer.pictures.compare import OTHER_MODEL
from visformer.pictures.registry.picture import picture
from visformer.pictures.sides import ONE_WORD, forced, head_in_both, one_word_changed
from visformer.system import limits
from visformer.trace.stacks import STACKS

ONE, OTHER = "I went to school.", "She went to the old school."
CROSS = {"stack": "decoder.cross_attn", "layer": 1, "head": 2}


def drawn(name, model, text=ONE, **options):
    return picture(name).make(vf.figures.source_of(model_of(model), text), options)


def test_the_difference_has_every_token_of_both_and_is_empty_where_one_is_missing():
    first, second = (model_of("en-zh").trace(text) for text in (ONE, OTHER))
    path = "encoder.1.self_attn"
    a, b, difference = head_in_both(first, second, (path, path), (3, 3))
    partners = analysis.token_partners(first, second, "src")
    assert partners.alone[1], "the second has more"
    assert len(difference.rows) == len(partners.union) == len(a.rows) + len(partners.alone[1])
    for y, (i, j) in enumerate(partners.union):
        for x, (k, m) in enumerate(partners.union):
            wanted = np.nan if None in (i, j, k, m) else b.values[j, m] - a.values[i, k]
            assert difference.values[y, x] == pytest.approx(wanted, nan_ok=True)
    assert [text for text in difference.rows.texts if text.startswith("B: ")] == ["B: the", "B: old"]
    assert "I / She" in difference.rows.texts
    assert difference.note.startswith(f"Rows with a partner: {len(partners.pairs)} of {len(partners.union)}")
    assert (a.scale, b.scale, difference.scale, difference.end) == ("weight", "weight", "signed", 1)


def test_the_overview_has_the_distance_of_each_head_and_outlines_the_one_in_focus():
    overview, *_both = drawn("compare", "en-zh", other_text=OTHER, **CROSS)
    first, second = (model_of("en-zh").trace(text) for text in (ONE, OTHER))
    assert overview.values == pytest.approx(analysis.head_differences(first, second, "decoder.cross_attn"))
    assert np.argwhere(overview.outlined).tolist() == [[1, 2]]


def test_every_example_has_a_sentence_with_a_word_changed_and_any_other_becomes_a_question():
    from visformer.pictures.examples import EXAMPLES

    assert {*ONE_WORD} == {*EXAMPLES}
    assert one_word_changed("I like tea.") == "I like tea?"
    assert one_word_changed("Do you like tea?") == "Do you like tea."
    assert one_word_changed("我喜欢茶。") == "我喜欢茶？"


def test_an_edit_changes_later_layers_only():
    overview, *_both = drawn("compare-edited", "mini-gpt")
    assert overview.values[0].max() < 1e-6
    assert overview.values[1:].min() > 1e-4
    assert "No edit yet" in overview.note


def test_an_example_of_an_edit_silences_the_first_attention_which_changes_all_cross_attention():
    overview, *_both = drawn("compare-edited", "en-zh", **CROSS)
    model, plain = model_of("en-zh"), model_of("en-zh").trace(ONE)
    silence = vf.edits.Silence("decoder.0.self_attn", head=tuple(range(8)))
    edited = model.trace(ONE, plain.meta["target"], edits=[silence])
    assert overview.values == pytest.approx(analysis.head_differences(plain, edited, "decoder.cross_attn"))
    assert overview.values.min() > 1e-4


def test_the_last_moment_is_the_model_and_an_earlier_one_is_not():
    overview, a, b, _difference = drawn("compare-moments", "mini-gpt", moment=9, other_moment=9)
    assert overview.values.max() == 0
    assert np.array_equal(a.values, b.values)
    overview, *_both = drawn("compare-moments", "mini-gpt", other_moment=0)
    assert overview.values.mean() > 0.1
    assert "A: step 5,135 of the training, B: step 0" in overview.note
    with pytest.raises(TraceError, match="No moments"):
        drawn("compare-moments", "bert")


def test_heads_of_two_trainings_are_shown_beside_their_match_and_the_null_is_told():
    overview, a, b, _difference = drawn("compare-models", "mini-gpt", layer=0, head=2)
    first, second = (vf.load(name).trace(ONE) for name in ("mini-gpt", "mini-gpt-2"))
    table = analysis.match_heads(first, second, "decoder.self_attn")
    assert overview.values.ravel() == pytest.approx(table["similarity"])
    match = table.iloc[2]
    assert np.array_equal(a.values, first["decoder.0.self_attn.pattern"].value[2])
    assert np.array_equal(
        b.values, second[f"decoder.{match['other_layer']}.self_attn.pattern"].value[match["other_head"]]
    )
    assert "differ in their seed only: other pairs" in overview.note


def test_a_translator_is_compared_with_a_decoder_on_the_translation():
    overview, a, b, _difference = drawn("compare-models", "en-zh", stack="decoder.self_attn", other_model="mini-gpt")
    assert "".join(b.rows.texts[1:]) == "".join(a.rows.texts[1:]) == "我去学校。"
    assert "Two trainings of mini-gpt that differ in their seed only, on this text: 0." in overview.note
    with pytest.raises(TraceError, match="mini-gpt has no such attention"):
        drawn("compare-models", "en-zh", stack="decoder.cross_attn", other_model="mini-gpt")


def test_too_many_pairs_of_heads_are_refused(monkeypatch):
    monkeypatch.setattr(limits, "MATCHED", 1000)
    with pytest.raises(BudgetError, match="the limit is 1,000"):
        drawn("compare-models", "mini-gpt")


@pytest.mark.parametrize(("name", "other"), [("mini-gpt", "mini-gpt-2"), ("en-zh", "untrained")])
def test_the_other_model_is_by_default_one_with_the_same_attentions(name, other):
    setting = picture("compare-models").setting(vf.figures.source_of(model_of(name), ONE), {})
    assert OTHER_MODEL.start(setting) == other
    assert {stack.name for stack in STACKS if stack.in_trace(vf.load(other).trace(ONE, None))} == {
        *setting.source.stacks
    }


def test_a_forced_target_is_what_the_decoder_read():
    trace = model_of("en-zh").trace(ONE)
    again = model_of("en-zh").trace(ONE, forced(trace))
    assert again.tokens == trace.tokens
    assert forced(model_of("mini-gpt").trace(ONE)) is None


@pytest.mark.parametrize(
    ("patch", "layer", "at", "name"), [("encoder", 1, 3, "resid_pre"), ("cross-head", 0, 5, "cross_attn.heads")]
)
def test_a_value_of_another_sentence_is_carried_over_as_a_patch_of_its_trace_is(patch, layer, at, name):
    options = {"patch": patch, "patch_from": "I saw a car.", "patch_layer": layer, "patch_at": at}
    overview, *_both = drawn("compare-edited", "en-zh", "I saw a cat.", **options, **CROSS)
    model = model_of("en-zh")
    plain = model.trace("I saw a cat.")
    part = "encoder" if patch == "encoder" else "decoder"
    full, target = f"{part}.{layer}.{name}", plain.meta["target"]
    other = model.trace("I saw a car.", target, record=[full])
    edit = vf.edits.Patch.of(other, full, **{"head" if patch.endswith("head") else "token": at})
    edited = model.trace("I saw a cat.", target, edits=[edit])
    assert overview.values == pytest.approx(analysis.head_differences(plain, edited, "decoder.cross_attn"))
    assert overview.values.any()
    assert "“I saw a car.”" in overview.note


def test_a_value_of_a_sentence_of_another_length_is_refused():
    with pytest.raises(VisformerError, match="texts of equal length"):
        drawn("compare-edited", "en-zh", "I saw a cat.", patch="encoder", patch_from="I saw a big red car.", **CROSS)
