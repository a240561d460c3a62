"""Models of transformers that read pictures: compared with what transformers returns, and with its modules."""

import inspect
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np
import pytest
import torch
import transformers
from PIL import Image
from transformers import PreTrainedModel

import visformer as vf
from tests.adapters.huggingface.hub import _IDS, IS_OLD, SIZE, TEXT, tokenizer
from tests.adapters.huggingface.picture_models import (
    DECODERS,
    ENCODERS,
    PLACE,
    SIDE,
    clip,
    clip_processor,
    encoder,
    grid_of,
    image_processor,
    llava,
    made,
    picture,
    processor_of,
)
from tests.adapters.huggingface.test_inspection import paths_of
from visformer import scenes
from visformer.edits import Silence
from visformer.errors import ArgumentError, MissingTensor, ShapeError, TextError, VisformerError
from visformer.trace import Trace


@contextmanager
def zeroed(module: torch.nn.Module) -> Iterator[None]:
    """Let a module read zeros."""
    hook = module.register_forward_pre_hook(lambda _, args: (args[0] * 0,))
    yield
    hook.remove()


def output_projection(module: PreTrainedModel) -> torch.nn.Module:
    """Return W_O of the first layer: the first matrix of the width of the stream that is called so."""
    names = ("o_proj", "out_proj", "attention.output.dense")
    return next(part for name, part in module.named_modules() if name.endswith(names))


@pytest.mark.parametrize("kind", ENCODERS)
def test_an_encoder_gives_what_transformers_returns_and_names_its_tokens(kind):
    model, twin = vf.wrap(encoder(kind), processor_of(kind)), encoder(kind)
    (rows, columns), given = grid_of(kind), picture(*grid_of(kind))
    trace = model.trace(image=given, record="*")
    pixels = processor_of(kind)(images=Image.fromarray(given), return_tensors="pt")["pixel_values"]
    with torch.no_grad():
        theirs = twin(pixel_values=pixels, output_attentions=True)
    paths = paths_of(trace, "encoder.*.self_attn")
    assert len(paths) == len(theirs.attentions) == 2
    for path, pattern in zip(paths, theirs.attentions, strict=True):
        np.testing.assert_allclose(trace[f"{path}.pattern"], pattern[0], atol=1e-5)
        if not model._patterns_only:
            check_attention(trace, path, has_bias=kind == "beit")
    assert model._patterns_only == (IS_OLD and kind == "beit")
    if kind != "yolos":  # its stream is added to between its layers
        value = theirs.logits if "logits" in theirs else theirs.last_hidden_state
        np.testing.assert_allclose(trace["logits" if "logits" in theirs else "encoder.out"], value[0], atol=1e-4)
    names = tuple(f"r{i + 1}c{j + 1}" for i in range(rows) for j in range(columns))
    before = ENCODERS[kind][2]
    after = ("[DET 1]", "[DET 2]") if kind == "yolos" else ()
    assert trace.tokens["src"] == model.tokenize(given) == (*before, *names, *after)
    assert trace.special["src"] == (True,) * len(before) + (False,) * len(names) + (True,) * len(after)
    assert trace.patches == ("src", range(len(before), len(before) + len(names)))
    np.testing.assert_array_equal(trace.image, given)


def check_attention(trace: Trace, path: str, *, has_bias: bool) -> None:
    """Check scores, pattern and heads by q, k and v, in NumPy."""
    q, k, v, scores, pattern = (trace[f"{path}.{name}"].value for name in ("q", "k", "v", "scores", "pattern"))
    powers = np.exp(scores - scores.max(axis=-1, keepdims=True))
    np.testing.assert_allclose(pattern, powers / powers.sum(axis=-1, keepdims=True), atol=1e-5)
    np.testing.assert_allclose(trace[f"{path}.heads"], pattern @ v, atol=1e-4)
    products = q @ k.swapaxes(-1, -2) / np.sqrt(q.shape[-1])
    assert np.allclose(products, scores, atol=1e-4) != has_bias


@pytest.mark.parametrize("kind", ENCODERS)
def test_a_changed_patch_is_the_token_of_its_name(kind):
    twin, given = encoder(kind), picture(*grid_of(kind))
    read: list[torch.Tensor] = []
    blocks = next(part for part in twin.modules() if isinstance(part, torch.nn.ModuleList))

    def note(_: torch.nn.Module, args: Any, kwargs: Any) -> None:
        read.append(args[0] if args else kwargs["hidden_states"])

    blocks[0].register_forward_pre_hook(note, with_kwargs=True)
    row, column = grid_of(kind)[0] - 1, 1
    changed = given.copy()
    changed[SIDE * row : SIDE * (row + 1), SIDE * column : SIDE * (column + 1)] ^= 255
    for each in (given, changed):
        with torch.no_grad():
            twin(pixel_values=processor_of(kind)(images=Image.fromarray(each), return_tensors="pt")["pixel_values"])
    (place,) = (read[0] != read[1]).any(dim=-1)[0].nonzero().flatten().tolist()
    trace = vf.wrap(encoder(kind), processor_of(kind)).trace(image=changed)
    assert trace.tokens["src"][place] == f"r{row + 1}c{column + 1}"


@pytest.mark.parametrize("kind", ["vit", *["beit"] * (not IS_OLD), "dinov2_with_registers", "clip_vision_model"])
def test_silence_of_all_heads_of_a_layer_is_what_zeros_at_its_output_projection_are(kind):
    model, twin, given = vf.wrap(encoder(kind), processor_of(kind)), encoder(kind), picture(*grid_of(kind))
    silent = model.trace(image=given, record="*", edits=[Silence("encoder.0.self_attn", range(4))])
    pixels = processor_of(kind)(images=Image.fromarray(given), return_tensors="pt")["pixel_values"]
    with torch.no_grad(), zeroed(output_projection(twin)):
        theirs = twin(pixel_values=pixels)
    value = theirs.logits if "logits" in theirs else theirs.last_hidden_state
    np.testing.assert_allclose(silent["logits" if "logits" in theirs else "encoder.out"], value[0], atol=1e-4)


def test_what_a_patch_shows_can_be_changed_and_has_gradients():
    model, given = vf.wrap(encoder("vit"), processor_of("vit")), picture(3, 2)
    black = given.copy()
    black[SIDE : 2 * SIDE, :SIDE] = 0  # r2c1

    def blacken(name: str, tensor: torch.Tensor) -> torch.Tensor:
        if name == "src.pixels":
            tensor[:, 2] = 0.0
        return tensor

    edited, plain = (model.trace(image=each, edits=how) for each, how in ((given, blacken), (black, ())))
    np.testing.assert_array_equal(edited.image, black)
    np.testing.assert_allclose(edited.stack("encoder.self_attn"), plain.stack("encoder.self_attn"), atol=1e-5)
    found = model.gradients(given, at="src.pixels", of=lambda logits: logits[1]).values["src.pixels"]
    twin, std = encoder("vit"), torch.tensor([0.2, 0.25, 0.3]).reshape(-1, 1, 1)
    pixels = processor_of("vit")(images=Image.fromarray(given), return_tensors="pt")["pixel_values"].requires_grad_()
    (wanted,) = torch.autograd.grad(twin(pixel_values=pixels).logits[0, 1], pixels)
    wanted = (wanted / std).reshape(3, 3, SIDE, 2, SIDE).permute(1, 3, 0, 2, 4).reshape(6, -1)  # (patch, pixel)
    np.testing.assert_allclose(found[0], wanted, atol=1e-4)


@pytest.mark.parametrize("how", ["array", "PIL", "path"])
def test_a_picture_may_be_an_array_an_image_or_a_file(how, tmp_path):
    model, given = vf.wrap(encoder("vit"), processor_of("vit")), picture(30, 20)
    Image.fromarray(given).save(path := tmp_path / "picture.png")
    trace = model.trace(image={"array": given, "PIL": Image.fromarray(given), "path": path}[how])
    scaled = Image.fromarray(given).resize((2 * SIDE, 3 * SIDE), Image.Resampling.BILINEAR)
    np.testing.assert_allclose(trace.image.astype(int), np.asarray(scaled).astype(int), atol=1)
    trace.save(tmp_path / "trace.safetensors")
    read = vf.Trace.load(tmp_path / "trace.safetensors")
    np.testing.assert_array_equal(read.image, trace.image)
    assert read.patches == trace.patches
    (other,) = model.trace_many([given])
    np.testing.assert_array_equal(other.stack("encoder.self_attn"), trace.stack("encoder.self_attn"))


# A half for texts and one for pictures --------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", ["clip", "siglip"])
def test_both_halves_of_clip_give_what_the_whole_model_returns(kind):
    if IS_OLD:
        with pytest.raises(VisformerError, match="are models of their own from transformers 5 on"):
            vf.wrap(clip(kind), clip_processor())
        return
    model, twin, given = vf.wrap(clip(kind), clip_processor()), clip(kind), picture(2, 2)
    read = clip_processor()(text=[TEXT], images=[Image.fromarray(given)], return_tensors="pt")
    taken = ("input_ids", "attention_mask", "pixel_values")
    with torch.no_grad():
        theirs = twin(**{name: read[name] for name in taken}, output_attentions=True)
    of_text, of_picture = model.trace(TEXT, record="*"), model.trace(image=given, record="*")
    for trace, output in ((of_text, theirs.text_model_output), (of_picture, theirs.vision_model_output)):
        returned = torch.cat(output.attentions).numpy()
        np.testing.assert_allclose(trace.stack("encoder.self_attn"), returned, atol=1e-5)
    assert of_text.tokens["src"] == model.tokenize(TEXT) and of_picture.tokens["src"][-1] == "r2c2"
    np.testing.assert_array_equal(of_picture.image, given)
    silent = model.trace(image=given, edits=Silence("encoder.0.self_attn", 1), record="*.heads")
    assert not silent["encoder.0.self_attn.heads"].value[1].any()
    with pytest.raises(VisformerError, match="reads a text with one half and a picture with the other"):
        model.trace(TEXT, image=given)
    with pytest.raises(MissingTensor, match="'grid'"):
        assert of_text.patches


# Decoders -------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", DECODERS)
def test_a_decoder_reads_a_picture_among_its_tokens(kind):
    model, (twin, processor), given = vf.wrap(*DECODERS[kind]()), DECODERS[kind](), picture(2, 2)
    text = f"It is {PLACE[kind]} the river"
    trace = model.trace(text, image=given, record="*")
    read = processor(text=[text], images=[Image.fromarray(given)], return_tensors="pt")
    with torch.no_grad():
        theirs = twin(**read, output_attentions=True)
    np.testing.assert_allclose(trace.stack("decoder.self_attn"), torch.cat(theirs.attentions), atol=1e-5)
    np.testing.assert_allclose(trace["logits"], theirs.logits[0], atol=1e-4)
    side, places = trace.patches
    tokens = trace.tokens["tgt"]
    assert side == "tgt" and [tokens[i] for i in places] == ["r1c1", "r1c2", "r2c1", "r2c2"]
    assert read["input_ids"][0, list(places)].unique().tolist() == [twin.config.image_token_id]
    assert trace.tokens["next"][places.start - 1] == "r1c1" and "river" in tokens
    assert not any(trace.special["tgt"][i] for i in places)
    np.testing.assert_array_equal(trace.image, given)
    assert "tgt.embed" not in trace and "tgt.input has" in str(trace.lacks("tgt.embed"))
    silent = model.trace(text, image=given, record="logits", edits=[Silence("decoder.1.self_attn", range(4))])
    layers = next(part for name, part in twin.named_modules() if name.endswith("language_model.layers"))
    with torch.no_grad(), zeroed(layers[1].self_attn.o_proj):
        np.testing.assert_allclose(silent["logits"], twin(**read).logits[0], atol=1e-4)
    (again,) = model.logits([(model.read_again(trace), ())])
    np.testing.assert_allclose(again, theirs.logits[0], atol=1e-4)


@pytest.mark.parametrize("kind", DECODERS)
def test_a_decoder_describes_a_picture_as_transformers_does(kind):
    (twin, processor), given = DECODERS[kind](), picture(2, 2)
    model = vf.wrap(*DECODERS[kind]())
    read = processor(text=[f"{PLACE[kind]}It is"], images=[Image.fromarray(given)], return_tensors="pt")
    answer = model.generate("It is", image=given, max_new_tokens=4)
    read = {name: value for name, value in read.items() if name in inspect.signature(twin.forward).parameters}
    how = {"max_new_tokens": 4, "do_sample": False, "suppress_tokens": [twin.config.image_token_id]}
    theirs = twin.generate(**read, **how)[0, read["input_ids"].shape[1] :]
    assert [i for i in theirs.tolist() if i != 2] == [*answer.ids] != []
    forced = model.trace("It is", answer.ids, image=given)
    assert forced.tokens["next"][-len(answer.ids) - 1 : -1] == forced.tokens["tgt"][-len(answer.ids) :]
    other = model.generate("It is", image=255 - given, max_new_tokens=4)
    assert other.steps[0].candidates[0] != answer.steps[0].candidates[0]
    alone = model.trace("It is <image> the river")
    assert "grid" not in alone.meta and "<image>" in alone.tokens["tgt"]
    with pytest.raises(VisformerError, match=r"It is <image>.* has places for other pictures"):
        model.trace("It is", "It is <image>", image=given)


# What is refused ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("given", "error", "message"),
    [
        (
            {"image": "no such file.png"},
            VisformerError,
            r"'no such file.png' cannot be read .*there is no such file.*PNG",
        ),
        ({"image": None}, ArgumentError, "A NoneType is no picture"),
        ({"source": __file__}, ArgumentError, "reads a picture, not a text: pass image="),
        ({"image": np.zeros((8, 8))}, ShapeError, r"\(8, 8\) does not fit: pass \(row, column, RGB\)"),
        ({"image": np.full((8, 8, 3), 0.5)}, VisformerError, "from 0.5 to 0.5: pass whole numbers"),
        ({"image": picture(2, 2), "text": "a cat"}, VisformerError, "reads a picture alone: leave out the text"),
        ({"image": picture(2, 2), "pair": "a cat"}, VisformerError, "reads a picture alone: leave out the text"),
        ({"source": picture(2, 2), "image": picture(2, 2)}, VisformerError, "reads one picture: pass it once"),
    ],
)
def test_what_is_no_picture_is_named_with_the_remedy(given, error, message):
    with pytest.raises(error, match=message):
        vf.wrap(encoder("vit"), processor_of("vit")).trace(**given)


def test_a_damaged_file_is_told_from_one_of_another_kind(tmp_path):
    model = vf.wrap(encoder("vit"), processor_of("vit"))
    Image.fromarray(picture(20, 20)).save(whole := tmp_path / "whole.png")
    (tmp_path / "cut.png").write_bytes(whole.read_bytes()[:200])
    (tmp_path / "text.png").write_text("a text")
    for name, reason in (("cut.png", "it is damaged or incomplete"), ("text.png", "it has none of these formats")):
        with pytest.raises(VisformerError, match=rf"{name}' cannot be read as a picture \({reason}\)"):
            model.trace(image=tmp_path / name)


def test_a_model_needs_what_it_reads_with():
    for module, wrong, wanted in (
        (encoder("vit"), tokenizer(), r"the image processor of this model, transformers.AutoImageProcessor"),
        (clip(), tokenizer(), r"the processor of this model, transformers.AutoProcessor"),
        (llava()[0], image_processor(), r"the tokenizer of this model, transformers.AutoTokenizer"),
    ):
        with pytest.raises(VisformerError, match=f"wrap needs {wanted}.* not {type(wrong).__name__}"):
            vf.wrap(module, wrong)


def test_a_picture_that_becomes_no_grid_is_refused():
    processor = image_processor()
    processor.do_resize = False
    with pytest.raises(VisformerError, match=r"transformers fails when it is given a picture .*64\*64"):
        vf.wrap(encoder("vit"), processor)
    model = vf.wrap(encoder("dinov2"), processor)  # it reads any size: that of what it was looked at with
    assert model.info.grid == (16, 16)
    with pytest.raises(
        VisformerError, match=r"makes \(8, 12\) pixels .* only \(64, 64\) can be shown: cut the picture"
    ):
        model.trace(image=picture(2, 3))


_SOUND = {"hidden_size": 16, "num_hidden_layers": 1, "num_attention_heads": 2, "intermediate_size": 16}
_WHISPER = {"d_model": 16, "encoder_attention_heads": 2, "decoder_attention_heads": 2, "vocab_size": SIZE, **_IDS}


@pytest.mark.parametrize(
    ("name", "sizes", "message"),
    [
        ("WhisperForConditionalGeneration", _WHISPER, "reads sound, and only models"),
        ("Wav2Vec2ForCTC", {**_SOUND, "vocab_size": SIZE}, "reads sound, and only models"),
        ("SwinModel", {"embed_dim": 8, "depths": [1, 1], "num_heads": [2, 2], "image_size": 16, "window_size": 2},
         "returns no attention weights .* attend in windows"),
        ("ResNetModel", {"embedding_size": 8, "hidden_sizes": [8, 8], "depths": [1, 1]}, "tokens are not the patches"),
    ],
)  # fmt: skip
def test_sound_windows_and_what_has_no_tokens_are_refused(name, sizes, message):
    kind = getattr(transformers, name)
    module = made(name, kind.config_class(**sizes))
    processor = tokenizer() if module.main_input_name != "pixel_values" else image_processor(16, 16)
    with pytest.raises(VisformerError, match=message):
        vf.wrap(module, processor)


@pytest.mark.parametrize("kind", ["vit", *["clip"] * (not IS_OLD), "llava"])
def test_a_folder_is_loaded_with_what_the_model_reads_with(kind, tmp_path):
    module, processor = {
        "vit": lambda: (encoder("vit"), processor_of("vit")),
        "clip": lambda: (clip(), clip_processor()),
        "llava": llava,
    }[kind]()
    for each in (module, processor):
        each.save_pretrained(tmp_path)
    model, given = vf.load(tmp_path), picture(3, 2) if kind == "vit" else picture(2, 2)
    how = {"text": "It is"} if kind == "llava" else {}
    trace, wanted = (each.trace(image=given, **how) for each in (model, vf.wrap(module, processor)))
    stack = "decoder.self_attn" if kind == "llava" else "encoder.self_attn"
    np.testing.assert_allclose(trace.stack(stack), wanted.stack(stack), atol=1e-5)
    np.testing.assert_array_equal(trace.image, given)


def test_a_folder_of_a_model_of_sound_is_refused(tmp_path):
    kind = transformers.WhisperForConditionalGeneration
    made(kind.__name__, kind.config_class(**_WHISPER)).save_pretrained(tmp_path)
    with pytest.raises(VisformerError, match="WhisperModel reads sound"):
        vf.load(tmp_path)


TEMPLATES = {
    "llava": (
        "{% for message in messages %}{{ message.role }} : {% for part in message.content %}"
        "{{ '<image>' if part.type == 'image' else part.text }}{% endfor %} . {% endfor %}"
        "{% if add_generation_prompt %}assistant :{% endif %}"
    ),
    "gemma3": (
        "{{ bos_token }}{% for message in messages %}{{ message.role }} : {% for part in message.content %}"
        "{{ '<boi>' if part.type == 'image' else part.text | trim }}{% endfor %} . {% endfor %}"
        "{% if add_generation_prompt %}model :{% endif %}"
    ),
}


def chatting(kind):
    """Return a decoder with a chat template, and its processor."""
    module, processor = DECODERS[kind]()
    processor.chat_template = TEMPLATES[kind]
    return vf.wrap(module, processor), processor


def said(text, *, role="user", image=None):
    """Return a message, with a picture before its text if there is one."""
    parts = [] if image is None else [{"type": "image", **({} if image is True else {"image": image})}]
    return {"role": role, "content": [*parts, {"type": "text", "text": text}]}


@pytest.mark.parametrize("kind", DECODERS)
@pytest.mark.parametrize("prompting", [False, True])
def test_messages_with_a_picture_are_read_as_by_the_processors_chat_template(kind, prompting):
    model, processor = chatting(kind)
    given = picture(2, 2)
    messages = [said("It is the river", image=True), said("I saw", role="assistant"), said("school today")]
    answer = "again" if prompting else None
    trace = model.trace(messages, answer, image=given, record="logits")
    full = [said("It is the river", image=Image.fromarray(given)), *messages[1:]]
    how = {"tokenize": True, "return_dict": True, "return_tensors": "pt", "add_generation_prompt": prompting}
    read = processor.apply_chat_template(full, **how)
    ids = [
        *read["input_ids"][0].tolist(),
        *processor.tokenizer("again", add_special_tokens=False)["input_ids"] * prompting,
    ]
    assert trace.meta["ids"]["tgt"] == ids
    twin, _ = DECODERS[kind]()
    more = {name: value for name, value in read.items() if name not in ("input_ids", "attention_mask")}
    if "token_type_ids" in more:
        more["token_type_ids"] = torch.tensor([[*more["token_type_ids"][0].tolist(), *[0] * prompting]])
    with torch.no_grad():
        wanted = twin(input_ids=torch.tensor([ids]), **more).logits[0]
    np.testing.assert_allclose(trace["logits"].value, wanted, atol=1e-4)
    inside = [*model.trace(full, answer, record="logits").tokens["tgt"]]
    assert inside == [*trace.tokens["tgt"]], "the picture may be in the message"


@pytest.mark.parametrize("kind", DECODERS)
def test_the_tokens_of_a_picture_have_the_role_of_the_message_that_shows_it(kind):
    model, _ = chatting(kind)
    messages = [said("It is", role="system"), said("the river", image=True), said("I saw", role="assistant")]
    trace = model.trace(messages, "again", image=picture(2, 2), record="*.pattern")
    told = dict.fromkeys(("system", "user", "assistant"), ())
    for token, role in zip(trace.tokens["tgt"], trace.roles["tgt"], strict=True):
        told = {**told, role: (*told.get(role, ()), token)}
    assert told["system"] == ("It", "is")
    assert [token for token in told["user"] if token not in ("<boi>", "<eoi>")] == [
        "r1c1",
        "r1c2",
        "r2c1",
        "r2c2",
        "the",
        "river",
    ]
    assert told["assistant"] == ("I", "saw", "again")
    assert "." in told[None], "the template's own"


def test_a_chat_is_answered_about_its_picture_as_transformers_does():
    model, processor = chatting("llava")
    given = picture(2, 2)
    decoding = model.generate([said("It is the river")], image=given, max_new_tokens=4)
    full = [said("It is the river", image=Image.fromarray(given))]
    how = {"tokenize": True, "return_dict": True, "return_tensors": "pt", "add_generation_prompt": True}
    read = processor.apply_chat_template(full, **how)
    twin, _ = DECODERS["llava"]()
    read.pop("token_type_ids", None)  # of transformers 4's tokenizers, which the model does not take
    theirs = twin.generate(**read, max_new_tokens=4, do_sample=False)[0, read["input_ids"].shape[1] :]
    assert [*decoding.ids] == theirs.tolist()[: len(decoding.ids)]


def test_a_chat_with_several_pictures_or_without_a_template_is_refused():
    model, _ = chatting("llava")
    given = picture(2, 2)
    with pytest.raises(VisformerError, match="one picture: pass it once, as image= or in a message, not 2"):
        model.trace([said("It is", image=given)], image=given)
    with pytest.raises(TextError, match="cannot be written with the tokenizer's chat template"):
        vf.wrap(*llava()).trace([said("It is", image=given)])


@pytest.mark.parametrize("kind", DECODERS)
@pytest.mark.parametrize("batch", [None, 4])
def test_many_texts_with_a_picture_each_are_traced_as_each_alone(kind, batch):
    model, _ = chatting(kind)
    texts = ["It is", "I saw the river again today", "school", [said("the river")]]
    images = [picture(2, 2, seed=1), picture(2, 2, seed=2), None, picture(2, 2, seed=3)]
    many = [*model.trace_many(texts, images=images, record="*", batch=batch)]
    for text, image, trace in zip(texts, images, many, strict=True):
        alone = model.trace(text, image=image, record="*")
        assert trace.tokens == alone.tokens and trace.roles == alone.roles and [*trace.tensors] == [*alone.tensors]
        for name, tensor in alone.tensors.items():
            np.testing.assert_allclose(trace[name].value, tensor.value, atol=2e-5, err_msg=name)


def test_many_captions_are_forced_for_a_picture_each():
    model, scene = vf.load("mini-caption"), scenes.EXAMPLES
    texts = [scenes.caption(each, "en") for each in scene[1:3]]
    many = [*model.trace_many(texts, images=scene[:2], to="en", record="logits")]
    for text, image, trace in zip(texts, scene, many, strict=False):
        alone = model.trace(image=image, text=text, to="en", record="logits")
        np.testing.assert_allclose(trace["logits"].value, alone["logits"].value, atol=1e-4)
    with pytest.raises(VisformerError, match="images must have one entry for each"):
        [*model.trace_many(texts, images=scene[:1])]
    if not IS_OLD:  # which has no halves
        with pytest.raises(VisformerError, match="picture_half, in place of texts"):
            [*vf.wrap(clip(), clip_processor()).trace_many(["It"], images=[picture(2, 2)])]
