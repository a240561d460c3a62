"""Names of the models that have one fault each: "broken-1" to "broken-8". A name does not tell the fault.

No torch here: pages and links use the same names.
"""

import re

from visformer.adapters.bundled import TRANSLATOR
from visformer.errors import N_, ConfigError

N_FAULTS = 8

_PREFIX = "broken-"
_UNMASKED = "trained-repeat-no-mask-seed0-step300"
_NO_MASK = 7
"""A translator that was trained with a mask and loses it translates as before: its decoding has nothing to hide yet."""


def names_broken(name: str | None) -> bool:
    """Whether this is meant as the name of a model with a fault, well-formed or not."""
    return name is not None and name.startswith(_PREFIX)


def number_of(name: str) -> int:
    """Return the number of a model with a fault, from 1.

    Raises:
        ConfigError: there is no such model.
    """
    match = re.fullmatch(rf"{_PREFIX}([1-{N_FAULTS}])", name, re.ASCII)
    if match is None:
        raise ConfigError(
            N_("There is no model {name!r}: the models with a fault are {first} to {last}."),
            name=name,
            first=f"{_PREFIX}1",
            last=f"{_PREFIX}{N_FAULTS}",
        )
    return int(match[1])


def base_of(name: str) -> str:
    """Return the name of the model that this one is, but for its fault.

    Raises:
        ConfigError: there is no such model.
    """
    return _UNMASKED if number_of(name) == _NO_MASK else TRANSLATOR
