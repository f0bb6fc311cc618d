"""pytest plug-in: ``pytest --gpu-probe`` runs the tests under the hook and checks limits of their kernels.

A process can only be hooked when it starts. So pytest replaces itself by ``tui-probe run -- pytest ...``, once. The
kernels of a test are those that were launched since its body, or its fixture ``gpu_probe``, began.

Imports are made when they are needed: pytest loads this module in every environment that has tui-probe.
"""

from __future__ import annotations

import os
import sys
from typing import TYPE_CHECKING, Any, Final

import pytest

from tui_probe.own_python import OWN_COMMAND

if TYPE_CHECKING:
    from collections.abc import Generator

    from tui_probe.integrations.launched_kernels import LaunchedKernels

MARKER: Final = "gpu_probe"
UNDER_HOOK: Final = "TUI_PROBE_PYTEST"
"""Variable of the environment that the second pytest has, so that it does not replace itself again."""
PROBES: Final = "counts"
UNCHECKED: Final = (MARKER, "not checked")
"""Property of the report of a test whose limits were not checked: pytest-xdist sends it with the report."""
_kernels = pytest.StashKey["LaunchedKernels"]()


def pytest_addoption(parser: pytest.Parser) -> None:
    """Add the options, all with one prefix."""
    group = parser.getgroup("tui-probe", "profile the kernels that tests launch")
    group.addoption(
        "--gpu-probe",
        action="store_true",
        help="run the tests under tui-probe and check the limits of their gpu_probe markers",
    )
    group.addoption("--gpu-probe-sim", action="store_true", help="like --gpu-probe, but on the simulated GPU")
    group.addoption(
        "--gpu-probe-option", action="append", default=[], metavar="OPTION",
        help="an option of tui-probe run, e.g. --gpu-probe-option=--machine-code=all; repeatable",
    )  # fmt: skip


def pytest_configure(config: pytest.Config) -> None:
    """Describe the marker."""
    config.addinivalue_line(
        "markers",
        f"{MARKER}(max_METRIC=number, min_METRIC=number, no_spills=True): limits of the kernels that the test "
        "launches, checked under pytest --gpu-probe; METRIC is a metric in `tui-probe probes`, or registers",
    )
    config.pluginmanager.register(_UncheckedLimits())


@pytest.hookimpl(tryfirst=True)
def pytest_cmdline_main(config: pytest.Config) -> None:
    """Replace this process by pytest under the hook."""
    is_requested = config.option.gpu_probe or config.option.gpu_probe_sim
    if not is_requested or os.environ.get(UNDER_HOOK) or config.option.collectonly or config.option.help:
        return
    capture = config.pluginmanager.getplugin("capturemanager")
    if capture is not None:
        capture.suspend_global_capture(in_=True)  # the new process gets the descriptors themselves
    sys.stdout.flush()
    sys.stderr.flush()
    os.chdir(config.invocation_params.dir)
    os.execve(sys.executable, command(config), os.environ | {UNDER_HOOK: "1"})


def command(config: pytest.Config) -> list[str]:
    """Return the command that runs these tests under the hook."""
    simulation = ["--sim"] if config.option.gpu_probe_sim else []
    options = ["--no-ui", "--no-report", "-p", PROBES, "--launches=all", "--wait", *simulation]
    profile_command = [*OWN_COMMAND, "run", *options, *config.option.gpu_probe_option]
    return [*profile_command, "--", sys.executable, "-m", "pytest", *map(str, config.invocation_params.args)]


def is_hooked() -> bool:
    """Return whether this process runs under the hook, and was started for it."""
    return bool(os.environ.get(UNDER_HOOK) and os.environ.get("TUI_PROBE_TRACE_ROOT"))


@pytest.fixture
def gpu_probe(request: pytest.FixtureRequest) -> LaunchedKernels:
    """The kernels that this test has launched so far, with their metrics; skips without ``--gpu-probe``."""
    if not is_hooked():
        pytest.skip("gpu_probe needs pytest --gpu-probe (or --gpu-probe-sim)")
    from tui_probe.integrations.launched_kernels import LaunchedKernels

    item: pytest.Item = request.node
    return item.stash.setdefault(_kernels, LaunchedKernels.begin())


@pytest.hookimpl(wrapper=True)
def pytest_runtest_call(item: pytest.Item) -> Generator[None, Any, Any]:
    """Check the limits of a test after its body."""
    markers = list(item.iter_markers(MARKER))
    if not markers or not is_hooked():
        if markers:
            item.user_properties.append(UNCHECKED)
        return (yield)
    from tui_probe.errors import UsageError
    from tui_probe.integrations.launched_kernels import LaunchedKernels, exceeded_limits

    kernels = item.stash.setdefault(_kernels, LaunchedKernels.begin())
    result = yield
    limits = {name: value for marker in reversed(markers) for name, value in marker.kwargs.items()}
    try:
        problems = exceeded_limits(kernels, limits)
    except UsageError as error:
        problems = [str(error)]
    if any(marker.args for marker in markers):
        problems.append("gpu_probe: limits need names; write max_METRIC=N, min_METRIC=N or no_spills=True")
    if problems:
        pytest.fail("\n".join(problems), pytrace=False)
    return result


class _UncheckedLimits:
    """Names the number of tests whose limits were not checked: a limit never passes in silence."""

    def __init__(self) -> None:
        self._tests = 0

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        """Count a test once, by the report of its body."""
        if report.when == "call" and UNCHECKED in map(tuple, report.user_properties):
            self._tests += 1

    def pytest_terminal_summary(self, terminalreporter: Any) -> None:
        """Write a line below the results."""
        if self._tests:
            terminalreporter.write_line(
                f"limits of {self._tests} tests marked {MARKER} were not checked: run pytest --gpu-probe", yellow=True
            )
