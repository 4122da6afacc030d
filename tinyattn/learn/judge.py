"""Judge an answer: does it give the right numbers, and if not, which mistake is it?

Runs where it is called; `tinyattn.learn.grading` calls it in a child process.  Everything it finds is said in
words that carry expected, received and the first place that differs.
"""

from __future__ import annotations

import inspect
import re
import warnings
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any

import numpy as np

import tinyattn as ta
from tinyattn.errors import TinyattnError
from tinyattn.learn.exercises import Answer, Exercise, differences
from tinyattn.learn.words import Sayings

_RANDOM_CASES = 3
_LONGEST = 200
_PLACE = re.compile(r" \w+ was made at <[^>]*>:\d+\.")  # the learner did not make the arguments
_MATMUL = re.compile(r"^matmul: .*\(size (\d+) is different from (\d+)\)$", re.DOTALL)  # as NumPy says it


@dataclass
class Verdict:
    """What came out: how many checks passed, what to say, and whether that is all of them.

    ``mistake`` is the sentence of the catalogue that fits; ``place``: file and line where the answer raised.
    """

    passed: int = 0
    of: int = 0
    lines: list[str] = field(default_factory=list)
    mistake: str = ""
    place: tuple[str, int] = ("", 0)

    @property
    def right(self) -> bool:
        """Whether every check passed."""
        return self.of > 0 and self.passed == self.of


class Raised(Exception):
    """The answer raised: what, where in the learner's code, and for which call."""

    def __init__(self, error: BaseException, answer: Answer) -> None:
        self.kind, self.text = type(error).__name__, _PLACE.sub("", str(error)).strip()
        super().__init__(f"{self.kind}: {self.text}" if self.text else self.kind)
        self.place = _place(error, answer)
        self.call = ""
        self.named = isinstance(error, TinyattnError)

    @property
    def fingerprint(self) -> str:
        """What two answers share that stumble in the same way, whatever they call their variables.

        The engine's errors name variables, so only their numbers count; those of Python and NumPy do not.
        """
        if not self.named:
            return f"{self.kind}: {self.text}"
        numbers = re.findall(r"\d+", re.sub(r"\S+ was made at \S+", "", self.text))
        return " ".join([self.kind, *numbers])


def judge(exercise: Exercise, answer: Any, lang: str = "en") -> Verdict:
    """Try an answer in every way the exercise has.

    Parameters
    ----------
    exercise : Exercise
    answer : callable
        The learner's function.
    lang : str

    Returns
    -------
    Verdict
    """
    return _Judge(exercise, answer, lang).verdict()


class _Judge:
    def __init__(self, exercise: Exercise, answer: Any, lang: str) -> None:
        self.exercise, self.answer = exercise, answer
        self.says = Sayings(lang)
        self.at = 1 if lang == "zh" else 0
        rng = np.random.default_rng(20240229)
        drawn = [exercise.sample(rng) for _ in range(_RANDOM_CASES)]
        self.cases = [(case.args, np.asarray(case.expected, dtype=float)) for case in exercise.cases]
        self.cases += [(args, _numbers(call(exercise, exercise.solution, args))) for args in drawn]
        self.result = Verdict(of=len(self.cases) + len(exercise.properties) + exercise.tensors)

    def verdict(self) -> Verdict:
        lines = self._signature()
        if lines:
            return self._with(lines)
        self._run_checks()
        if not self.result.right:
            self.result.mistake = self._mistake()
        return self.result

    def _with(self, lines: list[str]) -> Verdict:
        self.result.passed, self.result.lines = 0, lines
        return self.result

    def _signature(self) -> list[str]:
        if not callable(self.answer):
            return [self.says("not callable", kind=type(self.answer).__name__, wanted=self.exercise.signature)]
        try:
            inspect.signature(self.answer).bind(*self.cases[0][0])
        except TypeError:
            return [self.says("signature", wanted=self.exercise.signature, got=str(inspect.signature(self.answer)))]
        except ValueError:  # a built-in that does not tell its arguments
            pass
        return []

    def _run_checks(self) -> None:
        """Run all checks; the first that fails is told, the others are counted."""
        for check in self._checks():
            place = ("", 0)
            try:
                lines = check()
            except Raised as raised:
                lines, place = self._raised(raised), raised.place
            if not lines:
                self.result.passed += 1
            elif not self.result.lines:
                self.result.lines, self.result.place = lines, place

    def _raised(self, raised: Raised) -> list[str]:
        """What was called, and the error in words; NumPy's own are said in plainer ones."""
        called = [self.says("called", call=raised.call)] if raised.call else []
        sizes = _MATMUL.search(raised.text)
        if sizes:
            return [*called, self.says("matmul", kind=raised.kind, left=sizes[2], right=sizes[1])]
        told = [self.says("raised", text=str(raised))]
        if "could not be broadcast" in raised.text:
            told.append(self.says("broadcast"))
        return [*called, *told]

    def _checks(self) -> Iterator[Callable[[], list[str]]]:
        for args, expected in self.cases:
            yield lambda args=args, expected=expected: self._case(args, expected)  # type: ignore[misc]
        for prop in self.exercise.properties:
            yield lambda prop=prop: self._property(prop.says[self.at], prop.holds)  # type: ignore[misc]
        if self.exercise.tensors:
            yield self._gradient

    def _case(self, args: tuple[Any, ...], expected: np.ndarray) -> list[str]:
        given, names = copied(args), inspect.signature(self.exercise.solution).parameters
        shown = ", ".join(f"{name}={_short(value)}" for name, value in zip(names, args))
        call = f"{self.exercise.function}({shown})"
        try:
            received = _called(self.exercise, self.answer, given)
        except Raised as raised:
            raised.call = call
            raise
        lines = self._result(received, expected)
        if lines:
            return [self.says("called", call=call), *lines]
        changed = [name for name, before, after in zip(names, args, given) if not _same(before, after)]
        return [self.says("changes", name=changed[0])] if changed else []

    def _result(self, received: Any, expected: np.ndarray) -> list[str]:
        if received is None or received is Ellipsis:
            return [self.says("nothing")]
        if self.exercise.tensors and not isinstance(received, ta.Tensor):
            return [self.says("no tensor", kind=type(received).__name__)]
        numbers = _numbers(received)
        if numbers.dtype == object:
            return [self.says("no numbers", kind=type(received).__name__)]
        facts = [
            self.says("expected", value=_short(expected), shape=expected.shape),
            self.says("received", value=_short(numbers), shape=numbers.shape),
        ]
        if numbers.shape != expected.shape:
            return [*facts, self.says("shape")]
        wrong = ~_close(numbers, expected, self.exercise.tolerance)
        if not wrong.any():
            return []
        if not numbers.ndim:  # a shape would only be in the way
            return [
                self.says("expected number", value=self._number(expected)),
                self.says("received number", value=self._number(numbers)),
            ]
        place = tuple(int(i) for i in np.argwhere(wrong)[0])
        return [
            *facts,
            self.says(
                "differs",
                place=list(place),
                expected=f"{expected[place]:.6g}",
                received=f"{numbers[place]:.6g}",
            ),
        ]

    def _number(self, value: np.ndarray) -> str:
        """A single number; True or False where the exercise asks for that."""
        if isinstance(self.exercise.cases[0].expected, bool) and value in (0, 1):
            return str(bool(value))
        return f"{value:.6g}"

    def _property(self, sentence: str, holds: Callable[[Answer, np.random.Generator], bool]) -> list[str]:
        def answer(*args: Any) -> Any:
            return _numbers(_called(self.exercise, self.answer, args))

        try:
            fine = holds(answer, np.random.default_rng(7))
        except Raised:
            raise
        except Exception:  # the property itself stumbles over a result of a wrong shape
            fine = False
        return [] if fine else [self.says("property", sentence=sentence)]

    def _gradient(self) -> list[str]:
        """Compare the gradient through the answer with differences of the right one."""
        args, expected = self.cases[-1]
        tensors = [ta.tensor(x, requires_grad=True) if _floating(x) else x for x in args]
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            y = _called(self.exercise, self.answer, tuple(tensors))
        lost = [str(w.message) for w in caught if issubclass(w.category, ta.GradientLost)]
        if not isinstance(y, ta.Tensor) or not y.requires_grad:
            return [self.says("gradient lost"), *lost[:1]]
        if y.shape != expected.shape:
            return [self.says("shape")]
        g = np.random.default_rng(3).normal(size=y.shape)
        for at, (name, x) in enumerate(zip(inspect.signature(self.exercise.solution).parameters, tensors)):
            if not isinstance(x, ta.Tensor):
                continue
            got = ta.grad(y, x, seed=g).data
            want = differences(
                lambda z, at=at: _numbers(
                    call(self.exercise, self.exercise.solution, (*args[:at], z, *args[at + 1 :]))
                ),  # type: ignore[misc]
                np.asarray(x.data),
                g,
            )
            if not np.allclose(got, want, rtol=1e-5, atol=1e-7):
                place = tuple(int(i) for i in np.argwhere(~np.isclose(got, want, rtol=1e-5, atol=1e-7))[0])
                return [
                    self.says(
                        "gradient",
                        name=name,
                        place=list(place),
                        expected=f"{want[place]:.6g}",
                        received=f"{got[place]:.6g}",
                    ),
                    *lost[:1],
                ]
        return []

    # which mistake is it?

    def _mistake(self) -> str:
        received = [self._quietly(self.answer, args) for args, _ in self.cases]
        for wrong in self.exercise.wrong:
            if self._alike(received, [self._quietly(wrong.function, args) for args, _ in self.cases]):
                return wrong.says[self.at]
        expected = [value for _, value in self.cases]
        for key, change in _CHANGES.items():
            changed = [change(value) for value in expected]
            if self._alike(received, changed) and not self._alike(expected, changed):
                return self.says(key)
        return ""

    def _quietly(self, function: Answer, args: tuple[Any, ...]) -> np.ndarray | str:
        """The numbers, or the fingerprint of the error; a text that nothing equals where it gives no numbers."""
        try:
            with warnings.catch_warnings(), np.errstate(all="ignore"):
                warnings.simplefilter("ignore")
                numbers = _numbers(_called(self.exercise, function, copied(args)))
        except Raised as raised:
            return raised.fingerprint
        return "" if numbers.dtype == object else numbers

    def _alike(self, one: list[Any], other: list[Any]) -> bool:
        """Whether two answers do the same in every case: the same numbers, or the same error."""
        return all(_same_outcome(a, b) for a, b in zip(one, other))


_CHANGES: dict[str, Callable[[np.ndarray], np.ndarray]] = {
    "all zero": np.zeros_like,
    "negative": np.negative,
    "doubled": lambda x: 2 * x,
    "halved": lambda x: x / 2,
    "transposed": lambda x: x.swapaxes(-1, -2) if x.ndim >= 2 else x[..., None],
}


def call(exercise: Exercise, function: Answer, args: tuple[Any, ...]) -> Any:
    """Call an answer with what the exercise passes: arrays, or tensors without gradient."""
    if exercise.tensors:
        args = tuple(ta.tensor(x) if _floating(x) else x for x in args)
    return function(*args)


def copied(args: tuple[Any, ...]) -> tuple[Any, ...]:
    """Arguments that an answer may spoil."""
    return tuple(x.copy() if isinstance(x, np.ndarray | list) else x for x in args)


def _same(before: Any, after: Any) -> bool:
    """Whether an argument is still what it was."""
    return np.array_equal(before, after) if isinstance(before, np.ndarray) else bool(before == after)


def _same_outcome(a: np.ndarray | str, b: np.ndarray | str) -> bool:
    if isinstance(a, str) or isinstance(b, str):
        return isinstance(a, str) and isinstance(b, str) and a == b != ""
    return a.shape == b.shape and bool(_close(a, b, 1e-6).all())


def _called(exercise: Exercise, answer: Answer, args: tuple[Any, ...]) -> Any:
    try:
        with np.errstate(all="ignore"):  # an overflow shows in the numbers
            return call(exercise, answer, args)
    except (Exception, SystemExit) as error:
        raise Raised(error, answer) from None


def _floating(x: Any) -> bool:
    return isinstance(x, float) or (isinstance(x, np.ndarray) and x.dtype.kind == "f")


def _numbers(value: Any) -> np.ndarray:
    """A result as an array of floats; of objects where it holds no numbers."""
    plain = value.data if isinstance(value, ta.Tensor) else value
    if isinstance(plain, (list, tuple)):
        plain = [x.data if isinstance(x, ta.Tensor) else x for x in plain]
    try:
        array = np.asarray(plain)
        return array.astype(float) if array.dtype.kind in "biuf" else np.array(None, dtype=object)
    except (ValueError, TypeError):
        return np.array(None, dtype=object)


def _close(a: np.ndarray, b: np.ndarray, tolerance: float) -> np.ndarray:
    size = max(1.0, float(np.max(np.abs(b), initial=0.0, where=np.isfinite(b))))
    near: np.ndarray = np.isclose(a, b, rtol=0, atol=tolerance * size, equal_nan=True)
    return near


def _short(value: Any) -> str:
    """A value on one line."""
    plain = value.data if isinstance(value, ta.Tensor) else value
    if callable(plain):
        return str(plain.__doc__ or plain.__name__).split("\n")[0]
    text = (
        np.array2string(np.asarray(plain), precision=4, suppress_small=True, separator=", ", threshold=40)
        if isinstance(plain, np.ndarray)
        else repr(plain)
    )
    text = " ".join(text.split())
    return text if len(text) <= _LONGEST else text[: _LONGEST - 3] + "..."


def _place(error: BaseException, answer: Answer) -> tuple[str, int]:
    """File and line of the learner's code at which it raised."""
    file = getattr(getattr(answer, "__code__", None), "co_filename", "")
    place, trace = ("", 0), error.__traceback__
    while trace is not None:
        if file and trace.tb_frame.f_code.co_filename == file:
            place = (file, trace.tb_lineno)
        trace = trace.tb_next
    return place
