"""Say which argument of a public function is of the wrong type: looked for only once the call has failed.

So a call that works costs nothing and is never refused, whatever it was given. Annotations are read as a type checker
reads them. An error that no argument explains goes on as it is: it is ours.
"""

import ast
import inspect
import sys
import traceback
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence, Sized
from contextlib import suppress
from functools import cache, wraps
from itertools import islice
from numbers import Integral, Real
from types import FunctionType, GeneratorType, NoneType, UnionType
from typing import Any, Literal, ParamSpec, TypeVar, Union, cast, get_args, get_origin, get_type_hints

from visformer.errors import N_, ArgumentError, ShapeError, VisformerError
from visformer.system.memory import is_shortage

_P = ParamSpec("_P")
_R = TypeVar("_R")
_Class = TypeVar("_Class", bound=type)

_MOST = 1_000
"""Entries of a list that are looked at."""
_FAILURES = (TypeError, AttributeError, LookupError, ValueError, RuntimeError, ArithmeticError)
_OURS = __name__.partition(".")[0]


def checked(function: Callable[_P, _R], package: str | None = None) -> Callable[_P, _R]:
    """Return a function that says, where it fails, which argument is of the wrong type.

    Args:
        function: with annotations.
        package: what offers it; None: its own module.

    Returns:
        A function of the same name and signature.
    """

    @wraps(function)
    def call(*args: _P.args, **kwargs: _P.kwargs) -> _R:
        try:
            result = function(*args, **kwargs)
        except _FAILURES as error:
            _explain(function, args, kwargs, error)
            raise
        return cast(_R, _going_on(result, function, args, kwargs)) if isinstance(result, GeneratorType) else result

    call.__module__ = package or function.__module__
    return call


def _going_on(results: Iterator[Any], function: Callable[..., Any], args: Any, kwargs: Any) -> Iterator[Any]:
    """Yield what a function yields, which may fail later."""
    try:
        yield from results
    except _FAILURES as error:
        _explain(function, args, kwargs, error)
        raise


def checked_class(cls: _Class) -> _Class:
    """Check the arguments of a class and of its public methods, in place.

    Args:
        cls: a class; its bases are checked, too, if they are ours.

    Returns:
        The class.
    """
    for base in (base for base in cls.__mro__ if _is_ours(base)):
        for name, member in list(vars(base).items()):
            inner = member.__func__ if isinstance(member, classmethod | staticmethod) else member
            is_public = name == "__init__" or not name.startswith("_")
            if is_public and isinstance(inner, FunctionType) and not hasattr(inner, "__wrapped__"):
                setattr(base, name, checked(inner) if inner is member else type(member)(checked(inner)))
    return cls


def public(value: Any, package: str) -> Any:
    """Return what a package offers under a name, with checked arguments.

    Args:
        value: a function, a class of ours, or anything else, which stays as it is.
        package: the name of the package.

    Returns:
        What is in its place.
    """
    if isinstance(value, FunctionType):
        return _kept(value, package)
    return checked_class(value) if isinstance(value, type) and _is_ours(value) else value


@cache
def _kept(function: Callable[..., Any], package: str) -> Callable[..., Any]:
    """The same each time, so that what is public can be compared and pickled."""
    return checked(function, package)


def check_public(package: str) -> None:
    """Check the arguments of everything in the ``__all__`` of a package.

    Args:
        package: its name.
    """
    names = vars(sys.modules[package])
    names |= {name: public(names[name], package) for name in names["__all__"]}


def _is_ours(cls: type) -> bool:
    return cls.__module__.partition(".")[0] == _OURS


def require_whole(name: str, value: Any, *, least: int = 1) -> None:
    """Refuse what is not a whole number of at least ``least``.

    Raises:
        VisformerError: the message names the value.
    """
    if not isinstance(value, Integral) or isinstance(value, bool) or value < least:
        raise VisformerError(
            N_("{name}={value!r} must be a whole number of at least {least}."), name=name, value=value, least=least
        )


# After a failure ------------------------------------------------------------------------------------------------------


def _explain(function: Callable[..., Any], args: Any, kwargs: Any, error: Exception) -> None:
    """Raise an error that names the argument, if there is one that explains ``error``."""
    if isinstance(error, VisformerError) and not isinstance(error, ArgumentError):  # or of a function that it calls
        return
    try:
        given = inspect.signature(function).bind(*args, **kwargs).arguments
    except TypeError:  # some are missing or too many, as Python has said
        return
    hints = {name: _hint(function, name) for name in given}
    called = function.__qualname__.removesuffix(".__init__")
    for name, value in _each(function, given):
        if not _fits(value, hints[name]):
            raise ArgumentError(
                N_("{function}: {argument} is {value}, of the type {kind}; it has to be {expected}."),
                function=called,
                argument=name,
                value=_shape(value) if hasattr(value, "dtype") else repr(value),
                kind=type(value).__name__,
                expected=_spelled(hints[name]),
            ) from error
    taken = [name for name, value in given.items() if _takes_arrays(hints[name]) and value is not None]
    if taken and _is_of_arrays(error):
        raise ShapeError(
            N_("{function} cannot compute with these arrays: {arrays} ({reason})."),
            function=called,
            arrays=", ".join(f"{name} {_shape(given[name])}" for name in taken),
            reason=str(error).rstrip("."),
        ) from error


def _is_of_arrays(error: Exception) -> bool:
    """Whether an error can be of what NumPy or torch was asked to compute, not one that somebody's function raised."""
    if isinstance(error, VisformerError) or is_shortage(error):
        return False
    *_, (frame, _) = traceback.walk_tb(error.__traceback__)
    at = str(frame.f_globals.get("__name__")).partition(".")[0]
    return at in (_OURS, "numpy", "torch") and (
        isinstance(error, ValueError | IndexError) or type(error) is RuntimeError
    )


def _each(function: Callable[..., Any], given: Mapping[str, Any]) -> Iterator[tuple[str, Any]]:
    """Yield the arguments by name; those that ``*names`` and ``**names`` take one by one."""
    parameters = inspect.signature(function).parameters
    for name, value in given.items():
        if parameters[name].kind is inspect.Parameter.VAR_POSITIONAL:
            yield from ((name, each) for each in value)
        elif parameters[name].kind is inspect.Parameter.VAR_KEYWORD:
            yield from ((name, each) for each in value.values())
        else:
            yield name, value


def _hint(function: Callable[..., Any], name: str) -> Any:
    """Return the annotation of a parameter; Any, if it has none or cannot be evaluated."""

    def holder() -> None: ...

    holder.__annotations__ = {name: function.__annotations__.get(name, Any)}
    with suppress(Exception):
        return get_type_hints(holder, _names(function))[name]
    return Any


def _names(function: Callable[..., Any]) -> dict[str, Any]:
    """Return the names that annotations can use: those of the module, and what only type checkers import there."""
    module = sys.modules[function.__module__]
    names = dict(vars(module))
    for block in ast.parse(inspect.getsource(module)).body:
        if isinstance(block, ast.If) and ast.unparse(block.test) == "TYPE_CHECKING":
            exec(compile(ast.Module(block.body, []), "<annotations>", "exec"), names)
    return names


# Values and annotations -----------------------------------------------------------------------------------------------


class _Array:
    """What NumPy can make an array of numbers, in place of the many types that its ArrayLike consists of."""


def _alternatives(hint: Any) -> list[Any]:
    """Return the members of a union."""
    from numpy.typing import ArrayLike

    if get_origin(hint) not in (Union, UnionType):
        return [hint]
    inside, like = get_args(hint), get_args(ArrayLike)
    return [_Array, *(each for each in inside if each not in like)] if {*like} <= {*inside} else [*inside]


def _kind(hint: Any) -> Any:
    return get_origin(hint) or hint


def _takes_arrays(hint: Any) -> bool:
    """Whether an annotation is of arrays; token ids stand for a text, and are not meant."""
    names = {getattr(_kind(each), "__name__", "") for each in _alternatives(hint)}
    return "str" not in names and bool(names & {"_Array", "ndarray", "Tensor"})


def _fits(value: Any, hint: Any) -> bool:
    """Whether a value is what an annotation asks for; where that cannot be told, it is."""
    return any(_is(value, each) for each in _alternatives(hint))


def _is(value: Any, hint: Any) -> bool:
    kind, inside = _kind(hint), get_args(hint)
    if kind is Literal:
        return any(type(value) is type(each) and value == each for each in inside)
    if kind is Any or not isinstance(kind, type):
        return True
    if kind == _Array:
        return _is_array(value)
    if kind.__name__ == "ndarray":
        return hasattr(value, "__array_ufunc__")  # not a tensor of torch, whose methods are others
    if kind in (int, float):
        number = isinstance(value, Integral if kind is int else Real) and not isinstance(value, bool)
        return number or getattr(value, "shape", None) == ()
    if getattr(kind, "_is_protocol", False) and "__call__" in vars(kind):
        return callable(value)
    if kind in (Sequence, Collection, list, tuple) and hasattr(value, "__array__"):
        return getattr(value, "shape", ()) != () and _holds(value, kind, inside)
    try:
        return isinstance(value, kind) and _holds(value, kind, inside)
    except TypeError:  # another protocol
        return True


def _holds(value: Any, kind: type, inside: tuple[Any, ...]) -> bool:
    """Whether what is in a collection is what its annotation asks for."""
    if not inside or not issubclass(kind, Iterable) or iter(value) is value:  # an iterator is read once
        return True
    if isinstance(value, str | bytes):  # a text is a sequence of texts, and hardly ever meant so
        return False
    if isinstance(value, Mapping):
        return all(_fits(k, inside[0]) and _fits(v, inside[-1]) for k, v in islice(value.items(), _MOST))
    if kind is tuple and inside[-1] is not Ellipsis:
        return len(value) == len(inside) and all(map(_fits, value, inside))
    return all(_fits(each, inside[0]) for each in islice(value, _MOST if isinstance(value, Sized) else 1))


def _is_array(value: Any) -> bool:
    """Whether a value is an array of numbers, or can be made one."""
    import numpy as np

    if hasattr(value, "__array__") and not isinstance(value, np.ndarray):
        return True
    try:
        return np.asarray(value).dtype.kind in "biufc"
    except ValueError:  # rows of different lengths
        return False


def _shape(value: Any) -> str:
    """Describe an array in short."""
    import numpy as np

    array = value if hasattr(value, "shape") else np.asarray(value)
    return f"{str(array.dtype).removeprefix('torch.')} {tuple(array.shape)}"


def _spelled(hint: Any) -> str:
    """Write an annotation in short."""
    return " | ".join(map(_spelled_one, _alternatives(hint)))


def _spelled_one(hint: Any) -> str:
    kind, inside = _kind(hint), get_args(hint)
    if kind is Literal:
        return " | ".join(map(repr, inside))
    if hint in (NoneType, Ellipsis):
        return "None" if hint is NoneType else "..."
    name = str(getattr(kind, "__name__", kind))
    plain = {"_Array": "array", "ndarray": "array", "Callable": "function"}.get(name)
    if plain is not None or not inside:
        return plain or name
    return f"{name}[{', '.join(map(_spelled, inside))}]"
