"""A hook that only makes trace directories, and a runner of ``tui-probe run`` under it."""

from __future__ import annotations

import os
import subprocess
import sys
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from tests.e2e.conftest import with_probe

RUN = ("run", "-p", "block_sched", "--sim")
"""A run of the cheapest probe."""

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

ROOT = Path(__file__).resolve().parents[2]
LIMIT = 60  # seconds; reaching it means that something hangs

FAKE_HOOK = r"""
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

/* Makes this process's trace directory when it is loaded, if the test asks for it: "*", or the name of a program. */
__attribute__((constructor)) static void make_trace(void)
{
    const char *who = getenv("FAKE_LAUNCHES"), *launcher = getenv("TUI_PROBE_LAUNCHER");
    if (!who || !launcher)
        return;
    char path[4096], own[64] = "";
    ssize_t length = readlink("/proc/self/exe", path, sizeof path - 1);
    path[length > 0 ? length : 0] = 0;
    if (who[0] != '*' && !strstr(path, who))
        return;
    int direct = atol(launcher) == (long)getppid();
    snprintf(path, sizeof path, "%s/%s_%d", getenv("TUI_PROBE_TRACE_ROOT"),
             direct ? getenv("TUI_PROBE_STAMP") : "Jan01_000000", getpid());
    rmdir(path);
    mkdir(path, 0755);
    FILE *notes = fopen(getenv("TUI_PROBE_NOTES"), "a");
    fprintf(notes, "%d trace %s\n", getpid(), strrchr(path, '/') + 1);
    fclose(notes);
}
const char *marker = "TUI_PROBE_DRIVER";
"""
FAKE_DRIVER = 'int cuInit(unsigned flags) { return (int)flags; } const char *marker = "TUI_PROBE_SIM_PYTHON";'


def compile_library(source: str, target: Path) -> None:
    target.parent.mkdir(parents=True)
    command = [
        "cc",
        "-shared",
        "-fPIC",
        "-include",
        "string.h",
        "-Wl,-soname,libcuda.so.1",
        "-x",
        "c",
        "-",
        "-o",
        str(target),
    ]
    subprocess.run(command, input=source, text=True, check=True)


@pytest.fixture(scope="session")
def fake_native(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder like ``tui_probe/_native`` whose libraries do nothing with GPUs."""
    folder = tmp_path_factory.mktemp("native")
    compile_library(FAKE_HOOK, folder / "hook" / "libcuda.so.1")
    compile_library(FAKE_DRIVER, folder / "sim" / "libcuda.so.1")
    return folder


@dataclass
class Runner:
    """Runs ``tui-probe`` in ``folder``, away from any terminal, with this environment."""

    folder: Path
    environment: dict[str, str] = field(default_factory=dict)

    def command(self, *words: str) -> list[str]:
        return [sys.executable, "-m", "tui_probe", *words]

    def __call__(self, *words: str, program: str = "", **options: Any) -> subprocess.CompletedProcess[bytes]:
        """Run to the end; ``program`` is Python to run instead of the tool's entry point."""
        command = [sys.executable, "-c", program, *words] if program else self.command(*words)
        settings = {"stdin": subprocess.DEVNULL, "capture_output": True, "timeout": LIMIT} | options
        return subprocess.run(command, **self._surroundings(), **settings)

    def run(self, target: Sequence[str], *words: str, **options: Any) -> subprocess.CompletedProcess[bytes]:
        """``tui-probe run`` of a target on the fake driver, without a report, to the end."""
        return self("run", "--sim", "--no-report", *with_probe(words), "--", *target, **options)

    def start(self, target: Sequence[str], *words: str, **options: Any) -> subprocess.Popen[bytes]:
        """The same, without waiting."""
        command = self.command("run", "--sim", "--no-report", *with_probe(words), "--", *target)
        settings = {"stdin": subprocess.DEVNULL} | options
        return subprocess.Popen(command, **self._surroundings(), **settings)

    def _surroundings(self) -> dict[str, Any]:
        return {"cwd": self.folder, "env": self.environment, "start_new_session": True}


@pytest.fixture
def tool(tmp_path: Path, fake_native: Path) -> Runner:
    """``tui-probe`` under the fake hook, in an empty folder."""
    environment = {name: value for name, value in os.environ.items() if not name.startswith("TUI_PROBE_")}
    path = f"{ROOT}:{environment.get('PYTHONPATH', '')}".rstrip(":")
    own = {"TUI_PROBE_NATIVE": str(fake_native), "TUI_PROBE_LOADING": "preload", "PYTHONPATH": path}
    return Runner(tmp_path, environment | own)


@pytest.fixture
def script(tmp_path: Path) -> Callable[[str], list[str]]:
    """Writes a Python program and returns the command that runs it."""

    def write(source: str) -> list[str]:
        path = tmp_path / "target.py"
        path.write_text(source)
        return [sys.executable, str(path)]

    return write
