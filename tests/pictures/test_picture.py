"""A picture and its caption: the numbers of its pictures, and what the page opens with."""

import io

import numpy as np
import pytest
import torch
from PIL import Image

import visformer as vf
from benchmarks.messages import read_message
from tests.adapters.huggingface.picture_models import DECODERS, encoder, grid_of, processor_of
from tests.adapters.huggingface.picture_models import picture as picture_of_patches
from visformer import scenes
from visformer.adapters.picture_files import Prompt
from visformer.edits import Block
from visformer.errors import VisformerError
from visformer.panel import one_by_one, stack_says
from visformer.pictures import map as model_map
from visformer.pictures import picture
from visformer.pictures.registry.picture import picture as named
from visformer.trace.stacks import STACKS
from visformer.web.map import pack_map

SCENE = scenes.EXAMPLES[0]


def file_of(given):
    """Return the content of a file with a picture."""
    Image.fromarray(given).save(file := io.BytesIO(), "PNG")
    return file.getvalue()


MIDDLE = 4


@pytest.fixture(scope="module")
def model():
    return vf.load("mini-caption")


@pytest.fixture(scope="module", params=scenes.LANGUAGES)
def trace(model, request):
    return model.trace(scenes.caption(SCENE, request.param), record=("*.pattern", "src.*"))


def test_objects_are_found_in_the_picture_where_the_scene_has_them(trace):
    found = picture.objects(trace)
    assert [*found] == [one.cell for one in SCENE.objects]
    np.testing.assert_array_equal(np.stack([*found.values()]), scenes.patches_of(SCENE, 4))
    assert [picture.short_name(trace, at) for at in found] == [("red", "↖"), ("blue", "•"), ("green", "↘")]


def test_a_word_reads_what_the_row_that_predicts_it_reads(trace):
    every = np.concatenate([trace[f"decoder.{layer}.cross_attn.pattern"].value for layer in (0, 1)])
    words = len(trace.tokens["next"]) - 1  # without </s>
    np.testing.assert_allclose(picture.word_weights(trace), every.mean(axis=0)[:words], rtol=1e-5)
    np.testing.assert_array_equal(picture.word_weights(trace, (1, 3)), every[7][:words])
    shown, table = picture.reading(trace, 1)
    np.testing.assert_allclose(shown.values.ravel(), every.mean(axis=0)[1], rtol=1e-5)
    np.testing.assert_allclose(table.values[:, :-1].sum(axis=1), 1, rtol=1e-5)  # objects, and elsewhere
    at_second_word = table.values.shape[1]
    np.testing.assert_allclose(shown.whole[at_second_word].ravel(), shown.values.ravel())
    np.testing.assert_allclose(table.whole[8][:, -1], every.mean(axis=0)[:words, 8], rtol=1e-5)


def test_the_first_word_is_the_one_that_gives_most_to_one_object(trace):
    weights, found = picture.word_weights(trace), picture.objects(trace)
    sums = np.stack([weights[:, patches].sum(axis=1) for patches in found.values()])  # (object, word)
    word = picture.telling_word(trace)
    assert sums[:, word].max() == sums.max() > 0.85
    assert trace.tokens["next"][word] in ("red", "绿色")
    assert any(patches[picture.telling_patch(trace)] for patches in found.values())


def test_the_first_head_between_patches_stays_in_an_object_more_than_any_other(trace):
    def share(layer, head):
        pattern = trace[f"encoder.{layer}.self_attn.pattern"].value[head].copy()
        np.fill_diagonal(pattern, 0)
        found = picture.objects(trace).values()
        return np.mean([pattern[np.ix_(patches, patches)].sum(axis=1).mean() for patches in found])

    heads = [(layer, head) for layer in (0, 1) for head in range(4)]
    assert picture.telling_head(trace) == max(heads, key=lambda place: share(*place)) == (1, 2)
    assert max(share(0, head) for head in range(4)) < share(1, 2) / 2, "the lesson: layer 1 spreads its weight more"


def test_a_vector_is_the_embedding_and_the_position_of_a_patch(trace, model):
    panels = {panel.name: panel for panel in one_by_one(picture.vectors(trace, 9))}
    weight, bias = (model.module.src_embedding.patch.weight, model.module.src_embedding.patch.bias)
    pixels = panels["pixels"].values.ravel()
    assert pixels.shape == (48,)
    own = pixels @ weight.detach().numpy().T + bias.detach().numpy()
    np.testing.assert_allclose(panels["embed"].values[0], own, atol=1e-5)
    total = panels["embed"].values + panels["position"].values
    np.testing.assert_allclose(panels["input"].values, total, atol=1e-5)
    assert panels["near"].values[1, 1] == pytest.approx(1)


@pytest.mark.parametrize(
    ("language", "everywhere", "lost", "new"),
    [
        ("en", False, ["blue", "square"], ["red", "circle"]),
        ("zh", False, ["蓝色", "方形"], ["红色", "圆形"]),
        ("en", True, [",", "a", "blue", "square", "in", "the", "middle"], []),
        ("zh", True, ["、", "中间", "的", "蓝色", "方形"], []),
    ],
)
def test_blocking_the_middle_object_changes_its_words_alone(model, language, everywhere, lost, new):
    text = scenes.caption(SCENE, language)
    patches = tuple(map(int, np.flatnonzero(scenes.patches_of(SCENE, 4)[1])))
    found = picture.blocking(model, text, patches=patches, everywhere=everywhere)
    assert [word for word, kept in zip(found.before, found.kept[0], strict=True) if not kept] == lost
    assert [word for word, kept in zip(found.after, found.kept[1], strict=True) if not kept] == new
    paths = ["decoder.*.cross_attn", *(["encoder.*.self_attn"] if everywhere else [])]
    edits = [Block(path, key=patch) for path in paths for patch in patches]
    own = model.trace(image=SCENE, to=language, edits=edits, record=("logits",))
    assert found.after == own.tokens["next"][:-1]
    if not everywhere:
        changed = ~found.kept[0]
        assert found.weights[changed].min() > 0.5, "the lesson: they had given it most of their weight"
        assert found.chances[0, changed].min() > 0.9
        assert found.chances[1, changed].max() < 0.5


def test_the_block_is_at_first_of_the_middle_object(model):
    from visformer.figures import source_of

    source = source_of(model, scenes.caption(SCENE, "en"))
    setting = named("picture-block").setting(source, {})
    assert (setting["object"], setting["where"]) == (MIDDLE, "cross")
    shown, words = named("picture-block").draw(setting)
    np.testing.assert_array_equal(shown.values.ravel() == 0, scenes.patches_of(SCENE, 4)[1])
    assert words.outlined.any(axis=1).sum() == 2


def test_a_text_that_describes_a_scene_stands_for_its_picture(model):
    for example in scenes.EXAMPLES:
        for language in scenes.LANGUAGES:
            text = scenes.caption(example, language)
            assert scenes.described(text) == (example, language)
            assert scenes.described(f"{text}!") is None
    trace = model.trace("左上角的红色圆形")
    assert (trace.meta["to"], trace.meta["source"]) == ("zh", "左上角的红色圆形")
    np.testing.assert_array_equal(trace.image, scenes.render(scenes.described("左上角的红色圆形")[0]))
    twice = "a red circle in the middle and a blue circle in the middle"
    assert scenes.described(twice) is None
    assert scenes.described("a blue circle in the middle and a red circle at the top") is None, "not in order"


def test_no_page_says_that_the_captioner_reads_or_translates_a_text(trace):
    said = [model_map.heading(trace), *(stack_says(trace, stack) for stack in STACKS)]
    assert said == [
        "How a Transformer describes a picture",
        "source reads itself",
        "target reads itself",
        "target reads source",
    ]
    header, _ = read_message(pack_map(trace))
    assert header["text"]["encoder_does"] == "reads the picture"


@pytest.mark.parametrize(("kind", "first"), [("vit", 1), ("dinov2_with_registers", 4), ("siglip_vision_model", 0)])
def test_of_any_encoder_of_patches_it_is_seen_what_a_token_reads(kind, first):
    (rows, columns), given = grid_of(kind), picture_of_patches(*grid_of(kind))
    trace = vf.wrap(encoder(kind), processor_of(kind)).trace(image=given, record="*.pattern")
    mean = trace.stack("encoder.self_attn").mean(axis=(0, 1))  # (query, key)
    n = rows * columns
    for token in {0, first, first + 2}:
        *left, right = picture.between(trace, token)
        np.testing.assert_allclose(right.values.ravel(), mean[token, first : first + n], rtol=1e-5)
        np.testing.assert_array_equal(right.picture, given)
        if token < first:
            assert not left, "[CLS] is no patch of the picture"
        else:
            (shown,) = left
            assert shown.outlined.ravel().nonzero()[0].tolist() == [token - first]
            np.testing.assert_allclose(
                shown.whole.reshape(n, n).T, mean[first : first + n, first : first + n], rtol=1e-5
            )


def test_a_figure_has_the_picture_below_a_veil_that_is_thin_where_a_head_reads():
    trace = vf.wrap(encoder("vit"), processor_of("vit")).trace(image=picture_of_patches(3, 2))
    below, veil = vf.figures.picture_heads(trace, patch=0, encoder_heads="2.3").data
    np.testing.assert_array_equal(below.z, trace.image)
    assert (below.dx, below.x0, below.dy, below.y0) == (0.25, -0.375, 0.25, -0.375)  # a cell has four pixels
    weights = trace["encoder.1.self_attn.pattern"].value[2]
    most = np.median(weights[1:, 1:].max(axis=1))  # of a patch, typically
    np.testing.assert_allclose(np.square(veil.z).ravel(), np.clip(weights[0, 1:] / most, 0, 1), atol=1e-5)


@pytest.mark.parametrize("kind", DECODERS)
def test_a_word_of_a_decoder_reads_patches_in_its_own_row(kind):
    model = vf.wrap(*DECODERS[kind]())
    trace = model.trace("It is the river", image=picture_of_patches(2, 2), record="*.pattern")
    _, patches = trace.patches
    rows = picture.written(trace)
    told = [trace.tokens["next"][row] for row in rows]
    assert told[-5:-1] == ["It", "is", "the", "river"] or told[-4:] == ["It", "is", "the", "river"]
    wanted = trace["decoder.1.self_attn.pattern"].value[3][rows][:, patches]
    np.testing.assert_allclose(picture.word_weights(trace, (1, 3)), wanted, rtol=1e-6)
    shown, words = picture.reading(trace, 1, (1, 3))
    np.testing.assert_allclose(shown.values.ravel(), wanted[1], rtol=1e-6)
    np.testing.assert_allclose(
        words.values, np.stack([wanted.sum(axis=1), wanted[:, wanted[1].argmax()]], axis=1), rtol=1e-5
    )
    assert not picture.objects(trace) and words.columns.texts == ("the picture", "this patch")


def test_of_a_picture_that_is_no_scene_no_object_is_known(model):
    trace = model.trace(image=np.random.default_rng(0).integers(256, size=(32, 32, 3), dtype=np.uint8))
    assert not picture.objects(trace)
    shown, words = picture.reading(trace, 0)
    assert words.columns.texts == ("this patch",) and shown.values.sum() == pytest.approx(1, abs=1e-5)


def test_the_parts_of_a_photograph_are_ninths_and_those_of_a_scene_its_objects(trace):
    assert [*picture.parts(trace)] == [*picture.objects(trace)] == [one.cell for one in SCENE.objects]
    for kind, places in (("vit", [0, 2, 3, 5, 6, 8]), ("siglip_vision_model", [0, 2, 6, 8])):  # 3 x 2 and 2 x 2 patches
        rows, columns = grid_of(kind)
        seen = vf.wrap(encoder(kind), processor_of(kind)).trace(image=picture_of_patches(rows, columns))
        found = picture.parts(seen)
        assert [*found] == places
        np.testing.assert_array_equal(np.stack([*found.values()]), np.eye(rows * columns))


def test_the_default_word_of_a_decoder_is_the_one_that_it_adds():
    module, processor = DECODERS["llava"]()
    given = picture_of_patches(2, 2)
    trace = vf.wrap(module, processor).trace("It is", image=given, record="*.pattern")
    read = processor(text=["<image>It is"], images=[Image.fromarray(given)], return_tensors="pt")
    with torch.no_grad():
        added = module(**read).logits[0, -1].argmax()
    word = picture.written(trace)[picture.telling_word(trace)]
    assert trace.meta["ids"]["next"][word] == added and word == len(trace.tokens["next"]) - 1


@pytest.mark.parametrize("kind", ["vit", "deit"])
def test_a_classifier_predicts_as_without_the_patches_that_nobody_may_read(kind):
    module, given = encoder(kind), picture_of_patches(*grid_of(kind))
    with vf.wrap(module, processor_of(kind)) as model:
        first = model.trace(image=given).patches[1].start
        found, some = (picture.blocking(model, given, patches=(1, 3), everywhere=each) for each in (True, False))

    def without(_module, inputs):
        kept = [at for at in range(inputs[0].shape[1]) if at - first not in (1, 3)]
        return (inputs[0][:, kept], *inputs[1:])

    layer = next(each for name, each in module.named_modules() if name.endswith((".layer.0", ".layers.0")))
    pixels = processor_of(kind)(images=[Image.fromarray(given)], return_tensors="pt")["pixel_values"]
    with torch.no_grad():
        plain = module(pixels).logits[0].softmax(dim=0).numpy()
        layer.register_forward_pre_hook(without)
        blocked = module(pixels).logits[0].softmax(dim=0).numpy()
    order = np.argsort(-plain)
    labels = [*module.config.id2label.values()]
    assert found.before == tuple(labels[at] for at in order)
    np.testing.assert_allclose(found.chances, [plain[order], blocked[order]], atol=1e-5)
    assert np.abs(plain - blocked).max() > 1e-3 and found.weights is None
    assert np.abs(some.chances[1] - found.chances[1]).max() > 1e-4, "other patches go on reading them"


def test_a_decoder_predicts_as_with_a_mask_on_the_patches_that_nobody_may_read():
    (module, processor), given = DECODERS["llava"](), picture_of_patches(2, 2)
    model = vf.wrap(module, processor)
    prompt = Prompt("It is the river", file_of(given))
    found = picture.blocking(model, prompt, patches=(0, 3), everywhere=True)
    read = processor(text=["<image>It is the river"], images=[Image.fromarray(given)], return_tensors="pt")
    mask = torch.ones_like(read["attention_mask"])
    mask[0, [1, 4]] = 0
    places = torch.arange(mask.shape[1])[None]
    with torch.no_grad():
        chances = [
            module(**{**read, "attention_mask": each}, position_ids=places).logits[0].softmax(dim=1).numpy()
            for each in (torch.ones_like(mask), mask)
        ]
    rows = [4, 5, 6, 7]  # which predict It is the river
    ids = read["input_ids"][0, 5:9]
    np.testing.assert_allclose(found.chances[:, :4], [each[rows, ids] for each in chances], atol=1e-5)
    assert found.before[:4] == found.after[:4] == ("It", "is", "the", "river")
    assert np.abs(found.chances[0] - found.chances[1]).max() > 1e-3


@pytest.mark.parametrize(("kind", "stored"), [("vit", "src.input"), ("llava", "tgt.input")])
def test_the_vector_of_a_patch_of_any_model_is_drawn_beside_its_pixels(kind, stored):
    model = vf.wrap(*(DECODERS[kind]() if kind in DECODERS else (encoder(kind), processor_of(kind))))
    rows, columns = grid_of("vit") if kind == "vit" else (2, 2)
    given = picture_of_patches(rows, columns)
    how = {"text": "It is"} if kind == "llava" else {}
    trace = model.trace(image=given, record=("src.*", "*.input"), **how)
    first = trace.patches[1].start
    shown = {panel.name: panel for panel in one_by_one(picture.vectors(trace, first + 1))}
    assert [*shown] == ["picture", "pixels", "input"]
    np.testing.assert_allclose(shown["pixels"].values, given[:4, 4:8].reshape(-1, 3).T / 255, atol=1e-6)
    np.testing.assert_array_equal(shown["input"].values[0], trace[stored].value[first + 1])
    assert "pixels" not in {panel.name for panel in one_by_one(picture.vectors(trace, 0))}, "no patch of the picture"


def test_a_model_that_writes_no_word_says_so():
    trace = vf.wrap(encoder("vit"), processor_of("vit")).trace(image=picture_of_patches(3, 2))
    with pytest.raises(VisformerError, match="writes no word after this picture"):
        vf.figures.picture_words(trace)
