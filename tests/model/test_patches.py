"""Patches as tokens: the embedding against torch's convolution, and the model that it makes of a Transformer."""

from dataclasses import asdict

import pytest
import torch
from torch import nn

from visformer.errors import ConfigError, ShapeError
from visformer.model import taps
from visformer.model.checkpoints import load_checkpoint, save_checkpoint
from visformer.model.config import VisionConfig
from visformer.model.kinds import build, initial_model, kind_of
from visformer.model.masks import key_mask
from visformer.model.patches import PatchEmbedding, pixels_of
from visformer.training.captions import caption_tokenizer

TINY = VisionConfig(
    500, image_size=12, patch_size=4, d_model=8, n_heads=2, n_encoder_layers=1, n_decoder_layers=1, d_ff=16, max_len=9
)


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64, torch.bfloat16], ids=str)
def test_patches_are_embedded_as_by_a_convolution_with_the_same_weights(dtype):
    embedding = PatchEmbedding(TINY).to(dtype).eval()
    convolution = nn.Conv2d(3, 8, 4, stride=4, dtype=dtype)
    with torch.no_grad():
        convolution.weight.copy_(embedding.patch.weight.unflatten(1, (3, 4, 4)))
        convolution.bias.copy_(embedding.patch.bias)
    pixels = torch.rand(2, 3, 12, 12, dtype=dtype)
    expected = convolution(pixels).flatten(2).mT + embedding.position  # (batch, patch, d_model)
    torch.testing.assert_close(embedding(pixels), expected)


def test_the_tap_gets_the_pixels_of_each_patch():
    seen = {}
    pixels = torch.rand(1, 3, 12, 12)
    PatchEmbedding(TINY)(pixels, tap=taps.full(lambda name, x: seen.setdefault(name, x)))
    assert [*seen] == ["pixels", "embed", "position", "input"]
    assert torch.equal(seen["pixels"][0, 5], pixels[0, :, 4:8, 8:12].flatten())  # of row 2, column 3


def test_pictures_are_channel_first_and_from_0_to_1():
    picture = torch.zeros(2, 2, 3, dtype=torch.uint8)
    picture[0, 1] = torch.tensor([255, 51, 0])
    assert pixels_of([picture.numpy()])[0, :, 0, 1].tolist() == pytest.approx([1.0, 0.2, 0.0])


def test_a_picture_has_no_padding_even_where_it_is_black():
    assert key_mask(torch.zeros(1, 3, 12, 12)) is None


def test_a_checkpoint_holds_a_model_that_reads_pictures(tmp_path):
    model, tokenizer = initial_model(TINY, 0).eval(), caption_tokenizer()
    save_checkpoint(tmp_path, model, tokenizer)
    loaded, _ = load_checkpoint(tmp_path)
    assert loaded.config == TINY and kind_of(loaded.config) == "vision"
    inputs = torch.rand(2, 3, 12, 12), torch.tensor([[2, 5, 6], [3, 7, 0]])
    torch.testing.assert_close(loaded(*inputs), model(*inputs), atol=5e-3, rtol=0)


def test_decoding_token_by_token_equals_reading_the_whole_target():
    model = initial_model(TINY, 1).eval()
    pixels, tgt = torch.rand(1, 3, 12, 12), torch.tensor([[2, 5, 6, 9]])
    memory, cache = model.encode(pixels), model.new_cache()
    steps = [model.decode(tgt[:, i : i + 1], memory, pixels, cache=cache, start=i) for i in range(4)]
    torch.testing.assert_close(torch.cat(steps, dim=1), model(pixels, tgt))


def test_pictures_of_another_size_are_refused():
    with pytest.raises(ShapeError, match=r"Pictures of shape \(1, 3, 12, 8\) do not fit: .* \(1, 3, 12, 12\)"):
        build(TINY)(torch.rand(1, 3, 12, 8), torch.tensor([[2]]))


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"patch_size": 5}, "image_size=12 cannot be cut into patches of 5: choose a divisor"),
        ({"image_size": 0}, "image_size=0 must be a whole number of at least 1"),
        ({"n_heads": 3}, "d_model=8 cannot be divided among n_heads=3"),
    ],
)
def test_impossible_sizes_are_refused(change, message):
    with pytest.raises(ConfigError, match=message):
        VisionConfig(**asdict(TINY) | change)
