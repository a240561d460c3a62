"""What a captioner learns from, and how it is scored."""

from typing import cast

import torch

from visformer.adapters.own import Captioner
from visformer.model.config import VisionConfig
from visformer.model.kinds import initial_model
from visformer.model.tokenizer import EOS
from visformer.model.transformer import Transformer
from visformer.scenes import Scene, SceneObject, caption
from visformer.training.captions import (
    _rows,
    accuracy,
    alignment,
    caption_batches,
    caption_tokenizer,
    held_out_scenes,
    words_right,
)

TWO = Scene((SceneObject("circle", "red", 0), SceneObject("square", "blue", 4)))


def test_each_word_of_a_caption_is_a_token():
    tokenizer = caption_tokenizer()
    assert tokenizer.shown(tokenizer.encode("an orange triangle on the left")) == (
        *("an", "orange", "triangle", "on", "the", "left"),
    )
    assert tokenizer.shown(tokenizer.encode("左上角的紫色三角形")) == ("左上角", "的", "紫色", "三角形")


def test_batches_are_pictures_with_captions_in_both_languages_the_same_for_a_seed():
    tokenizer = caption_tokenizer()
    one, again = (caption_batches(tokenizer, 2, scenes=6, seed=3)[1] for _ in range(2))
    pixels, tgt = one.inputs
    assert pixels.shape == (6, 3, 32, 32) and pixels.dtype == torch.float32 and 0 <= pixels.min() < pixels.max() <= 1
    assert {*tgt[:, 0].tolist()} == {2, 3} and torch.equal(tgt[:, 1:], one.targets[:, :-1] * (tgt[:, 1:] != 0))
    assert (one.targets == tokenizer.token_id(EOS)).sum() == 6
    assert torch.equal(pixels, again.inputs[0]) and one.tokens == int((tgt != 0).sum())


def test_scenes_to_score_on_and_to_choose_on_are_different_and_held_out():
    scored, chosen_on = held_out_scenes()
    assert (len(scored), len(chosen_on)) == (1000, 300) and len({*scored, *chosen_on}) == 1300
    assert all(scene.is_held_out for scene in (*scored, *chosen_on))


def test_words_are_right_where_they_stand():
    text = caption(TWO, "en")
    assert words_right(TWO, text, "en") == [True] * 4
    assert words_right(TWO, text.replace("blue", "green"), "en") == [True, True, False, True]
    assert words_right(TWO, "a red circle", "en") == [False] * 4
    assert words_right(TWO, caption(TWO, "zh"), "zh") == [True] * 4


def test_an_untrained_captioner_names_nothing_and_reads_no_word_off_its_object():
    tokenizer, scenes = caption_tokenizer(), held_out_scenes()[0][:40]
    config = VisionConfig(
        len(tokenizer), image_size=32, patch_size=4, d_model=16, n_heads=2, n_encoder_layers=1, n_decoder_layers=1
    )
    model = Captioner(cast(Transformer, initial_model(config, 3)).eval(), tokenizer)
    assert accuracy(model, scenes)["en"]["words"]["right"] == 0
    found = alignment(model, scenes[:20], scenes[20:])
    assert found["on"] < 0.6 and found["on"] + found["other"] <= 1


def test_the_rows_of_a_word_predict_its_first_token_and_read_its_last():
    tokens = ((0, 1), (2, 5), (6, 9), (9, 12))
    assert _rows((6, 12), tokens) == {"prediction": 2, "input": 4}
