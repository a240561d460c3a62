"""Pictures as files, as arrays and as texts for links: decoded by Pillow, and bounded before that."""

import base64
import io
import os
import re
from dataclasses import dataclass, field
from typing import IO, TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from visformer.errors import N_, ArgumentError, ShapeError, VisformerError
from visformer.system import limits

if TYPE_CHECKING:
    from PIL.Image import Image

FORMATS = ("PNG", "JPEG", "WEBP", "GIF", "BMP")
"""What is decoded, by Pillow's names; of an animation its first picture."""

_TEXT = re.compile(r"picture\.([a-z]{2})\.([A-Za-z0-9_-]+)")
_QUALITIES = range(90, 0, -10)


def checked_picture(given: Any, wanted: Any) -> NDArray[np.uint8]:
    """Return a picture as an array.

    Args:
        given: what NumPy makes an array of whole numbers of, such as a scene; an image of PIL; the path of a file.
        wanted: the shape to ask for where it is none.

    Returns:
        uint8 (row, column, RGB).

    Raises:
        ArgumentError: it is no picture.
        ShapeError: it has no axes (row, column, RGB).
        VisformerError: its numbers are not whole or not from 0 to 255; or the file cannot be decoded.
    """
    if isinstance(given, str | os.PathLike):
        return decoded(given, name=os.fspath(given))
    try:
        picture = np.asarray(given.convert("RGB") if hasattr(given, "convert") else given)
    except (TypeError, ValueError, RuntimeError):
        picture = np.asarray(None)
    if picture.dtype.kind not in "uif":
        raise ArgumentError(
            N_("A {kind} is no picture: pass image=, uint8 of shape {wanted}."),
            kind=type(given).__name__,
            wanted=wanted,
        )
    if picture.ndim != 3 or picture.shape[2] != 3 or not picture.size:
        raise ShapeError(
            N_(
                "A picture of shape {given} does not fit: pass (row, column, RGB), such as "
                "np.asarray(image.convert('RGB')) of an image of PIL."
            ),
            given=picture.shape,
        )
    if picture.dtype.kind == "f" or picture.min() < 0 or picture.max() > 255:
        raise VisformerError(
            N_(
                "The picture has {dtype} from {least} to {most}: pass whole numbers from 0 to 255, such as "
                "(255 * image).astype('uint8') of one from 0 to 1."
            ),
            dtype=picture.dtype,
            least=picture.min(),
            most=picture.max(),
        )
    return picture.astype(np.uint8)


def decoded(file: "str | os.PathLike[str] | IO[bytes]", *, name: str) -> NDArray[np.uint8]:
    """Decode a picture's file, upright.

    Args:
        file: a path, or an open binary file.
        name: of the file, for messages.

    Returns:
        uint8 (row, column, RGB); what is transparent is on white.

    Raises:
        VisformerError: it is no such file, it is damaged, or it has too many pixels.
    """
    from PIL import Image, ImageOps

    try:
        with Image.open(file, formats=FORMATS) as image:
            _require_pixels(image, name)
            upright = ImageOps.exif_transpose(image)
            if not upright.has_transparency_data:
                return np.asarray(upright.convert("RGB"))
            upright = upright.convert("RGBA")
    except (OSError, ValueError, SyntaxError, Image.DecompressionBombError) as error:  # broken in its own way
        if isinstance(error, VisformerError):
            raise
        raise VisformerError(
            N_("{name!r} cannot be read as a picture ({reason}): give a {formats} file."),
            name=name,
            reason=_reason(error),
            formats=", ".join(FORMATS),
        ) from error
    white = Image.new("RGBA", upright.size, "white")
    return np.asarray(Image.alpha_composite(white, upright).convert("RGB"))


def _reason(error: Exception) -> str:
    """Why a file cannot be decoded, without a path or an object's address, which some messages have."""
    if isinstance(error, FileNotFoundError):
        return N_("there is no such file")
    if type(error).__name__ == "UnidentifiedImageError":
        return N_("it has none of these formats")
    return N_("it is damaged or incomplete")


def _require_pixels(image: "Image", name: str) -> None:
    width, height = image.size
    if width * height > limits.PICTURE_PIXELS:
        raise VisformerError(
            N_("{name!r} has {width} x {height} pixels, and at most {most:,} can be read: make it smaller."),
            name=name,
            width=width,
            height=height,
            most=limits.PICTURE_PIXELS,
        )


# Pictures that a server keeps -----------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Prompt:
    """A picture and the text that goes with it, as the app gives them to a model of transformers: a key of caches.

    Args:
        text: "" for a model that reads the picture alone; also messages, of a model with a chat template.
        file: what a file with the picture holds.
    """

    text: Any
    file: bytes = field(repr=False)

    @property
    def image(self) -> NDArray[np.uint8]:
        """The picture, uint8 (row, column, RGB)."""
        return decoded(io.BytesIO(self.file), name="")


def kept(content: bytes, name: str) -> bytes:
    """Return the picture in a file as a PNG file, which a server can keep.

    Args:
        content: of the file.
        name: of the file, for messages.

    Returns:
        All its pixels, or PICTURE_SIDE on the longer side of a larger one.

    Raises:
        VisformerError: as for :func:`decoded`.
    """
    from PIL import Image

    image = Image.fromarray(decoded(io.BytesIO(content), name=name))
    image.thumbnail((limits.PICTURE_SIDE, limits.PICTURE_SIDE))
    image.save(file := io.BytesIO(), "PNG")
    return file.getvalue()


# Pictures as texts ----------------------------------------------------------------------------------------------------


def text_of(content: bytes, name: str, language: str, size: tuple[int, int]) -> str:
    """Return a text that stands for the picture in a file, small enough for a link.

    Args:
        content: of the file.
        name: of the file, for messages.
        language: in which the picture is to be described, "en" or "zh".
        size: rows and columns that a model reads; the middle is taken of a picture of other proportions.

    Returns:
        "picture.en." and the picture as WebP, in base64.

    Raises:
        VisformerError: as for :func:`decoded`.
    """
    from PIL import Image, ImageOps

    scaled = ImageOps.fit(Image.fromarray(decoded(io.BytesIO(content), name=name)), size[::-1])
    for quality in _QUALITIES:  # 90 but for noise
        scaled.save(file := io.BytesIO(), "WEBP", quality=quality)
        text = f"picture.{language}.{base64.urlsafe_b64encode(file.getvalue()).decode().rstrip('=')}"
        if len(text) <= limits.MAX_CHARACTERS:
            break
    return text


def language_of(text: str) -> str | None:
    """Return the language in which the picture of a text of :func:`text_of` is to be described; None: it is none."""
    match = _TEXT.fullmatch(text)
    return None if match is None else match[1]


def told_in(text: str, language: str) -> str:
    """Return a text of :func:`text_of` with another language of the description."""
    mark, _, picture = text.split(".")
    return f"{mark}.{language}.{picture}"


def picture_of(text: str, size: tuple[int, int]) -> NDArray[np.uint8]:
    """Return the picture that a text of :func:`text_of` stands for.

    Args:
        text: the text.
        size: rows and columns of the picture.

    Returns:
        uint8 (row, column, RGB).

    Raises:
        VisformerError: the text was changed or cut off.
    """
    from PIL import Image

    try:
        encoded = text.rpartition(".")[2]
        content = base64.urlsafe_b64decode(encoded + "=" * (-len(encoded) % 4))
        with Image.open(io.BytesIO(content), formats=["WEBP"]) as image:
            if image.size == size[::-1]:
                return np.asarray(image.convert("RGB"))
    except (OSError, ValueError):
        pass
    raise VisformerError(N_("This link holds a picture that was changed or cut off: choose the picture again."))
