"""The pictures of effects: the numbers of the public functions, and the sentences about them."""

import re

import numpy as np
import pytest

import visformer as vf
from tests.kinds import model_of
from tests.support import tiny_translator
from visformer import analysis
from visformer.errors import VisformerError
from visformer.export.curves import figure_svg, numbers_of
from visformer.panel import Speaker
from visformer.pictures import effects
from visformer.pictures.registry.picture import picture
from visformer.pictures.style import CURVES

TEXT, TARGET, PATH = "I bought a book.", "我买了一本书。", "decoder.2.cross_attn"
CROSS = {"stack": "decoder.cross_attn", "layer": 2, "head": 3}


def setting_of(name, model, *texts, **values):
    return picture(name).setting(vf.figures.source_of(model, *texts), values)


@pytest.fixture(scope="module")
def translator():
    return vf.load("en-zh")


@pytest.mark.parametrize("how", ["zero", "mask"])
def test_beside_each_weight_is_its_effect(translator, how):
    pattern, effect = picture("weight-effects").make(
        vf.figures.source_of(translator, TEXT, TARGET), {**CROSS, "how": how}
    )
    found = analysis.weight_effects(translator, TEXT, TARGET, path=PATH, head=3, how=how)
    np.testing.assert_array_equal(pattern.values, found.pattern)
    np.testing.assert_allclose(effect.values, found.values, atol=1e-5)
    assert (pattern.scale, effect.scale) == ("weight", "signed")
    assert pattern.rows == effect.rows
    assert np.argwhere(effect.outlined).tolist() == [
        [*np.unravel_index(abs(found.values).argmax(), found.values.shape)]
    ]


def test_a_masked_cell_has_no_effect_and_the_sentence_says_so(translator):
    setting = setting_of("weight-effects", translator, TEXT, TARGET, stack="decoder.self_attn", layer=0, head=0)
    assert np.isnan(effects.draw_weights(setting)[1].values[0, 1])
    assert effects.describe_weight(setting, (0, 1)) == "This weight is 0: there is nothing to take away."


def test_the_sentence_of_a_cell_has_its_weight_and_its_effect(translator):
    setting = setting_of("weight-effects", translator, TEXT, TARGET, **CROSS)
    found = analysis.weight_effects(translator, TEXT, TARGET, path=PATH, head=3)
    cell = row, _ = tuple(int(i) for i in np.unravel_index(abs(found.values).argmax(), found.values.shape))
    weight, effect = float(found.pattern[cell]), float(found.values[cell])
    token = translator.trace(TEXT, TARGET).tokens["next"][row]
    changes = f"the log-probability of “{token}” changes by {effects.signed(effect)} nats."
    said = f"Without this weight ({weight:.2f}), {changes}"
    assert effects.describe_weight(setting, cell) == said
    assert effects.describe_weight(setting) == f"The largest effect here. {said}"
    one = analysis.weight_effects(translator, TEXT, TARGET, path=PATH, head=3, cells=[(row, 0)])
    assert one.values[row, 0] == pytest.approx(found.values[row, 0], abs=1e-5)
    assert np.isnan(one.values).sum() == one.values.size - 1
    assert effects.signed(float(one.values[row, 0])) in effects.describe_weight(setting, (row, 0), alone=True)


def test_rows_of_the_encoder_and_estimates_are_named(translator):
    encoder = setting_of("weight-effects", translator, TEXT, TARGET, stack="encoder.self_attn")
    assert "the whole target" in effects.describe_weight(encoder)
    assert "whole target" in effects.draw_weights(encoder)[1].note
    long = setting_of("weight-effects", translator, "I bought a book and a car. " * 5, TARGET, **CROSS)
    assert "estimated by the gradient" in effects.draw_weights(long)[1].title
    assert "estimate by the gradient" in effects.describe_weight(long)


@pytest.mark.parametrize(("value", "text"), [(-1.2, "−1.20"), (0.034, "+0.0340"), (-1e-6, "0.0000")])
def test_changes_have_a_sign_and_enough_digits(value, text):
    assert effects.signed(value) == text


@pytest.mark.parametrize("scope", ["head", "layer"])
def test_each_row_has_the_median_and_range_of_its_shuffles(scope):
    model, target = tiny_translator(), "我去学校。"
    setting = setting_of("shuffle-effects", model, TEXT, target, **{**CROSS, "head": 1}, scope=scope)
    how = {"path": PATH, "head": 1} if scope == "head" else {"path": "decoder.2.*"}
    found = analysis.shuffle_effect(model, TEXT, target, **how)
    figure = picture("shuffle-effects").draw(setting)
    _, table = numbers_of(figure)
    for column, values in (("median", found.median), ("least", found.low), ("most", found.high)):
        np.testing.assert_allclose(table[column], values, atol=1e-6)
    assert table["row"][1] == "我 → 去"
    assert "Median of 20 shuffles" in effects.describe_shuffled(setting)
    assert f"by {found.median.max():.3f}" in effects.describe_shuffled(setting)
    assert "<svg" in figure_svg(figure)


def test_uniform_weights_are_one_draw(translator):
    setting = setting_of("shuffle-effects", translator, TEXT, TARGET, **CROSS, weights="uniform")
    assert effects.describe_shuffled(setting).startswith("With uniform weights, ")


def test_maps_have_the_shares_of_a_bundled_pair_and_both_ends():
    model = vf.load("mini-gpt")
    setting = setting_of("patching", model, TEXT, bundled=3)
    stream, heads = effects.draw_patched(setting)
    pair = analysis.patching_pairs("mini-gpt")[3]
    for panel, by in ((stream, "layer-token"), (heads, "head")):
        found = analysis.patching(model, pair.clean, pair.corrupt, answer=pair.answer, by=by)
        np.testing.assert_allclose(panel.values, found.share, atol=2e-4)
        assert panel.limit == stream.limit, "one scale"
        assert effects.signed(found.clean) in effects.describe_runs(setting)
        assert effects.signed(found.corrupt) in effects.describe_runs(setting)
    assert "he / they" in stream.columns.texts


def test_a_second_sentence_of_ones_own_is_patched_and_one_of_another_length_refused(translator):
    setting = setting_of("patching", translator, "I saw a cat.", stack="encoder.self_attn", corrupt="I saw a car.")
    assert "cat / car" in effects.draw_patched(setting)[0].columns.texts
    assert "“I saw a car.”" in effects.describe_runs(setting)
    for corrupt, why in (
        ("I saw a big car.", "has 6 tokens and the corrupt one 7"),
        ("I saw a cat.", "predicts the same"),
    ):
        with pytest.raises(VisformerError, match=why):
            effects.draw_patched(setting_of("patching", translator, "I saw a cat.", corrupt=corrupt))


def test_a_model_without_pairs_says_so():
    with pytest.raises(VisformerError, match="no bundled pairs for this model"):
        picture("patching").make(vf.figures.source_of(model_of("gpt2"), TEXT))


def test_the_lens_ends_with_what_the_model_predicts():
    model = vf.load("mini-gpt")
    trace = model.trace("She is a teacher.", record="logits")
    figure = picture("lens").make(vf.figures.source_of(model, "She is a teacher."))
    _, table = numbers_of(figure)
    last = [i for i, layer in enumerate(table["layer"]) if layer == 4]
    np.testing.assert_allclose([table["score"][i] for i in last], trace["logits"].value.max(axis=1), rtol=1e-4)
    assert table["token"][-1] == trace.tokens["next"][-1], "the last row has no forced token"
    assert "<svg" in figure_svg(figure)


def test_many_layers_are_thinned_out_to_twelve():
    from visformer.pictures.charts.effects import top_tokens

    figure = top_tokens(["a"], [["x"]] * 40, [[1.0]] * 40, layer="layer {layer}", title="lens", down="rows")
    assert len(figure.layout.xaxis.ticktext) == 12
    assert figure.layout.xaxis.ticktext[-1] == "layer 40"
    assert len(numbers_of(figure)[1]["layer"]) == 40


def test_the_rows_of_a_chat_have_the_colours_of_their_roles_also_in_a_file():
    from visformer.pictures.charts.effects import moved_rows

    said = [Speaker("user", "<you>", 1), None, Speaker("template", "template", 7)]
    drawn = moved_rows(["a", "<b>", "c"], [0.1] * 3, [0.0] * 3, [0.2] * 3, title="", axis="", down="", speakers=said)
    user, template = (CURVES["light"][at] for at in (1, 7))
    assert drawn.layout.yaxis.ticktext[1:] == (
        f'a <span style="color:{user}">■</span>',
        "&lt;b&gt;",
        f'c <span style="color:{template}">■</span>',
    )
    marks = re.findall(r'<tspan fill="(#\w+)">■|fill="(#\w+)"/><text[^>]*>([^<]*)<', figure_svg(drawn))
    assert marks == [("", user, "&lt;you&gt;"), ("", template, "template"), (user, "", ""), (template, "", "")]


def test_parts_sum_to_the_logit_and_a_post_norm_model_has_none(translator):
    model = vf.load("mini-gpt")
    source = vf.figures.source_of(model, "She is a teacher.")
    main, others = picture("parts").make(source, {"row": 2})
    trace = model.trace("She is a teacher.", record="logits")
    logit = trace["logits"].value[2, trace.meta["ids"]["next"][2]]
    assert main.values.sum() + others.values[:-1].sum() == pytest.approx(others.values[-1, 0], abs=1e-6)
    assert others.values[-1, 0] == pytest.approx(logit, rel=1e-5)
    assert main.values.shape == (4, 6 + 2), "heads, feed-forward, bias"
    with pytest.raises(VisformerError, match="no path adds linearly"):
        picture("parts").make(vf.figures.source_of(translator, TEXT))


def test_a_pair_is_a_text_ids_or_names_and_the_last_column_of_its_lens_is_the_models_difference():
    model = vf.load("mini-gpt")
    ids = model.token_id("is"), model.token_id("are")
    logits = model.trace("Tom", record="logits")["logits"].value
    for answer in ("is - are", ("is", "are"), ids):
        (panel,) = picture("lens").make(vf.figures.source_of(model, "Tom"), {"answer": answer, "row": 1})
        np.testing.assert_allclose(panel.values[:, -1], logits[:, ids[0]] - logits[:, ids[1]], atol=1e-3)
        assert panel.title == "logit lens: the logit of “is” minus that of “are”, after each layer"
