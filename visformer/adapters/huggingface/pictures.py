"""Models of transformers that read pictures: encoders of patches, pairs with a half for texts, and decoders.

An image processor makes all pictures one size, and the model cuts that into a grid of patches, one token each
(Dosovitskiy et al. 2021, section 3.1). Which tokens are patches is not looked up: it is seen, by changing pixels.
"""

import inspect
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Literal, Self

import numpy as np
import torch
from numpy.typing import NDArray
from PIL import Image
from torch import Tensor
from transformers import ImageProcessingMixin, PreTrainedModel, PreTrainedTokenizerBase

from visformer.adapters.base import ONE_PICTURE, Labels, TracedModel
from visformer.adapters.generating import Generator
from visformer.adapters.huggingface.chat import Roles, is_chat, not_written, roles_of, spans_of
from visformer.adapters.huggingface.families import refuse
from visformer.adapters.huggingface.inspection import Inspection
from visformer.adapters.huggingface.model import HubModel
from visformer.adapters.huggingface.run import PICTURE_ALONE, HubOutput, given_alone
from visformer.adapters.picture_files import Prompt, checked_picture
from visformer.adapters.recording import Passes
from visformer.adapters.requests import Encoded, Picture, Text, TextRequest
from visformer.errors import N_, ArgumentError, TextError, VisformerError
from visformer.model import taps
from visformer.system.arguments import checked_class
from visformer.trace import Trace
from visformer.trace.names import PIXEL, Axis
from visformer.trace.tokens import patch_names

PIXELS = "src.pixels"
_WANTED = "(rows, columns, 3)"
_SPECIALS = {
    "cls_token": "[CLS]",
    "class_embedding": "[CLS]",
    "distillation_token": "[DIST]",
    "register_tokens": "[REG {n}]",
    "detection_tokens": "[DET {n}]",
}
"""What the names of parameters end with that become tokens, in the order of these, to what the tokens are called."""

NO_GRID = N_("{name} cannot be shown: its tokens are not the patches of a picture, row by row.")
_VECTORS = N_("a patch enters as the vector that the vision model makes of it, which tgt.input has")


class Pictures:
    """What an image processor makes of pictures, and what of it each patch shows.

    Args:
        processor: an image processor of transformers.
        name: the model's, for messages.

    Attributes:
        grid: rows and columns of patches, once :meth:`cut_into` was called.
        patch_size: height and width of a patch in pixels.
    """

    grid = (0, 0)
    patch_size = 0

    def __init__(self, processor: Any, name: str) -> None:
        self._processor, self._name = processor, name
        rgb = (-1, 1, 1)  # (channel, row, column)
        is_normalised = getattr(processor, "do_normalize", False)
        mean, std = (processor.image_mean, processor.image_std) if is_normalised else (0.0, 1.0)
        self._mean, self._std = (
            torch.as_tensor(each, dtype=torch.float32).expand(3).reshape(rgb) for each in (mean, std)
        )
        self._most = 255.0 * (processor.rescale_factor if getattr(processor, "do_rescale", False) else 1)  # white
        noise = np.random.default_rng(0).integers(256, size=(64, 64, 3), dtype=np.uint8)
        self.sample = self._processed(noise)
        if self.sample.dim() != 4 or self.sample.shape[:2] != (1, 3):
            raise VisformerError(NO_GRID, name=name)
        self._size = tuple(self.sample.shape[2:])

    def read(self, picture: NDArray[np.uint8]) -> Tensor:
        """Return what the model reads of a picture: float32 (1, channel, row, column); errors: see :meth:`checked`."""
        return self.checked(self._processed(picture))

    def checked(self, pixels: Tensor) -> Tensor:
        """Return pixels that a processor made.

        Raises:
            VisformerError: they have another size: it keeps the proportions of a picture, and these are not a square's.
        """
        if tuple(pixels.shape[2:]) != self._size:
            raise VisformerError(
                N_(
                    "The image processor of {name} makes {given} pixels (rows, columns) of this picture, and only "
                    "{wanted} can be shown: cut the picture to a square."
                ),
                name=self._name,
                given=tuple(pixels.shape[2:]),
                wanted=self._size,
            )
        return pixels

    def _processed(self, picture: NDArray[np.uint8]) -> Tensor:
        pixels: Tensor = self._processor(images=Image.fromarray(picture), return_tensors="pt")["pixel_values"]
        return pixels.float()

    def cut_into(self, n_patches: int) -> None:
        """Set the grid of so many patches.

        Raises:
            VisformerError: so many are no grid of squares.
        """
        height, width = self._size
        rows = max(1, round((n_patches * height / width) ** 0.5))
        columns, side = n_patches // rows, height // rows
        if rows * columns != n_patches or not columns or not side or (rows * side, columns * side) > (height, width):
            raise VisformerError(NO_GRID, name=self._name)
        self.grid, self.patch_size = (rows, columns), side

    @property
    def names(self) -> tuple[str, ...]:
        """The name of each patch, row by row."""
        return patch_names(*self.grid)

    def tapped(self, pixels: Tensor) -> Tensor:
        """Tap what each patch shows; return the pixels that the model goes on with."""
        if not taps.current().wants(PIXELS):
            return pixels
        (rows, columns), side = self.grid, self.patch_size
        seen = pixels[..., : rows * side, : columns * side]  # a remainder is in no patch
        shown = (seen * self._std + self._mean) / self._most
        cut = shown.reshape(-1, 3, rows, side, columns, side)  # (picture, channel, row, y, column, x)
        patches = cut.permute(0, 2, 4, 1, 3, 5).flatten(3).flatten(1, 2)  # (picture, patch, pixel)
        changed = taps.current()(PIXELS, patches)
        return pixels if changed is patches else self._with_patches(pixels, changed)

    def of_trace(self, trace: Trace) -> Tensor:
        """Return the pixels that a Trace was made of, (1, channel, row, column)."""
        return self._with_patches(torch.zeros(1, 3, *self._size), torch.tensor(trace[PIXELS].value))

    def _with_patches(self, pixels: Tensor, patches: Tensor) -> Tensor:
        """Return pixels in which patches, (..., patch, pixel), show something else."""
        (rows, columns), side = self.grid, self.patch_size
        cut = patches.reshape(-1, rows, columns, 3, side, side).permute(0, 3, 1, 4, 2, 5)
        shown = cut.reshape(-1, 3, rows * side, columns * side)
        result = pixels.clone()
        result[..., : rows * side, : columns * side] = (shown * self._most - self._mean) / self._std
        return result


class PatchNames:
    """The tokens of an encoder that reads pictures, as a vocabulary: the id of each is its place."""

    max_tokens, scheme, has_template = None, "", False

    def __init__(self, names: Sequence[str], patches: range) -> None:
        self.names, self._patches = tuple(names), patches

    def __len__(self) -> int:
        return len(self.names)

    def shown(self, ids: Sequence[int]) -> tuple[str, ...]:
        """The name of each id."""
        return tuple(self.names[i] for i in ids)

    def spelled(self, i: int) -> str:
        """The name of an id."""
        return self.names[i]

    def encode_plain(self, text: str) -> list[int]:
        """The ids of a text, which has none."""
        return []

    def decode(self, ids: Sequence[int]) -> str:
        """The text of ids, which have none."""
        return ""

    def is_special(self, ids: Sequence[int]) -> tuple[bool, ...]:
        """Whether each id stands for no patch."""
        return tuple(i not in self._patches for i in ids)

    def words(self, ids: Sequence[int]) -> tuple[int, ...]:
        """The word of each id: its own."""
        return tuple(range(len(ids)))


class _ReadsPictures(HubModel):
    """What models that read pictures have in common: "src.pixels", the grid, and where the patches are."""

    _pictures: Pictures
    _side: str  # of the tokens that the patches are

    def outline(self) -> Self:
        """See :class:`TracedModel`; what reads a picture is kept, which tells how many tokens there are."""
        outline = super().outline()
        outline._pictures = self._pictures
        return outline

    def _axes(self, name: str) -> tuple[Axis, ...] | None:
        return (Axis("patch"), PIXEL) if name == PIXELS else super()._axes(name)

    def _selected(self, record: tuple[str, ...]) -> tuple[frozenset[str], frozenset[str]]:
        tensors, weights = super()._selected(record)
        return tensors | {PIXELS}.intersection(self._names), weights

    def _where(self, first: int) -> dict[str, Any]:
        """What a Trace says of its picture; ``first``: the token that is its first patch."""
        return {"grid": [*self._pictures.grid], "patches": [self._side, first]}


@checked_class
class PictureEncoder(_ReadsPictures):
    """An encoder of transformers that reads a picture, such as ViT, DeiT, DINOv2, BEiT, or CLIP's vision half.

    Its tokens are the patches, "r1c1" the first of the first row, and those that are none: "[CLS]", "[DIST]" of DeiT,
    "[REG 1]" and so on, the registers of Darcet et al. (2024). ``trace(image=...)`` takes an image of PIL, an array
    uint8 (row, column, RGB) or the path of a file; the image processor scales and cuts it.

    "src.pixels" is always recorded, what each patch shows, from 0 to 1, from which :attr:`visformer.Trace.image` is
    put together; an edit of it changes what the model sees.

    Args:
        module: a PreTrainedModel, with its head if it is to predict labels.
        tokenizer: its image processor, as returned by AutoImageProcessor.
        about: name, licence and source, as for :class:`HubModel`.

    Raises:
        VisformerError: its tokens are no patches, or it returns no attention weights.
    """

    pictures = "alone"
    _given_alone = PICTURE_ALONE
    _side = "src"
    text: PatchNames  # type: ignore[assignment]

    def __init__(self, module: Any, tokenizer: Any, **about: Any) -> None:
        super().__init__(module, tokenizer, **about)
        self.info = replace(self.info, grid=self._pictures.grid, patch_size=self._pictures.patch_size)

    def _take(self, processor: Any) -> None:
        name = type(self.module).__name__
        with given_alone(self.module, PICTURE_ALONE):
            self._pictures = Pictures(processor, name)
            patches, others = self._found_patches(self._pictures.sample)
        self._first = patches.start
        before, after = others[: patches.start], others[patches.start :]
        names = (*before, *self._pictures.names, *after)
        self.text = PatchNames(names, patches)
        self._plain, self._known = self.text.encode_plain, (len(names), len(names))

    def _found_patches(self, sample: Tensor) -> tuple[range, list[str]]:
        """Find which tokens are patches, by changing pixels; return them, and the names of the others."""
        plain = self._first_input(sample)  # (token, d_model)
        changed = (self._first_input(-sample) != plain).any(dim=1).nonzero().flatten().tolist()
        patches = range(changed[0], changed[-1] + 1) if changed else range(0)
        self._pictures.cut_into(len(patches))
        side = self._pictures.patch_size
        second = sample.clone()
        second[..., :side, side : 2 * side] *= -1
        changed_second = (self._first_input(second) != plain).any(dim=1).nonzero().flatten().tolist()
        if changed != [*patches] or changed_second != [patches.start + 1]:
            raise VisformerError(NO_GRID, name=type(self.module).__name__)
        return patches, self._specials(len(plain) - len(patches), plain.shape[1])

    def _first_input(self, pixels: Tensor) -> Tensor:
        """What the first block reads: (token, d_model)."""
        seen = Inspection(self.module)
        with Passes(self.module).open(), torch.inference_mode(), seen.watching():
            self._engine.base(pixel_values=pixels.to(self._engine.device, self.module.dtype))
        read = next((value.tensor for run in seen.runs[:1] for value in run.values), None)
        if read is None or read.dim() != 3 or len(read) != 1:
            raise VisformerError(NO_GRID, name=type(self.module).__name__)
        return read[0].cpu()

    def _specials(self, n: int, width: int) -> list[str]:
        """Return the names of the ``n`` tokens that are no patches; numbers, where parameters do not tell."""
        names: list[str] = []
        for ending, name in _SPECIALS.items():
            for path, weight in self.module.named_parameters():
                if path.rpartition(".")[2] == ending and weight.shape[-1] == width:
                    names += [name.format(n=i + 1) for i in range(weight.numel() // width)]
        return names if len(names) == n else [f"[{i + 1}]" for i in range(n)]

    def tokenize(self, text: Picture) -> tuple[str, ...]:  # type: ignore[override]
        """Return the names of a picture's tokens; see :class:`TracedModel`."""
        self._given(text)
        return self.text.names

    def _inputs(self, source: Any, target: Any, image: Picture, text: Text | None) -> tuple[Any, Any]:
        if source is not None and image is not None:
            raise VisformerError(ONE_PICTURE, name=self.info.name)
        if text is not None or target is not None:
            raise VisformerError(N_("{name} reads a picture alone: leave out the text."), name=self.info.name)
        return source if image is None else Path(image) if isinstance(image, str) else image, None

    def _given(self, text: Any, *, of_target: bool = False) -> Any:
        """Check a picture, and return what the model reads of it; no text is taken for a path but as image=."""
        if isinstance(text, str):
            raise ArgumentError(
                N_("{name} reads a picture, not a text: pass image=, such as image='cat.jpg', not {text!r}."),
                name=self.info.name,
                text=text,
            )
        if isinstance(text, Prompt):
            text = text.image
        return self._pictures.read(checked_picture(text, _WANTED))

    def _request(self, source: Any, target: Any = None, *, pair: Any = None, **checked: Any) -> TextRequest:
        if pair is not None:
            raise VisformerError(N_("{name} reads a picture alone: leave out the text."), name=self.info.name)
        return super()._request(source, target, **checked)

    def _encode(self, request: TextRequest) -> Encoded:
        n = len(self.text)
        self._require_room(n, scores=not self._overview(request))
        return Encoded(request, [*range(n)], [], None, [0] * n)

    def read_again(self, trace: Trace) -> Encoded:
        """See :class:`TracedModel`; the picture is the Trace's."""
        read = super().read_again(trace)
        return replace(read, request=replace(read.request, source=self._pictures.of_trace(trace)))

    def _sample(self) -> Encoded:
        n = len(self.text)
        return Encoded(TextRequest(self._pictures.sample, None, None, None, ("*",), ()), [*range(n)], [])

    def _read(self, batch: Sequence[Encoded], *, patterns: bool = False) -> HubOutput:
        pixels = self._pictures.tapped(torch.cat([each.request.source for each in batch]))
        return self._engine.look(pixels, len(self.text), patterns=patterns)

    def _words(self, given: Any) -> str:
        return ""

    def _meta(self, each: Encoded, sides: Mapping[str, list[int]]) -> dict[str, Any]:
        return super()._meta(each, sides) | self._where(self._first)

    @property
    def _padding_is_exact(self) -> bool:
        return True  # all pictures are one size


@checked_class
class TextAndPicture(HubModel):
    """A model with a half for texts and one for pictures, such as CLIP (Radford et al. 2021) and SigLIP.

    ``trace("a cat")`` runs the text half, ``trace(image=...)`` the picture half. Every other method is the text half's;
    those of ``picture_half`` are the other's.

    Args:
        module: the whole model.
        tokenizer: its processor, as returned by AutoProcessor.
        about: name, licence and source, as for :class:`HubModel`.

    Attributes:
        picture_half: the :class:`PictureEncoder`.
    """

    pictures = "instead"

    def __init__(self, module: Any, tokenizer: Any, **about: Any) -> None:
        name = about.pop("name", None) or module.config.name_or_path or type(module).__name__
        super().__init__(module.text_model, tokenizer.tokenizer, name=name, **about)
        self.picture_half = PictureEncoder(module.vision_model, tokenizer.image_processor, name=name, **about)

    def trace(
        self, source: Text | None = None, target: Text | None = None, *, image: Picture = None, **how: Any
    ) -> Trace:
        """See :class:`TracedModel`; a text and a picture are read by different halves, one at a time."""
        if image is None:
            return super().trace(source, target, **how)
        if source is not None or how.get("text") is not None:
            raise VisformerError(
                N_("{name} reads a text with one half and a picture with the other: trace one at a time."),
                name=self.info.name,
            )
        return self.picture_half.trace(image=image, target=target, **how)

    def _inputs(self, source: Any, target: Any, image: Picture, text: Text | None) -> tuple[Any, Any]:
        if image is not None:
            raise VisformerError(
                N_("This half of {name} reads texts: give pictures to the other, picture_half, in place of texts."),
                name=self.info.name,
            )
        return super()._inputs(source, target, image, text)

    def reading(self, source: Any) -> TracedModel:
        """See :class:`TracedModel`."""
        return self.picture_half if isinstance(source, Prompt) else self

    def outline(self) -> Self:
        """See :class:`TracedModel`; of both halves."""
        outline = super().outline()
        outline.picture_half = self.picture_half.outline()
        return outline

    def close(self) -> None:
        """See :class:`TracedModel`; of both halves."""
        super().close()
        self.picture_half.close()


@dataclass(frozen=True)
class _Prompt:
    """A text with a picture."""

    text: str
    picture: NDArray[np.uint8]


@dataclass(frozen=True)
class _Chat:
    """Messages with a picture in one of them, see :func:`_with_place`."""

    messages: list[dict[str, Any]]
    picture: NDArray[np.uint8]


def _with_place(messages: Sequence[Mapping[str, Any]]) -> tuple[list[dict[str, Any]], list[Any]]:
    """Return messages with a place for a picture, by default before the first text of the user; and their pictures."""
    given: list[Any] = []
    copies = [{**message, "content": _parts(message.get("content"), given)} for message in messages]
    if not any(part["type"] == "image" for message in copies for part in message["content"]):
        asks = next((message for message in copies if message.get("role") == "user"), copies[0])
        asks["content"].insert(0, {"type": "image"})
    return copies, given


def _parts(content: Any, given: list[Any]) -> list[dict[str, Any]]:
    """Return the parts of a message; its pictures are added to ``given``."""
    if isinstance(content, str):
        return [{"type": "text", "text": content}]
    parts = []
    for part in content or ():
        is_image = part.get("type") == "image"
        given += [part[name] for name in ("image", "path") if is_image and part.get(name) is not None]
        parts.append({"type": "image"} if is_image else dict(part))
    return parts


@checked_class
class PictureDecoder(_ReadsPictures):
    """A decoder of transformers that reads a picture among its tokens, such as LLaVA (Liu et al. 2023) and Gemma 3.

    ``trace(text, image=...)`` puts the picture where the text has the processor's image token, or else before the text;
    its tokens are named as patches, "r1c1" the first. In place of the text it takes messages, which the processor's
    chat template writes: the picture is where one has a part {"type": "image"}, which may hold it as "image", or else
    before the user's first text. Without image= the model reads the text alone, as do those whose
    pictures become no grid of patches: then image= is refused.

    "src.pixels" is recorded with every picture, as of a :class:`PictureEncoder`.

    Args:
        module: a PreTrainedModel with its language-model head.
        tokenizer: its processor, as returned by AutoProcessor.
        about: name, licence and source, as for :class:`HubModel`.
    """

    pictures: Literal["none", "alone", "instead", "with"] = "with"
    _side = "tgt"
    _why_no_pictures: VisformerError | None = None

    def __init__(self, module: Any, tokenizer: Any, **about: Any) -> None:
        self.processor = tokenizer
        super().__init__(module, tokenizer.tokenizer, **about)
        known = getattr(module.config, "image_token_id", None)
        self._image_id = -1 if known is None else int(known)
        self._taken = frozenset(inspect.signature(module.forward).parameters)
        try:
            with given_alone(module, PICTURE_ALONE):
                self._pictures = Pictures(self.processor.image_processor, self.info.name)
                ids = self._processed(_Prompt("", np.zeros((64, 64, 3), dtype=np.uint8)))["input_ids"][0].tolist()
                self._pictures.cut_into(ids.count(self._image_id))
        except VisformerError as error:
            self._why_no_pictures = error
            self.pictures = "none"
        else:
            self._generator = Generator(self.text, self._writes(len(tokenizer.tokenizer)), self._engine.end_ids)
            self._probed[PIXELS] = len(self._pictures.names), 3 * self._pictures.patch_size**2
            self._names = (PIXELS, *self._names)

    def outline(self) -> Self:
        """See :class:`TracedModel`."""
        if self.pictures == "none":
            outline = HubModel.outline(self)
        else:
            outline = super().outline()
            outline.processor, outline._image_id, outline._taken = self.processor, self._image_id, self._taken
        outline.pictures, outline._why_no_pictures = self.pictures, self._why_no_pictures
        return outline

    def tokenize(self, text: Any, second: Text | None = None) -> tuple[str, ...]:
        """See :class:`TracedModel`; of a text with a picture, its patches where they stand."""
        if not isinstance(text, Prompt):
            return super().tokenize(text, second)
        more = None if second is None else self._given(second)
        ids = [*map(int, self._processed(self._given(text))["input_ids"][0]), *self._continuation(more)]
        return self._labels({"tgt": ids})[0]["tgt"]

    def _writes(self, n_tokens: int) -> Tensor:
        """bool (vocab,): the tokens that it may write, which stand for no patch."""
        allowed = self._engine.allowed(n_tokens)
        allowed[torch.arange(len(allowed)) == self._image_id] = False
        return allowed

    @property
    def _place(self) -> str:
        """Where a text has its picture: of Gemma 3 the picture's beginning."""
        place: str = getattr(self.processor, "boi_token", self.processor.image_token)
        return place

    def _has_specials(self, text: str) -> bool:
        """Whether the tokenizer adds tokens of its own: as in transformers not where a template has begun the text."""
        begin = self.processor.tokenizer.bos_token
        return not (begin and text.startswith(begin))

    def _processed(self, prompt: _Prompt) -> dict[str, Tensor]:
        """What the model reads of a text with a picture, by the names of its arguments."""
        text = prompt.text if self._place in prompt.text else f"{self._place}{prompt.text}"
        read = self.processor(
            text=[text],
            images=[Image.fromarray(prompt.picture)],
            return_tensors="pt",
            add_special_tokens=self._has_specials(text),
        )
        return {name: value for name, value in read.items() if name in self._taken and name != "attention_mask"}

    def _inputs(self, source: Any, target: Any, image: Picture, text: Text | None) -> tuple[Any, Any]:
        if source is not None and text is not None:
            raise VisformerError(N_("{name} reads one text: pass it once, first or as text=."), name=self.info.name)
        source = text if source is None else source
        if image is None and not (is_chat(source) and _with_place(source)[1]):
            return source, target
        if self._why_no_pictures is not None:
            raise self._why_no_pictures
        if is_chat(source):
            return self._chat(source, [] if image is None else [image]), target
        if not isinstance(source, str):
            raise VisformerError(
                N_("source={value!r}: with a picture, {name} reads a text, such as 'What is this?'."),
                value=source,
                name=self.info.name,
            )
        return _Prompt(source, checked_picture(image, _WANTED)), target

    def _chat(self, messages: Any, pictures: list[Any]) -> _Chat:
        copies, own = _with_place(messages)
        if len([*pictures, *own]) != 1:
            raise VisformerError(
                N_("{name} reads one picture: pass it once, as image= or in a message, not {n}."),
                name=self.info.name,
                n=len([*pictures, *own]),
            )
        return _Chat(copies, checked_picture([*pictures, *own][0], _WANTED))

    def _written(self, chat: _Chat, *, prompting: bool) -> tuple[_Prompt, Roles]:
        """Write messages with the processor's chat template; return also the role of each token."""

        def write(given: Any) -> Any:
            return self.processor.apply_chat_template(given, tokenize=False, add_generation_prompt=prompting)

        try:
            written: str = write(chat.messages)
        except Exception as error:  # a template's own: no template, an unknown role, a missing field
            raise not_written(error) from error
        spans = spans_of(chat.messages, write)
        prompt = _Prompt(written, chat.picture)
        ids = self._processed(prompt)["input_ids"][0].tolist()
        if spans is None or written.count(self._place) != 1:
            return prompt, (None,) * len(ids)
        return prompt, self._roles_beside(ids, written, spans[1], chat)

    def _roles_beside(self, ids: list[int], written: str, roles: Roles, chat: _Chat) -> Roles:
        """The role of each token, where the processor has put the picture's tokens into what is written."""
        before, _, after = written.partition(self._place)
        block: str = getattr(self.processor, "full_image_sequence", self._place * len(self._pictures.names))
        shows = next(each["role"] for each in chat.messages if {"type": "image"} in each["content"])
        spread = (*roles[: len(before)], *[shows] * len(block), *roles[len(before) + len(self._place) :])
        specials = self._has_specials(written)
        return roles_of(self.processor.tokenizer, ids, f"{before}{block}{after}", spread, specials=specials)

    def _request(self, source: Any, target: Any = None, *, pair: Any = None, **checked: Any) -> TextRequest:
        if isinstance(source, Prompt) and is_chat(source.text):
            source = self._chat(source.text, [source.image])
        if not isinstance(source, _Chat):
            return super()._request(source, target, pair=pair, **checked)
        with given_alone(self.module, PICTURE_ALONE):
            prompt: Any
            prompt, roles = self._written(source, prompting=target is not None)
        return replace(super()._request(prompt, target, pair=pair, **checked), roles=roles)

    def _prompt(self, source: Any) -> Any:
        if isinstance(source, Prompt) and is_chat(source.text):
            source = self._chat(source.text, [source.image])
        if not isinstance(source, _Chat):
            return super()._prompt(source)
        with given_alone(self.module, PICTURE_ALONE):
            return self._written(source, prompting=True)[0]

    def _given(self, text: Any, *, of_target: bool = False) -> Any:
        if isinstance(text, Prompt) and is_chat(text.text):
            return self._written(self._chat(text.text, [text.image]), prompting=False)[0]
        if isinstance(text, Prompt):
            text = _Prompt(text.text, text.image)
        if not isinstance(text, _Prompt):
            return super()._given(text, of_target=of_target)
        super()._given(text.text)
        return text

    def _words(self, given: Any) -> str:
        return super()._words(given.text if isinstance(given, _Prompt) else given)

    def _encode(self, request: TextRequest) -> Encoded:
        if not isinstance(request.source, _Prompt):
            return super()._encode(request)
        with given_alone(self.module, PICTURE_ALONE):
            read = self._processed(request.source)
        self._pictures.checked(read["pixel_values"])
        ids = [*map(int, read.pop("input_ids")[0]), *self._continuation(request.target)]
        self._require_room(len(ids), scores=not self._overview(request))
        if ids.count(self._image_id) != len(self._pictures.names):
            raise TextError(
                N_("{text!r} has places for other pictures: leave them out."),
                text=self._words(request.target or request.source),
            )
        return Encoded(request, [], ids, besides=read)

    def read_again(self, trace: Trace) -> Encoded:
        """See :class:`TracedModel`; the picture is the Trace's."""
        read = super().read_again(trace)
        if PIXELS not in trace:
            return read
        besides = {"pixel_values": self._pictures.of_trace(trace)}
        if "token_type_ids" in self._taken:
            besides["token_type_ids"] = torch.tensor([[int(i == self._image_id) for i in read.begin]])
        return replace(read, besides=besides)

    def _besides(self, batch: Sequence[Encoded]) -> Mapping[str, Tensor]:
        given = [each.besides for each in batch]
        names = dict.fromkeys(name for each in given for name in each)
        width = max(len(each.begin) for each in batch)
        besides = {}
        for name in names:
            rows = [each.get(name) for each in given]
            if name == "pixel_values":
                none = torch.zeros_like(next(row for row in rows if row is not None))
                shown = torch.cat([none if row is None else row for row in rows])  # to be told apart by its text
                besides[name] = self._pictures.tapped(shown)[[row is not None for row in rows]]
            else:
                wide = torch.zeros(len(rows), width, dtype=torch.long)
                for i, row in enumerate(rows):
                    if row is not None:
                        wide[i, : row.shape[1]] = row[0]
                besides[name] = wide
        return besides

    def _labelled(self, sides: Any, tensors: Any, params: Any, meta: Any, about: Any) -> Trace:
        if self._image_id not in sides["tgt"]:  # beside others that have a picture
            tensors = {name: tensor for name, tensor in tensors.items() if name != PIXELS}
        if PIXELS not in tensors:
            return super()._labelled(sides, tensors, params, meta, about)
        tensors = {name: tensor for name, tensor in tensors.items() if name != "tgt.embed"}  # of the image token
        missing = [["tgt.embed", _VECTORS], *about["missing"]]
        where = self._where(sides["tgt"].index(self._image_id))
        return super()._labelled(sides, tensors, params, {**meta, **where}, {**about, "missing": missing})

    def _labels(self, ids: Mapping[str, Sequence[int]]) -> Labels:
        tokens, special, words = super()._labels(ids)
        n = len(self._pictures.names) if self._why_no_pictures is None else 0
        if not n or [*ids.get("tgt", ())].count(self._image_id) != n:
            return tokens, special, words
        start = [*ids["tgt"]].index(self._image_id)
        for side, first in {"tgt": start, "next": start - 1}.items():
            if side in ids:
                places = range(max(first, 0), first + n)
                names, others = [*tokens[side]], [*special[side]]
                for place in places:
                    names[place], others[place] = self._pictures.names[place - first], False
                tokens[side], special[side] = tuple(names), tuple(others)
        return tokens, special, words


# Which of them a model is ---------------------------------------------------------------------------------------------


def adapted(module: PreTrainedModel, processor: Any, **about: Any) -> HubModel:
    """Return the adapter of a model of transformers, by what it reads.

    Args:
        module: the model.
        processor: its tokenizer; its image processor, or a processor with both.
        about: name, licence and source, as for :class:`HubModel`.

    Raises:
        VisformerError: the model needs another kind of processor; and what :class:`HubModel` raises.
    """
    refuse(module.config)
    refuse_sound(module)
    tokenizer = getattr(processor, "tokenizer", processor)
    images = getattr(processor, "image_processor", processor)
    reads_texts = isinstance(tokenizer, PreTrainedTokenizerBase)
    reads_pictures = isinstance(images, ImageProcessingMixin)
    wanted = processor_of(module)
    if not (reads_texts or wanted == IMAGES) or not (reads_pictures or wanted == TOKENS):
        raise VisformerError(
            N_("wrap needs the {what} of this model, {wanted}, not {kind}."),
            what=_WHAT[wanted],
            wanted=f"transformers.{wanted}.from_pretrained(...)",
            kind=type(processor).__name__,
        )
    if wanted == BOTH:
        if not isinstance(module.text_model, PreTrainedModel):
            raise VisformerError(
                N_(
                    "The halves of {model} are models of their own from transformers 5 on: install that, or load and "
                    "wrap them one by one, as CLIPTextModel and CLIPVisionModel."
                ),
                model=type(module).__name__,
            )
        return TextAndPicture(module, processor, **about)
    if wanted == IMAGES:
        return PictureEncoder(module, images, **about)
    if reads_pictures and module.can_generate():
        return PictureDecoder(module, processor, **about)
    return HubModel(module, tokenizer, **about)


TOKENS, IMAGES, BOTH = "AutoTokenizer", "AutoImageProcessor", "AutoProcessor"
_WHAT = {TOKENS: N_("tokenizer"), IMAGES: N_("image processor"), BOTH: N_("processor")}


def processor_of(module: PreTrainedModel) -> str:
    """The class of transformers that loads the least that a model reads with: a decoder may read pictures, too."""
    if hasattr(module, "get_text_features") and hasattr(module, "get_image_features"):
        return BOTH
    return IMAGES if module.main_input_name == "pixel_values" and not module.can_generate() else TOKENS


def refuse_sound(module: PreTrainedModel) -> None:
    """Refuse a model that reads sound.

    Raises:
        VisformerError: the message says so.
    """
    if module.main_input_name in ("input_features", "input_values"):
        raise VisformerError(
            N_("{model} reads sound, and only models of texts and pictures can be shown."), model=type(module).__name__
        )
