"""Scenes of one to three coloured shapes, drawn and described by rule: what the bundled captioner is trained on.

Since a rule draws the picture and writes the caption, it is known which patches show each object and which words speak
of it. An object keeps inside its cell, so that no patch of 4 or of 8 pixels shows two of them.
"""

import hashlib
import random
import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import NDArray

from visformer.errors import N_, ConfigError

Floats = NDArray[np.float64]

SIZE = 32
"""Height and width of a picture, in pixels."""

COLOURS: dict[str, tuple[int, int, int]] = {
    "red": (214, 40, 40),
    "orange": (250, 140, 30),
    "yellow": (240, 215, 40),
    "green": (50, 165, 80),
    "blue": (45, 100, 215),
    "purple": (140, 70, 175),
}

SHAPES: dict[str, Callable[[Floats, Floats], NDArray[np.bool_]]] = {
    "circle": lambda x, y: x * x + y * y <= 1,
    "square": lambda x, y: np.maximum(abs(x), abs(y)) <= 0.9,
    "triangle": lambda x, y: (y <= 0.85) & (2 * abs(x) <= y + 1),
    "cross": lambda x, y: np.minimum(abs(x), abs(y)) <= 0.3,
}
"""Name to whether a shape covers a point, x to the right and y down, both from -1 to 1 in its box."""

PLACES = (
    "at the top left", "at the top", "at the top right",
    "on the left", "in the middle", "on the right",
    "at the bottom left", "at the bottom", "at the bottom right",
)  # fmt: skip
"""The cells, row by row."""

CHINESE = {
    **dict(zip(COLOURS, ("红色", "橙色", "黄色", "绿色", "蓝色", "紫色"), strict=True)),
    **dict(zip(SHAPES, ("圆形", "方形", "三角形", "十字形"), strict=True)),
    **dict(zip(PLACES, ("左上角", "上方", "右上角", "左边", "中间", "右边", "左下角", "下方", "右下角"), strict=True)),
}

LANGUAGES = ("en", "zh")

MOST = 3
"""Objects of a scene."""

_CENTRES, _BOX = (4, 16, 28), 4  # of a cell's row or column, and half the side that an object keeps to, in pixels
_FINER = 4  # points in a row of a pixel that a shape may cover
_ONE_IN = 10  # scenes that are held out


@dataclass(frozen=True)
class SceneObject:
    """A coloured shape in one of nine cells.

    Args:
        shape: a key of :data:`SHAPES`.
        colour: a key of :data:`COLOURS`.
        cell: from 0, the top left, row by row to 8, the bottom right.

    Raises:
        ConfigError: there is no such shape, colour or cell.
    """

    shape: str
    colour: str
    cell: int

    def __post_init__(self) -> None:
        for name, choices in (("shape", SHAPES), ("colour", COLOURS), ("cell", range(len(PLACES)))):
            value: Any = getattr(self, name)
            if value not in choices:
                raise ConfigError(
                    N_("{name}={value!r} is not known: choose one of {choices}."),
                    name=name,
                    value=value,
                    choices=", ".join(map(str, choices)),
                )


@dataclass(frozen=True)
class Scene:
    """One to three objects in cells of their own, in the order in which a caption names them: row by row.

    ``np.asarray(scene)`` is its picture.

    Args:
        objects: in any order.

    Raises:
        ConfigError: there are none or too many, or two in one cell.
    """

    objects: tuple[SceneObject, ...]

    def __post_init__(self) -> None:
        if not 1 <= len(self.objects) <= MOST:
            raise ConfigError(
                N_("A scene has 1 to {most} objects, not {n}: leave some out, or add one."),
                most=MOST,
                n=len(self.objects),
            )
        object.__setattr__(self, "objects", tuple(sorted(self.objects, key=lambda one: one.cell)))
        for before, one in pairwise(self.objects):
            if before.cell == one.cell:
                raise ConfigError(N_("Two objects are in cell {cell}: give each a cell of its own."), cell=one.cell)

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> NDArray[Any]:
        return np.array(render(self), dtype=dtype)

    @property
    def is_held_out(self) -> bool:
        """Whether no training sees it: one scene in ten, by a hash of its objects."""
        return _hash(self) % _ONE_IN == 0


EXAMPLES = tuple(
    Scene(tuple(SceneObject(*each) for each in objects))
    for objects in (
        (("circle", "red", 0), ("square", "blue", 4), ("triangle", "green", 8)),
        (("cross", "purple", 4),),
        (("square", "orange", 3), ("square", "green", 5)),
        (("triangle", "yellow", 1), ("circle", "blue", 6), ("circle", "red", 8)),
    )
)
"""Scenes to begin with."""


def draw(seed: int, *, held_out: bool) -> Iterator[Scene]:
    """Draw scenes without end, the same ones for the same seed; one, two and three objects are equally frequent.

    Args:
        seed: any whole number.
        held_out: whether to draw held-out scenes or those for training.

    Yields:
        A scene; it may come again.
    """
    rng = random.Random(seed)
    while True:
        cells = rng.sample(range(len(PLACES)), rng.randint(1, MOST))
        scene = Scene(tuple(SceneObject(rng.choice([*SHAPES]), rng.choice([*COLOURS]), cell) for cell in cells))
        if scene.is_held_out == held_out:
            yield scene


def render(scene: Scene) -> NDArray[np.uint8]:
    """Draw a scene on white; size, shade and exact place of each object are random but fixed by the scene.

    Args:
        scene: what to draw.

    Returns:
        uint8 (32, 32, 3): row, column, RGB.
    """
    rng = np.random.default_rng(_hash(scene))
    picture = np.full((SIZE, SIZE, 3), 255.0)
    for one, covered in zip(scene.objects, coverage(scene), strict=True):
        colour = np.clip(np.array(COLOURS[one.colour]) + rng.uniform(-20, 20), 0, 255)
        picture += covered[..., None] * (colour - picture)
    drawn: NDArray[np.uint8] = np.rint(picture).astype(np.uint8)
    return drawn


def may_be_scene(picture: NDArray[np.uint8]) -> bool:
    """Tell whether a picture is white wherever :func:`render` draws nothing.

    Args:
        picture: uint8 (row, column, RGB), of any size.
    """
    if picture.shape != (SIZE, SIZE, 3):
        return False
    inside = np.isin(np.arange(SIZE), [at + i for at in _CENTRES for i in range(-_BOX, _BOX)])
    return bool((picture[~np.outer(inside, inside)] == 255).all())


def coverage(scene: Scene) -> Floats:
    """Compute how much of each pixel each object covers.

    Args:
        scene: what is drawn.

    Returns:
        float64 (object, 32, 32), from 0 to 1; no pixel is covered by two objects.
    """
    rng = np.random.default_rng(_hash(scene) + 1)
    points = (np.arange(2 * _BOX * _FINER) + 0.5) / _FINER - _BOX  # of a row or a column of the box, in pixels
    covered = np.zeros((len(scene.objects), SIZE, SIZE))
    for i, one in enumerate(scene.objects):
        half = rng.uniform(0.8, 1.0) * _BOX
        y, x = rng.uniform(-1, 1, 2) * (_BOX - half)
        right, down = (points - x) / half, ((points - y) / half)[:, None]
        inside = SHAPES[one.shape](right, down) & (abs(right) <= 1) & (abs(down) <= 1)  # (point, point)
        top, left = (_CENTRES[at] - _BOX for at in divmod(one.cell, 3))
        pixels = inside.reshape(2 * _BOX, _FINER, 2 * _BOX, _FINER).mean(axis=(1, 3))
        covered[i, top : top + 2 * _BOX, left : left + 2 * _BOX] = pixels
    return covered


def patches_of(scene: Scene, patch_size: int) -> NDArray[np.bool_]:
    """Tell which patches show each object.

    Args:
        scene: what is drawn.
        patch_size: side of a patch in pixels, 4 or 8: then the objects' patches are disjoint.

    Returns:
        bool (object, patch), patches row by row.
    """
    n = SIZE // patch_size
    shown: NDArray[np.bool_] = coverage(scene).reshape(-1, n, patch_size, n, patch_size) > 0
    return shown.any(axis=(2, 4)).reshape(-1, n * n)


def caption(scene: Scene, language: str) -> str:
    """Describe a scene, such as "a red circle at the top left and a blue square in the middle".

    Args:
        scene: what to describe.
        language: "en" or "zh".

    Returns:
        One noun phrase for each object, row by row.

    Raises:
        ConfigError: it is another language.
    """
    return "".join(text for text, _, _ in _pieces(scene, language))


def words_of(scene: Scene, language: str) -> tuple[dict[str, tuple[int, int]], ...]:
    """Tell which words of :func:`caption` speak of each object.

    Args:
        scene: what is described.
        language: "en" or "zh".

    Returns:
        For each object, "colour", "shape" and "place" to (start, end) in the caption's characters.

    Raises:
        ConfigError: it is another language.
    """
    spans: tuple[dict[str, tuple[int, int]], ...] = tuple({} for _ in scene.objects)
    at = 0
    for text, i, what in _pieces(scene, language):
        if what:
            spans[i][what] = (at, at + len(text))
        at += len(text)
    return spans


def described(text: str) -> tuple[Scene, str] | None:
    """Return the scene that a text describes as :func:`caption` does, and the text's language; None: it does not.

    Args:
        text: any text.
    """
    for language, phrase in _PHRASES.items():
        found = [*phrase.finditer(text)]
        if 1 <= len(found) <= MOST:
            told = ({what: _ENGLISH.get(said, said) for what, said in each.groupdict().items()} for each in found)
            objects = [SceneObject(each["shape"], each["colour"], PLACES.index(each["place"])) for each in told]
            if len({one.cell for one in objects}) == len(objects):
                scene = Scene(tuple(objects))
                if caption(scene, language) == text.strip():
                    return scene, language
    return None


_ENGLISH = {chinese: english for english, chinese in CHINESE.items()}
_CHOICES = {
    "colour": [*COLOURS],
    "shape": [*SHAPES],
    "place": sorted(PLACES, key=len, reverse=True),
}  # the longest first
_PHRASES = {
    "en": re.compile(
        "{colour} {shape} {place}".format_map(
            {what: f"(?P<{what}>{'|'.join(names)})" for what, names in _CHOICES.items()}
        )
    ),
    "zh": re.compile(
        "{place}的{colour}{shape}".format_map(
            {what: f"(?P<{what}>{'|'.join(CHINESE[name] for name in names)})" for what, names in _CHOICES.items()}
        )
    ),
}


def _pieces(scene: Scene, language: str) -> Iterator[tuple[str, int, str]]:
    """Yield the pieces of a caption: its text, the object's number, and what it says of that, or nothing."""
    if language not in LANGUAGES:
        raise ConfigError(
            N_("{name}={value!r} is not known: choose one of {choices}."),
            name="language",
            value=language,
            choices=", ".join(LANGUAGES),
        )
    comma, last = (", ", " and ") if language == "en" else ("、", "和")
    for i, one in enumerate(scene.objects):
        if i:
            yield (last if i + 1 == len(scene.objects) else comma), i, ""
        said = {"colour": one.colour, "shape": one.shape, "place": PLACES[one.cell]}
        if language == "en":
            yield ("an " if one.colour[0] in "aeiou" else "a "), i, ""
            yield said["colour"], i, "colour"
            yield " ", i, ""
            yield said["shape"], i, "shape"
            yield " ", i, ""
            yield said["place"], i, "place"
        else:
            yield CHINESE[said["place"]], i, "place"
            yield "的", i, ""
            yield CHINESE[said["colour"]], i, "colour"
            yield CHINESE[said["shape"]], i, "shape"


def _hash(scene: Scene) -> int:
    """A number for each scene, the same on every machine."""
    told = ";".join(f"{one.shape} {one.colour} {one.cell}" for one in scene.objects)
    return int.from_bytes(hashlib.sha256(told.encode()).digest()[:8], "little")
