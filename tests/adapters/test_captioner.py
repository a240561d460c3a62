"""The captioner: traces of pictures, what it cannot read, and how well the bundled one does."""

from functools import cache
from itertools import islice

import numpy as np
import pytest
import torch

import visformer as vf
from visformer.adapters.checkpoints import BUNDLED, OF_TEXT
from visformer.app.serving.models import offered
from visformer.errors import ArgumentError, MissingTensor, ShapeError, TextError, VisformerError
from visformer.model.patches import pixels_of
from visformer.scenes import Scene, SceneObject, caption, draw, render
from visformer.training.captions import alignment, words_right

SCENE = Scene((SceneObject("circle", "red", 0), SceneObject("square", "blue", 4)))
TEXT = "a red circle at the top left and a blue square in the middle"


@cache
def captioner():
    return vf.load("mini-caption")


@cache
def traced():
    return captioner().trace(image=SCENE, record="*")


def test_a_picture_is_described_and_every_tensor_recorded():
    trace, config = traced(), captioner().module.config
    assert trace.meta["target"] == TEXT and not trace.meta["forced"] and trace.meta["confidence"] > 0.5
    assert trace.tokens["src"][:2] == ("r1c1", "r1c2") and trace.tokens["src"][-1] == "r8c8"
    assert trace.meta["grid"] == [8, 8] and np.array_equal(trace.image, render(SCENE))
    n, heads = len(trace.tokens["tgt"]), config.n_heads
    assert trace.stack("decoder.cross_attn").shape == (config.n_decoder_layers, heads, n, 64)
    assert trace.stack("encoder.self_attn").shape == (config.n_encoder_layers, heads, 64, 64)
    assert {"src.pixels", "src.embed", "src.position", "tgt.input", "logits"} < {*trace.names()}
    assert trace.params["src.w_patch"].shape == (48, config.d_model)


def test_the_traces_logits_are_those_of_the_plain_forward_pass():
    trace = traced()
    with torch.inference_mode():
        logits = captioner().module(pixels_of([render(SCENE)]), torch.tensor([trace.meta["ids"]["tgt"]]))
    np.testing.assert_allclose(trace["logits"].value, logits[0].numpy(), atol=1e-5)


def test_a_caption_is_forced_in_its_own_language():
    trace = captioner().trace(image=render(SCENE), text="左上角的红色圆形")
    assert trace.meta["forced"] and trace.meta["to"] == "zh" and trace.tokens["tgt"][0] == "<zh>"
    assert trace.meta["target"] == "左上角的红色圆形"
    as_others = captioner().trace(render(SCENE), "左上角的红色圆形", pair=None)  # as pages call any model
    assert as_others.tokens == trace.tokens
    assert captioner().trace(image=SCENE, to="zh").meta["target"] == caption(SCENE, "zh")


def test_arrays_scenes_tensors_and_images_of_pil_are_the_same_picture():
    pil = pytest.importorskip("PIL.Image")
    picture = render(SCENE)
    for image in (picture, picture.astype(int), torch.from_numpy(picture), pil.fromarray(picture), picture.tolist()):
        trace = captioner().trace(image=image, text="a red circle")
        assert np.array_equal(trace.image, picture)


def test_pictures_are_traced_in_one_pass_as_alone():
    scenes = list(islice(draw(2, held_out=True), 3))
    many = list(captioner().trace_many(map(render, scenes), record=("*.cross_attn.pattern", "logits")))
    for scene, trace in zip(scenes, many, strict=True):
        alone = captioner().trace(image=scene, record=("*.cross_attn.pattern", "logits"))
        assert trace.tokens == alone.tokens and np.array_equal(trace.image, alone.image)
        np.testing.assert_allclose(trace["logits"].value, alone["logits"].value, atol=1e-4)


def test_the_file_of_a_trace_has_the_picture(tmp_path):
    traced().save(tmp_path / "trace.safetensors")
    again = vf.Trace.load(tmp_path / "trace.safetensors")
    assert np.array_equal(again.image, render(SCENE)) and again.tokens == traced().tokens


def test_a_trace_of_a_text_has_no_picture():
    with pytest.raises(MissingTensor, match=r"No 'src\.pixels' in this trace"):
        assert vf.Trace.from_attention(["a"], np.ones((1, 1, 1, 1))).image is None


def test_what_patches_show_can_be_changed_and_has_gradients():
    model = captioner()

    def whiten(name, tensor):
        if name == "src.pixels":
            tensor[:, :32] = 1.0  # the upper half
        return tensor

    trace = model.trace(image=SCENE, edits=whiten)
    assert "red" not in trace.meta["target"] and (trace.image[:16] == 255).all()
    found = model.gradients(render(SCENE), "a red circle", at="src.pixels").values["src.pixels"]
    assert found.shape == (4, 64, 48) and abs(found[1]).max() > 0  # (row, patch, pixel)
    read = model.read_again(traced())
    assert next(iter(model.log_probabilities([(read, ())]))).mean() > -0.2


@pytest.mark.parametrize(
    ("image", "error", "message"),
    [
        ("a text", ArgumentError, "mini-caption reads a picture, not a text: pass image=, uint8 of shape"),
        (None, ArgumentError, "A NoneType is no picture"),
        ([[1], [2, 3]], ArgumentError, "A list is no picture"),
        (np.zeros((32, 31, 3), np.uint8), ShapeError, r"\(32, 31, 3\) does not fit: mini-caption reads .*resize"),
        (np.zeros((32, 32, 4), np.uint8), ShapeError, r"\(32, 32, 4\) does not fit"),
        (np.full((32, 32, 3), 0.5), VisformerError, "The picture has float64 from 0.5 to 0.5: pass whole numbers"),
        (np.full((32, 32, 3), 256), VisformerError, "The picture has int64 from 256 to 256"),
    ],
)
def test_what_is_no_picture_of_this_model_is_named_with_the_remedy(image, error, message):
    with pytest.raises(error, match=message):
        captioner().trace(image=image)


def test_other_mistakes_are_named():
    with pytest.raises(VisformerError, match="to='fr' is not a language of this model"):
        captioner().trace(image=SCENE, to="fr")
    with pytest.raises(TextError, match="There is no text"):
        captioner().trace(image=SCENE, text=" ")
    with pytest.raises(ArgumentError, match="Text 1, counted from 0: mini-caption reads a picture, not a text"):
        list(captioner().trace_many([render(SCENE), "a red circle"]))
    with pytest.raises(VisformerError, match="mini-caption reads one picture: pass it once"):
        captioner().trace(render(SCENE), image=SCENE)
    for given in ({"image": SCENE}, {"source": "A cat.", "text": "一只猫。"}):
        with pytest.raises(VisformerError, match="en-zh reads a text, no picture: pass source and target"):
            vf.load("en-zh").trace(**given)
    with pytest.raises(TextError, match="None is not a text: pass one sentence"):
        vf.load("en-zh").trace()


def test_a_text_as_source_is_refused_with_the_remedy():
    for call in (captioner().trace, captioner().translate, captioner().tokenize):
        with pytest.raises(ArgumentError, match=r"mini-caption reads a picture, not a text: pass image=, .* 'A cat\.'"):
            call("A cat.")


def test_models_that_read_pictures_are_offered_on_pages():
    assert {"mini-caption"} == {*BUNDLED} - {*OF_TEXT} and {*BUNDLED} <= {*offered()}


def test_the_bundled_captioner_names_colours_and_shapes_and_reads_them_off_their_objects():
    scenes = list(islice(draw(9, held_out=True), 90))
    for language in ("en", "zh"):
        texts = [told.text for told in captioner().translate_many(map(render, scenes), to=language)]
        right = [all(words_right(*each, language)) for each in zip(scenes, texts, strict=True)]
        assert sum(right) >= 0.95 * len(scenes)
    found = alignment(captioner(), scenes[:40], scenes[40:])
    assert found["on"] > 0.9 > 0.6 > found["any object"] > found["area"]
