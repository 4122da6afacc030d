"""What every test can use, which tests are run, and when a skipped test counts as a failed one.

``--slow`` adds the tests marked ``slow``.  With ``CI`` and ``TINYATTN_STRICT_SKIPS=1`` in the environment
every library is expected to be there, so a skip is reported as a failure, except where the reason begins with
``TINYATTN_SHARED``: those tests need a folder that is not part of the repository.
"""

from __future__ import annotations

import importlib.util
import os
import signal
import sysconfig
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest

ALLOWED_SKIP = "TINYATTN_SHARED"
STRICT_SKIPS = bool(os.environ.get("CI")) and os.environ.get("TINYATTN_STRICT_SKIPS") == "1"

# Their examples hand something over to a library, so they need it.
collect_ignore = [
    f"tinyattn/handover/{file}.py"
    for file, library in (("jax_function", "jax"), ("torch_module", "torch"), ("onnx_file", "onnx"))
    if importlib.util.find_spec(library) is None
]

# A shell that starts a run in the background lets it ignore Ctrl-C, and children inherit that; tests of Ctrl-C need it.
if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)

# Pictures in tests come from the renderer that is the same on every machine.
_pure_dot = next(Path(sysconfig.get_path("scripts")).glob("graphviz-pure*"), None)
if _pure_dot is not None:
    os.environ["TINYATTN_DOT"] = str(_pure_dot)


@pytest.fixture(autouse=True)
def print_options_stay() -> Iterator[None]:
    """A lesson may set how NumPy prints; the tests after it see nothing of that."""
    with np.printoptions():
        yield


@pytest.fixture
def rng() -> np.random.Generator:
    """The same random numbers in every run."""
    return np.random.default_rng(20170612)


@pytest.fixture(scope="session")
def root() -> Path:
    """The folder of the repository."""
    return Path(__file__).resolve().parent


@pytest.fixture(scope="session")
def shared() -> Path:
    """The folder with cases and data that are not part of the repository."""
    folder = os.environ.get(ALLOWED_SKIP)
    if not folder:
        pytest.skip(f"{ALLOWED_SKIP} does not point to the folder with cases and data")
    return Path(folder)


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--slow", action="store_true", help="also run the tests marked slow")


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    named = any("::" in argument for argument in config.args)
    if config.getoption("--slow") or named or "slow" in config.getoption("markexpr"):
        return
    slow = [item for item in items if "slow" in item.keywords]
    items[:] = [item for item in items if "slow" not in item.keywords]
    config.hook.pytest_deselected(items=slow)


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport() -> Iterator[None]:
    report = yield
    return refused_if_skipped(report)


@pytest.hookimpl(wrapper=True)
def pytest_make_collect_report() -> Iterator[None]:
    report = yield
    return refused_if_skipped(report)


def refused_if_skipped(report: pytest.TestReport | pytest.CollectReport) -> object:
    """Turn a skip into a failure, where skips are not accepted."""
    if not STRICT_SKIPS or not report.skipped or hasattr(report, "wasxfail"):
        return report
    reason = report.longrepr[2] if isinstance(report.longrepr, tuple) else str(report.longrepr)
    reason = reason.removeprefix("Skipped: ")
    if not reason.startswith(ALLOWED_SKIP):
        report.outcome = "failed"
        report.longrepr = f"skipped, which is not accepted in this run: {reason}"
    return report
