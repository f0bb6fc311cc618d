"""Programs that do what few programs do, each built from one file and run under the hook."""

from __future__ import annotations

import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.hook.conftest import Build, Host, compile_c
from tests.hook.conftest import built as built
from tests.hook.conftest import engine as engine
from tests.hook.conftest import host as host

HERE = Path(__file__).resolve().parent


@pytest.fixture
def slow_disk(built: Build, tmp_path: Path) -> str:
    """Library to preload for a disk that takes SLOW_DISK milliseconds per write into a result."""
    library = tmp_path / "slow_disk.so"
    compile_c(HERE.parent / "hook" / "slow_disk.c", library, "-shared")
    return f"{library} {built.hook}"


Start = Callable[..., "subprocess.Popen[str]"]


@pytest.fixture
def start(host: Host, built: Build, tmp_path: Path) -> Start:
    """``start("file_limit", "argument", STUB_SLOW="5")`` builds the program and starts it under the hook."""

    def begin(name: str, *arguments: str, **environment: str) -> subprocess.Popen[str]:
        program = tmp_path / name
        if not program.exists():
            compile_c(HERE / f"{name}.c", program, str(built.hook), "-rdynamic")
        # the stub driver's own log is a file that the program has not opened either
        return host.start(
            [str(program), *arguments],
            **{"LD_LIBRARY_PATH": str(built.hook.parent), "STUB_LOG": "", **environment},
        )

    return begin
