"""Read a message as a browser does: its header, and the weights that its codes stand for."""

import json
import struct
from functools import cache
from typing import Any

import numpy as np
import numpy.typing as npt


def read_message(message: bytes) -> tuple[dict[str, Any], bytes]:
    """Split a message of ``visformer.web.message`` into header and numbers, as message.js does."""
    (length,) = struct.unpack_from("<I", message)
    header: dict[str, Any] = json.loads(message[4 : 4 + length])
    return header, message[4 + length + -length % 4 :]


def decode(codes: npt.NDArray[np.uint16]) -> npt.NDArray[np.float64]:
    """Return the decimals that codes of ``visformer.web.codes`` stand for, each as the nearest float64."""
    return _decoded()[codes]


@cache
def _decoded() -> npt.NDArray[np.float64]:
    coarse = (digits / 10 ** (1 - power) for power in range(-35, -7) for digits in range(10, 100))
    fine = (digits / 10 ** (3 - power) for power in range(-7, 0) for digits in range(1000, 10000))
    return np.array([0.0, *coarse, *fine, 1.0])
