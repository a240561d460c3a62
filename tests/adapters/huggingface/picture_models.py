"""Tiny untrained models of transformers that read pictures, with what they read with."""

from collections.abc import Callable
from typing import Any

import numpy as np
import torch
import transformers
from tokenizers import AddedToken
from transformers import AutoConfig, PreTrainedModel

from tests.adapters.huggingface.hub import _IDS, SIZE, tokenizer

SIDE = 4  # of a patch, in pixels
_WIDTH = {"hidden_size": 16, "num_hidden_layers": 2, "num_attention_heads": 4, "intermediate_size": 24}
_EYE = {**_WIDTH, "patch_size": SIDE, "image_size": 2 * SIDE}
_TALL = {**_EYE, "image_size": (3 * SIDE, 2 * SIDE)}
_TEXT = {**_WIDTH, "vocab_size": SIZE, "max_position_embeddings": 64, **_IDS}

ENCODERS: dict[str, tuple[str, dict[str, Any], tuple[str, ...]]] = {
    "vit": ("ViTForImageClassification", _TALL, ("[CLS]",)),
    "deit": ("DeiTForImageClassification", _TALL, ("[CLS]", "[DIST]")),
    "deit-teacher": ("DeiTForImageClassificationWithTeacher", _EYE, ("[CLS]", "[DIST]")),
    "dinov2": ("Dinov2Model", _EYE, ("[CLS]",)),
    "dinov2_with_registers": (
        "Dinov2WithRegistersForImageClassification",
        {**_EYE, "num_register_tokens": 3},
        ("[CLS]", "[REG 1]", "[REG 2]", "[REG 3]"),
    ),
    "beit": ("BeitForImageClassification", {**_EYE, "use_relative_position_bias": True}, ("[CLS]",)),
    "clip_vision_model": ("CLIPVisionModel", _EYE, ("[CLS]",)),
    "siglip_vision_model": ("SiglipVisionModel", _EYE, ()),
    "yolos": ("YolosModel", {**_EYE, "image_size": (2 * SIDE, 2 * SIDE), "num_detection_tokens": 2}, ("[CLS]",)),
}
"""Kind to its class, its sizes and the tokens before the patches."""


def made(name: str, config: Any, seed: int = 0) -> PreTrainedModel:
    """Return an untrained model whose attention is far from uniform."""
    torch.manual_seed(seed)
    config._attn_implementation = "eager"
    module = getattr(transformers, name)(config)
    with torch.no_grad():
        for weight in module.parameters():
            weight.normal_(std=0.3)
    return module.eval()


def encoder(kind: str) -> PreTrainedModel:
    """Return an encoder."""
    name, sizes, _ = ENCODERS[kind]
    config = AutoConfig.for_model(kind.partition("-")[0], **{**sizes, "num_labels": 3})
    return made(name, config)


def image_processor(height: int = 2 * SIDE, width: int = 2 * SIDE) -> Any:
    """Return an image processor that makes pictures of a size, with numbers around 0."""
    kind = getattr(transformers, "ViTImageProcessorPil", None) or transformers.ViTImageProcessor
    mean, std = [0.4, 0.5, 0.6], [0.2, 0.25, 0.3]
    return kind(size={"height": height, "width": width}, image_mean=mean, image_std=std)


def processor_of(kind: str) -> Any:
    """Return the image processor of an encoder."""
    size = ENCODERS[kind][1]["image_size"]
    return image_processor(*(size if isinstance(size, tuple) else (size, size)))


def picture(rows: int, columns: int, seed: int = 0) -> np.ndarray:
    """Return a picture of patches, uint8 (row, column, RGB)."""
    return np.random.default_rng(seed).integers(256, size=(rows * SIDE, columns * SIDE, 3), dtype=np.uint8)


def grid_of(kind: str) -> tuple[int, int]:
    """Return the rows and columns of patches of an encoder."""
    size = ENCODERS[kind][1]["image_size"]
    height, width = size if isinstance(size, tuple) else (size, size)
    return height // SIDE, width // SIDE


def clip(kind: str = "clip") -> PreTrainedModel:
    """Return a model with two halves."""
    sizes = {"text_config": _TEXT, "vision_config": _EYE}
    more = {"projection_dim": 8} if kind == "clip" else {}
    return made({"clip": "CLIPModel", "siglip": "SiglipModel"}[kind], AutoConfig.for_model(kind, **sizes, **more))


def clip_processor() -> Any:
    """Return the processor of :func:`clip`."""
    kind = getattr(transformers, "CLIPImageProcessorPil", None) or transformers.CLIPImageProcessor
    images = kind(size={"height": 2 * SIDE, "width": 2 * SIDE}, do_center_crop=False)
    return transformers.CLIPProcessor(images, tokenizer())


def with_pictures() -> Any:
    """Return the tokenizer with tokens for a picture, its beginning and its end."""
    names = {"image_token": "<image>", "boi_token": "<boi>", "eoi_token": "<eoi>"}
    plain = tokenizer()
    plain = transformers.PreTrainedTokenizerFast(
        tokenizer_object=type(plain.backend_tokenizer).from_str(plain.backend_tokenizer.to_str()),
        pad_token="<pad>", bos_token="<s>", eos_token="</s>", unk_token="<unk>", extra_special_tokens=names,
    )  # fmt: skip
    plain.add_special_tokens({"additional_special_tokens": [AddedToken(each) for each in names.values()]})
    return plain


def llava() -> tuple[PreTrainedModel, Any]:
    """Return LLaVA, with its processor."""
    own = with_pictures()
    config = transformers.LlavaConfig(
        text_config=transformers.LlamaConfig(**{**_TEXT, "vocab_size": len(own)}, num_key_value_heads=2),
        vision_config=transformers.CLIPVisionConfig(**_EYE),
        image_token_index=own.convert_tokens_to_ids("<image>"), image_seq_length=4,
    )  # fmt: skip
    processor = transformers.LlavaProcessor(
        image_processor(), own, patch_size=SIDE, vision_feature_select_strategy="default",
        num_additional_image_tokens=1,
    )  # fmt: skip
    return made("LlavaForConditionalGeneration", config), processor


def gemma3() -> tuple[PreTrainedModel, Any]:
    """Return Gemma 3, with its processor."""
    own = with_pictures()
    sizes = {
        **_TEXT,
        "vocab_size": len(own),
        "num_key_value_heads": 2,
        "head_dim": 4,
        "query_pre_attn_scalar": 4,
        "sliding_window": 3,
    }
    config = transformers.Gemma3Config(
        text_config=transformers.Gemma3TextConfig(**sizes, layer_types=["sliding_attention", "full_attention"]),
        vision_config=transformers.SiglipVisionConfig(**_EYE),
        mm_tokens_per_image=4, image_token_index=own.convert_tokens_to_ids("<image>"),
        boi_token_index=own.convert_tokens_to_ids("<boi>"), eoi_token_index=own.convert_tokens_to_ids("<eoi>"),
    )  # fmt: skip
    kind = getattr(transformers, "Gemma3ImageProcessorPil", None) or transformers.Gemma3ImageProcessor
    images = kind(size={"height": 2 * SIDE, "width": 2 * SIDE})
    return made("Gemma3ForConditionalGeneration", config, seed=1), transformers.Gemma3Processor(
        images, own, image_seq_length=4
    )


DECODERS: dict[str, Callable[[], tuple[PreTrainedModel, Any]]] = {"llava": llava, "gemma3": gemma3}
PLACE = {"llava": "<image>", "gemma3": "<boi>"}
