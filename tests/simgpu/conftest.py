"""The simulated driver, for programs and inside the test process."""

from __future__ import annotations

import os
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

import tui_probe
from tests.simgpu.driver import Driver

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
        "TUI_PROBE_SIM_PYTHON": sys.executable,
        "TUI_PROBE_SIM_PYTHONPATH": package,
    }
    return {**os.environ, **settings}


@pytest.fixture(scope="session")
def loaded_driver(library: Path, environment: dict[str, str]) -> Driver:
    """The driver in the test process, with 64 MiB of memory and 4 SMs."""
    for name in ("TUI_PROBE_SIM_PYTHON", "TUI_PROBE_SIM_PYTHONPATH"):
        os.environ[name] = environment[name]
    os.environ["TUI_PROBE_SIM_MEMORY"] = "64M"
    os.environ["TUI_PROBE_SIM_SMS"] = "4"
    driver = Driver(library)
    driver.cuInit(0)
    return driver


@pytest.fixture
def driver(loaded_driver: Driver) -> Iterator[Driver]:
    """The driver with a new context, which is destroyed with all that belongs to it after the test."""
    context = loaded_driver.create_context()
    yield loaded_driver
    loaded_driver.cuCtxDestroy_v2(context)
