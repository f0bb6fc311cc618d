"""The simulated driver, for programs and inside the test process."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

import tui_probe
from tests.simgpu.driver import Driver
from tests.warm_start import simulator_python

if TYPE_CHECKING:
    from collections.abc import Iterator


@pytest.fixture(scope="session")
def library(natives: Path) -> Path:
    """The simulated ``libcuda.so.1``."""
    return natives / "sim" / "libcuda.so.1"


@pytest.fixture(scope="session")
def environment(library: Path) -> dict[str, str]:
    """The environment of a program that runs on the simulated GPU."""
    package = str(Path(tui_probe.__path__[0]).parent)
    settings = {
        "LD_LIBRARY_PATH": str(library.parent),
        "TUI_PROBE_SIM_PYTHON": simulator_python(),
        "TUI_PROBE_SIM_PYTHONPATH": package,
    }
    return {**os.environ, **settings}


@pytest.fixture(scope="session")
def initialised_driver(library: Path) -> Driver:
    """The driver in the test process, with 64 MiB of memory and 4 SMs."""
    with pytest.MonkeyPatch.context() as patch:  # it reads them once; programs of other tests have their own
        patch.setenv("TUI_PROBE_SIM_MEMORY", "64M")
        patch.setenv("TUI_PROBE_SIM_SMS", "4")
        driver = Driver(library)
        driver.cuInit(0)
    return driver


@pytest.fixture
def loaded_driver(initialised_driver: Driver, environment: dict[str, str], monkeypatch: pytest.MonkeyPatch) -> Driver:
    """The same, and where it finds Python once it needs it."""
    for name in ("TUI_PROBE_SIM_PYTHON", "TUI_PROBE_SIM_PYTHONPATH"):
        monkeypatch.setenv(name, environment[name])
    return initialised_driver


@pytest.fixture
def driver(loaded_driver: Driver) -> Iterator[Driver]:
    """The driver with a new context, which is destroyed with all that belongs to it after the test."""
    context = loaded_driver.create_context()
    yield loaded_driver
    loaded_driver.cuCtxDestroy_v2(context)
