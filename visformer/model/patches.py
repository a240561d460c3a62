"""The tokens of a picture are its patches (Dosovitskiy et al. 2021, section 3.1).

In a Transformer that reads pictures only this is new. There is no class token: the decoder reads every patch.
"""

import math
from collections.abc import Sequence

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from visformer.errors import N_, ShapeError
from visformer.model import taps
from visformer.model.config import VisionConfig
from visformer.model.taps import Tap
from visformer.system.arguments import checked_class


def pixels_of(pictures: Sequence[NDArray[np.uint8]]) -> Tensor:
    """Turn pictures, uint8 (row, column, RGB), into what a model reads.

    Args:
        pictures: of one size.

    Returns:
        float32 (picture, channel, row, column), from 0 to 1.
    """
    return torch.from_numpy(np.stack(pictures)).permute(0, 3, 1, 2).contiguous().float() / 255


@checked_class
class PatchEmbedding(nn.Module):
    """Maps each patch's pixels to a vector and adds its learned position, x_p E + E_pos (section 3.1, equation 1).

    In torch it is ``nn.Conv2d(3, d_model, patch_size, stride=patch_size)``, whose weights flattened after the
    first axis are those of ``patch``.

    Args:
        config: sizes of the picture and of its patches, d_model and dropout.
    """

    def __init__(self, config: VisionConfig) -> None:
        super().__init__()
        self.shape = (3, config.image_size, config.image_size)
        self.patch_size = config.patch_size
        self.grid = config.grid
        self.patch = nn.Linear(3 * config.patch_size**2, config.d_model)
        self.position = nn.Parameter(torch.empty(math.prod(self.grid), config.d_model))  # (patch, d_model)
        nn.init.normal_(self.patch.weight, std=1 / math.sqrt(self.patch.in_features))
        nn.init.normal_(self.position, std=0.02)
        self.dropout = nn.Dropout(config.dropout)

    def forward(self, pixels: Tensor, *, tap: Tap = taps.CLOSED) -> Tensor:
        """Embed pictures.

        Args:
            pixels: floating (batch, channel, row, column), RGB from 0 to 1.
            tap: receives pixels, (batch, patch, pixel): of each patch its red values row by row, then the green and the
                blue ones; and embed, position and input.

        Returns:
            (batch, patch, d_model), patches row by row.

        Raises:
            ShapeError: the pictures have another size.
        """
        if pixels.shape[1:] != self.shape:
            raise ShapeError(
                N_("Pictures of shape {given} do not fit: this model reads {wanted} (batch, channel, row, column)."),
                given=tuple(pixels.shape),
                wanted=(len(pixels), *self.shape),
            )
        (rows, columns), side = self.grid, self.patch_size
        cut = pixels.reshape(-1, self.shape[0], rows, side, columns, side)  # (batch, channel, row, y, column, x)
        patches = cut.permute(0, 2, 4, 1, 3, 5).flatten(3).flatten(1, 2)  # (batch, patch, pixel)
        x = tap("embed", self.patch(tap("pixels", patches)))  # (batch, patch, d_model)
        embedded: Tensor = self.dropout(tap("input", x + tap("position", self.position)))
        return embedded
