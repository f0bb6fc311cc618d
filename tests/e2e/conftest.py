"""The tool and the bundled example on the simulated GPU, in processes of their own."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from hashlib import sha256
from pathlib import Path

import pytest

from tests.conftest import SHELF, built_once, run
from tests.patience import HANG
from tests.warm_start import simulator_python
from tui_probe.simgpu.examples import demo

ROOT = Path(__file__).resolve().parents[2]
SOURCE = Path(__file__).parent / "programs" / "examples.c"
BUILT = f"examples-{sha256(SOURCE.read_bytes()).hexdigest()[:16]}"
HAS_COMPILER = shutil.which("cc") is not None
PYTHON_EXAMPLE = [sys.executable, demo.__file__]
"""The example that comes with tui-probe."""
EXAMPLE = [str(SHELF / BUILT / "examples"), str(demo.KERNELS)] if HAS_COMPILER else PYTHON_EXAMPLE
"""The same kernels in a program that starts in 2 ms of CPU, Python and NumPy in 200."""
SAXPY = [*EXAMPLE, "--kernel", "saxpy"]
"""The example's cheapest kernel that loads and stores, for tests that need no other."""
RUN = [sys.executable, "-m", "tui_probe", "run", "-p", "block_sched", "--sim"]
"""A run of the cheapest probe, for tests that are about something else."""


def with_probe(options: Sequence[str]) -> tuple[str, ...]:
    """Options of a run, with the cheapest probe unless they name one."""
    return (*(() if {"-p", "--probe", "-t", "--between"} & {*options} else ("-p", "block_sched")), *options)


@dataclass
class Tool:
    """Runs programs in ``folder`` on the simulated GPU: by themselves, or under ``tui-probe``."""

    folder: Path
    natives: Path

    @property
    def environment(self) -> dict[str, str]:
        path = f"{ROOT}:{os.environ.get('PYTHONPATH', '')}".rstrip(":")
        return os.environ | {"PYTHONPATH": path, "TUI_PROBE_NATIVE": str(self.natives), "COLUMNS": "120"}

    def unprofiled(self, *command: str) -> subprocess.CompletedProcess[str]:
        """Run a command with the simulated driver, without the hook."""
        driver = {
            "LD_LIBRARY_PATH": str(self.natives / "sim"),
            "TUI_PROBE_SIM_PYTHON": simulator_python(),
            "TUI_PROBE_SIM_PYTHONPATH": str(ROOT),
        }
        return self._run([*command], self.environment | driver)

    def __call__(self, *words: str) -> subprocess.CompletedProcess[str]:
        """Run ``tui-probe WORDS``."""
        return self._run([sys.executable, "-m", "tui_probe", *words], self.environment)

    def run(self, command: list[str], *options: str) -> tuple[subprocess.CompletedProcess[str], Path]:
        """``tui-probe run`` a command on the simulated GPU. Returns what came out, and the trace directory.

        Without a probe among the options it has the cheapest one: most tests are about something else.
        """
        result = self("run", "--sim", "--no-report", *with_probe(options), "--", *command)
        return result, self.folder / result.stderr.split("\n")[0].strip().split(" ")[-1]

    def in_namespace(self, script: str) -> subprocess.CompletedProcess[str]:
        """Run a shell script that may mount what it likes."""
        return self._run(["unshare", "-rm", "sh", "-c", script], self.environment)

    def _run(self, command: list[str], environment: dict[str, str]) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            command, cwd=self.folder, env=environment, stdin=subprocess.DEVNULL, capture_output=True, text=True,
            timeout=HANG, start_new_session=True,
        )  # fmt: skip


def build_examples() -> None:
    """Build the example in C once for all test processes and later runs."""
    if HAS_COMPILER:
        with built_once(BUILT) as (place, is_new):
            if is_new:
                run("cc", "-O2", str(SOURCE), "-o", str(place / "examples"), "-ldl", "-lm")


@pytest.fixture(autouse=True, scope="session")
def _examples() -> None:
    build_examples()


@pytest.fixture
def tool(tmp_path: Path, natives: Path) -> Tool:
    return Tool(tmp_path, natives)
