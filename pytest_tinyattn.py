"""The pytest plugin of tinyattn: the fixture and the marker ``gradients``, and a readable section on failure.

It is a module of its own, outside the package, because pytest loads plugins in every run, and a run that checks no
gradient shall not pay for importing an engine.
"""

from __future__ import annotations

from collections.abc import Callable, Generator
from typing import Any

import pytest


def pytest_configure(config: pytest.Config) -> None:
    """Make the marker known."""
    config.addinivalue_line(
        "markers",
        "gradients(order=2, modes=..., rtol=None, atol=None, seed=0): how the fixture `gradients` checks in this test",
    )


@pytest.fixture
def gradients(request: pytest.FixtureRequest) -> Callable[..., Any]:
    """Check a gradient in one line: ``gradients(f, *inputs)``, with the options of the marker."""
    from functools import partial

    from tinyattn.testing import assert_gradients

    options: dict[str, Any] = {}
    for marker in reversed(list(request.node.iter_markers("gradients"))):
        options.update(marker.kwargs)
    return partial(assert_gradients, **options)


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(
    item: pytest.Item, call: pytest.CallInfo[None]
) -> Generator[None, pytest.TestReport, pytest.TestReport]:
    """Put the whole report of a failed check into a section of its own."""
    report = yield
    error = call.excinfo.value if call.excinfo is not None else None
    found = getattr(error, "gradient_report", None)
    if found is not None and report.failed:
        report.sections.append(("gradient check", found.text(full=True)))
    return report
