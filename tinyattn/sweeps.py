"""The same function at many settings: one after the other, on the cores of one machine, or on many machines.

Stands on nothing of the engine.  joblib and Dask are optional and imported when they are asked for.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterable, Mapping
from concurrent.futures.process import BrokenProcessPool
from functools import partial
from typing import Any, NamedTuple

from tinyattn.arguments import function_given, known_arguments
from tinyattn.errors import ArgumentError, ArgumentTypeError, SweepError, message, optional_library

__all__ = ["Outcome", "sweep"]

_PATIENCE = 3  # so often may workers die in a row without a single result between
_SECONDS = 20  # how long a scheduler has to answer


class Outcome(NamedTuple):
    """What the function gave at one setting.

    Attributes
    ----------
    setting : dict
        The arguments by name.
    result : object
        What was returned.
    """

    setting: dict[str, Any]
    result: Any


@known_arguments
def sweep(
    function: Callable[..., Any],
    ranges: Mapping[str, Iterable[Any]],
    *,
    jobs: int = 1,
    scheduler: str | None = None,
) -> list[Outcome]:
    """Call a function at every combination of settings, in the same order wherever the calls are made.

    The last range runs fastest.  A worker process that dies loses nothing: what it was doing is done again by
    another.  Whether several processes are faster depends on how long one call takes; see docs/sweeps.md.

    Parameters
    ----------
    function : callable
        Called as ``function(seed=0, n=4)``, say.  It must not depend on the calls before, and what it takes and
        gives must be picklable when it runs in other processes.
    ranges : mapping of str to iterable
        The values of each argument.
    jobs : int
        How many processes on this machine; 1 calls it here, -1 takes all cores.  More than one needs joblib.
    scheduler : str, optional
        Address of a Dask scheduler, ``"tcp://10.0.0.1:8786"``; the calls are made by its workers, which need
        tinyattn, too.  Needs Dask's distributed.

    Returns
    -------
    list of Outcome

    Raises
    ------
    MissingLibraryError
        With the line that installs the library.
    SweepError
        When workers keep dying, or no scheduler answers.
    Exception
        What the function raised, with the setting in a note.

    Examples
    --------
    >>> def area(height, width):
    ...     return height * width
    >>> for outcome in sweep(area, {"height": [1, 2], "width": [10, 20]}):
    ...     print(outcome.setting, outcome.result)
    {'height': 1, 'width': 10} 10
    {'height': 1, 'width': 20} 20
    {'height': 2, 'width': 10} 20
    {'height': 2, 'width': 20} 40
    """
    function_given(function, "sweep", "function", 'Write, for example, sweep(f, {"seed": range(10)}).')
    settings = _combinations(ranges)
    if isinstance(jobs, bool) or not isinstance(jobs, int) or jobs == 0 or abs(jobs) > 1 << 14:
        raise ArgumentError(f"sweep: jobs={jobs!r} must be a whole number of processes, or -1 for all cores.")
    if scheduler is not None and jobs != 1:
        raise ArgumentError(f"sweep: jobs={jobs} and scheduler={scheduler!r}; the scheduler knows its own workers.")
    call = partial(_call, function)
    if scheduler is not None:
        results = _on_many_machines(call, settings, scheduler)
    elif jobs != 1:
        results = _on_this_machine(call, settings, jobs)
    else:
        results = [call(setting) for setting in settings]
    return [Outcome(setting, result) for setting, result in zip(settings, results, strict=True)]


def _combinations(ranges: Mapping[str, Iterable[Any]]) -> list[dict[str, Any]]:
    if not isinstance(ranges, Mapping) or not ranges:
        raise ArgumentTypeError(
            message(
                f"sweep: ranges={ranges!r} has no names with values.",
                "",
                'Write, for example, sweep(f, {"seed": range(10), "n": [2, 8]}).',
            )
        )
    for name, values in ranges.items():
        if isinstance(values, str) or not isinstance(values, Iterable):
            raise ArgumentTypeError(f"sweep: the values of {name} must be a list or range, not {values!r}.")
    return [dict(zip(ranges, values, strict=True)) for values in itertools.product(*ranges.values())]


def _call(function: Callable[..., Any], setting: dict[str, Any]) -> Any:
    try:
        return function(**setting)
    except Exception as error:
        error.add_note(f"In the sweep, at {_written(setting)}.")
        raise


def _written(setting: dict[str, Any]) -> str:
    return ", ".join(f"{name}={value!r}" for name, value in setting.items())


# -- one machine: joblib --------------------------------------------------------------------------------------------


def _on_this_machine(call: Callable[..., Any], settings: list[dict[str, Any]], jobs: int) -> list[Any]:
    """A dead process takes all that is unfinished with it, so that is asked for again."""
    joblib = optional_library("joblib", "It runs a sweep on several cores.")
    results: dict[int, Any] = {}
    without_progress = 0
    while missing := [place for place in range(len(settings)) if place not in results]:
        before = len(results)
        parallel = joblib.Parallel(n_jobs=jobs, return_as="generator_unordered")
        try:
            for place, result in parallel(joblib.delayed(_numbered)(call, p, settings[p]) for p in missing):
                results[place] = result
        except BrokenProcessPool:
            without_progress = without_progress + 1 if len(results) == before else 0
            if without_progress >= _PATIENCE:
                raise _died(settings, missing) from None
    return [results[place] for place in range(len(settings))]


def _numbered(call: Callable[..., Any], place: int, setting: dict[str, Any]) -> tuple[int, Any]:
    return place, call(setting)


def _died(settings: list[dict[str, Any]], missing: list[int]) -> SweepError:
    return SweepError(
        message(
            f"sweep: worker processes died {_PATIENCE} times in a row; {len(missing)} of {len(settings)} are not done.",
            "Too little memory is the usual cause, or a crash in a compiled library.",
            f"Try the first that is left by itself: {_written(settings[missing[0]])}.",
        )
    )


# -- many machines: Dask ---------------------------------------------------------------------------------------------


def _on_many_machines(call: Callable[..., Any], settings: list[dict[str, Any]], address: str) -> list[Any]:
    """The scheduler gives the work of a dead worker to another."""
    distributed = optional_library("distributed", "It runs a sweep on many machines.")
    try:
        client = distributed.Client(address, timeout=_SECONDS, set_as_default=False)
    except Exception as error:  # who answers may be no scheduler at all, and then anything comes back
        raise SweepError(
            message(
                f"sweep: no scheduler answers at {address}: {str(error).splitlines()[0] if str(error) else 'timeout'}.",
                "",
                "Start one with `dask scheduler`, workers with `dask worker ADDRESS`, and give its address.",
            )
        ) from None
    with client:
        futures = client.map(call, settings, pure=False)
        try:
            return list(client.gather(futures))
        except distributed.KilledWorker:
            missing = [place for place, future in enumerate(futures) if future.status != "finished"]
            raise _died(settings, missing) from None
