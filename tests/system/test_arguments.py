"""Which argument of a failed call is named, and what is left as it is."""

import pickle
import subprocess
import sys
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal, Protocol

import numpy as np
import pytest
import torch
from numpy.typing import ArrayLike, NDArray

import visformer as vf
from visformer.errors import ArgumentError, ShapeError, TextError, VisformerError
from visformer.i18n import translations
from visformer.system.arguments import checked, checked_class, require_whole

if TYPE_CHECKING:
    from decimal import Decimal  # noqa: F401 (in a text below)


class Reader(Protocol):
    def __call__(self, text: str) -> str: ...


def fails_with(annotation: Any, error: Exception | None = None) -> Callable[[Any], Any]:
    """Return a function of one argument that fails whatever it is given."""

    def failing(value: Any) -> Any:
        raise error or TypeError("bare")

    failing.__annotations__["value"] = annotation
    return checked(failing)


@pytest.mark.parametrize(
    ("annotation", "fitting", "others"),
    [
        (int, [1, np.int64(1), np.array(1)], ["1", 1.5, None, True, [1]]),
        (float, [1, 1.5, np.float32(1)], ["1", None, True, 1j]),
        (bool, [True], [1, "yes", np.zeros(2)]),
        (int | None, [1, None], ["", ()]),
        (str, ["", "x"], [b"x", 1, None]),
        (Literal["a", 0], ["a", 0], ["b", 1, False, ["a"], np.zeros(2)]),
        (Sequence[int], [[], [1], (1, 2), range(3), np.arange(3)], ["12", [1.5], [None], {1: 2}, np.eye(2), 5]),
        (Sequence[str], [["a"], ()], ["a", [1], b"a"]),
        (Iterable[str], [["a"], iter([1]), {"a"}], [5, None, "a", [1]]),
        (Collection[tuple[int, int]], [[(0, 1)], set()], [[(0, 1, 2)], [0], "x"]),
        (tuple[str, ...], [(), ("a",)], [["a"], (1,)]),
        (tuple[int, str], [(1, "a")], [(1,), ("a", 1), [1, "a"]]),
        (Mapping[str, int], [{}, {"a": 1}], [{"a": "b"}, {1: 1}, [("a", 1)]]),
        (Callable[[int], str], [str, lambda x: x], ["str", None, 5]),
        (Reader, [lambda text: text], ["text", 5]),
        (NDArray[np.float64], [np.zeros(2), np.zeros(0)], [[0.0], 0.0, "x", None, torch.zeros(2)]),
        (ArrayLike, [1, [1, 2], [[True]], np.zeros(2), ()], ["x", None, [[1], [1, 2]], object(), {}]),
        (ArrayLike | None, [1, [1], None], ["x", object()]),
        ("Decimal", [], [1, "x"]),
        ("not known to anybody", [1, "x", None], []),
        (Any, [1, "x", None], []),
    ],
)
def test_what_an_annotation_does_not_take_is_named(annotation, fitting, others):
    call = fails_with(annotation)
    for value in fitting:
        with pytest.raises(TypeError, match=r"^bare$"):
            call(value)
    for value in others:
        with pytest.raises(ArgumentError, match=r"(?s)failing: value is .*, of the type .*; it has to be ") as error:
            call(value)
        assert isinstance(error.value.__cause__, TypeError)


@pytest.mark.parametrize("error", [TypeError, AttributeError, KeyError, IndexError, ValueError, RuntimeError])
def test_what_no_argument_explains_goes_on(error):
    with pytest.raises(error, match="ours") as told:
        fails_with(int, error("ours"))(5)
    assert type(told.value) is error


@pytest.mark.parametrize("error", [TextError("said"), OSError("said"), KeyboardInterrupt("said")])
def test_other_errors_are_left_alone(error):
    with pytest.raises(type(error), match="said"):
        fails_with(int, error)("x")


def test_a_call_that_works_is_not_checked():
    @checked
    def doubled(value: int) -> int:
        return 2 * value

    assert doubled("ab") == "abab"


def test_missing_and_unknown_arguments_are_told_by_python():
    with pytest.raises(TypeError, match=r"attribution\(\) missing 1 required keyword-only argument: 'method'"):
        vf.analysis.attribution("x", "a")
    with pytest.raises(TypeError, match="unexpected keyword argument 'heads'"):
        vf.edits.Silence("decoder.0.self_attn", heads=3)


def test_one_of_several_is_named():
    @checked
    def joined(*names: str, **sizes: int) -> str:
        return "".join(names) + str(sum(sizes.values()))

    assert joined("a", "b", n=1) == "ab1"
    with pytest.raises(ArgumentError, match="names is 3, of the type int; it has to be str"):
        joined("a", 3)
    with pytest.raises(ArgumentError, match="sizes is 'x', of the type str; it has to be int"):
        joined("a", n="x")


def test_what_fails_while_it_yields_is_explained():
    @checked
    def lengths(texts: Iterable[str]):
        for text in texts:
            yield len(text)

    assert list(lengths(["a", "bc"])) == [1, 2]
    with pytest.raises(ArgumentError, match=r"lengths: texts is \['a', 3\]"):
        list(lengths(["a", 3]))
    with pytest.raises(ArgumentError, match="texts is 3"):
        list(lengths(3))


def test_an_iterator_is_not_read_for_the_message():
    rest = iter([1, 2, 3])
    with pytest.raises(TypeError, match=r"^bare$"):
        fails_with(Iterable[str])(rest)
    assert list(rest) == [1, 2, 3]


def test_the_function_that_was_called_is_named_not_one_inside():
    inner = fails_with(int)

    @checked
    def outer(size: int) -> None:
        inner(size)

    with pytest.raises(ArgumentError, match="outer: size is 'x'"):
        outer("x")


def test_arrays_that_do_not_fit_are_told_with_their_shapes():
    with pytest.raises(ShapeError, match=r"feed_forward cannot .*: x float64 \(2, 3\), w_1 int64 \(2, 1\), .*matmul"):
        vf.formulas.feed_forward(np.ones((2, 3)), [[1], [2]], b_1=0, w_2=[[1]], b_2=0)
    with pytest.raises(ShapeError, match=r"attention cannot .*: query float32 \(2, 3\), key float64 \(2, 3\), "):
        vf.attention(torch.ones(2, 3), torch.ones(2, 3, dtype=torch.float64), torch.ones(2, 3))


def test_running_out_of_memory_is_not_taken_for_shapes():
    with pytest.raises(MemoryError):
        vf.formulas.encoding_at(np.arange(10), 10**15)


def test_what_somebody_s_function_raises_inside_goes_on():
    def tap(name, tensor):
        raise RuntimeError("stop here")

    with pytest.raises(RuntimeError, match=r"^stop here$") as error:
        vf.attention(torch.ones(2, 3), torch.ones(2, 3), torch.ones(2, 3), tap=tap)
    assert type(error.value) is RuntimeError


def test_a_class_checks_its_methods_and_those_of_its_bases():
    class Base:
        def halved(self, n: int) -> float:
            return n / 2

    Base.__module__ = "visformer.made_up"

    @checked_class
    @dataclass
    class Made(Base):
        name: str

        def __post_init__(self) -> None:
            self.name.strip()

        @classmethod
        def of(cls, name: str) -> "Made":
            return cls(name)

        @staticmethod
        def shouted(name: str) -> str:
            return name.upper()

        def _hidden(self, n: int) -> float:
            return n / 2

    # Only what is ours: the class itself is of this test.
    assert not hasattr(Made.of, "__wrapped__") and hasattr(Base.halved, "__wrapped__")
    Made.__module__ = "visformer.made_up"
    checked_class(Made)
    assert Made.of("x").halved(3) == 1.5
    for call, name in ((Made, "name"), (Made.of, "name"), (Made.shouted, "name"), (Made("x").halved, "n")):
        with pytest.raises(ArgumentError, match=f": {name} is None"):
            call(None)
    with pytest.raises(TypeError, match="unsupported operand"):
        Made("x")._hidden(None)


def test_public_functions_keep_their_names_and_can_be_pickled():
    for function in (vf.load, vf.analysis.patching, vf.analysis.atlas.build, vf.export.save, vf.formulas.softmax):
        assert pickle.loads(pickle.dumps(function)) is function
        assert function.__doc__ and function.__module__.startswith("visformer")
    assert vf.load is vf.load and vf.load.__module__ == "visformer"
    assert vf.figures.beam_tree is vf.figures.beam_tree


def test_an_error_is_translated_and_survives_pickling():
    with pytest.raises(ArgumentError) as error:
        vf.analysis.rollout("x" * 10_000)
    said = error.value.localized(translations("zh").gettext)
    assert "rollout" in said and "Trace" in said and len(said) < 1_000
    assert said != str(error.value)
    assert str(pickle.loads(pickle.dumps(error.value))) == str(error.value)


@pytest.mark.parametrize("value", [0, 1.5, "1", None, True])
def test_what_is_no_whole_number_is_refused(value):
    with pytest.raises(VisformerError, match=r"n=.* must be a whole number of at least 1"):
        require_whole("n", value)


def test_checking_costs_no_import():
    code = "import sys, visformer.system.arguments; sys.exit('numpy' in sys.modules or 'torch' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], timeout=300, check=False).returncode == 0
