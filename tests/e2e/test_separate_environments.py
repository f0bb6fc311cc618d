"""The environment of the program and that of tui-probe: neither one's packages are found by the other."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.patience import HANG
from tui_probe.launcher.environment import SHIM_DIRECTORY, START_DIRECTORY
from tui_probe.trace.follow import open_trace

from .conftest import RUN, Tool

PROGRAM = Path(__file__).resolve().parent / "programs" / "own_packages.py"
CONFLICTING = ("numpy", "rich", "textual")
OWN_VERSION = "0.0.1"


@pytest.fixture
def environment(tmp_path: Path) -> Path:
    """A virtual environment with useless packages of the names of those that tui-probe imports."""
    folder = tmp_path / "environment"
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", "--symlinks", folder], check=True)
    (site,) = folder.glob("lib/python3*/site-packages")
    for name in CONFLICTING:
        (site / f"{name}.py").write_text(f"__version__ = {OWN_VERSION!r}\n")
    return folder


def test_program_and_tool_use_packages_of_their_own_environments(tool: Tool, environment: Path) -> None:
    """PYTHONPATH has the conflicting packages, too: the program finds them there, tui-probe does not."""
    (site,) = environment.glob("lib/python3*/site-packages")
    python = str(environment / "bin" / "python")
    variables = {name: value for name, value in os.environ.items() if not name.startswith("TUI_PROBE_")}
    given = {"PYTHONPATH": str(site), "TUI_PROBE_NATIVE": str(tool.natives)}
    command = [*RUN, "--no-report", "--", python, str(PROGRAM)]
    result = subprocess.run(
        command, cwd=tool.folder, env=variables | given, capture_output=True, text=True, timeout=HANG
    )
    assert result.returncode == 0, result.stderr

    printed = json.loads(result.stdout)
    plain = subprocess.run([python, "-c", "import json, sys; print(json.dumps(sys.path))"], env=variables | given,
                           capture_output=True, text=True, check=True)  # fmt: skip
    added = set(printed["path"]) - set(json.loads(plain.stdout)) - {str(PROGRAM.parent)}
    assert added <= {START_DIRECTORY, SHIM_DIRECTORY}
    assert printed["versions"] == [OWN_VERSION] * len(CONFLICTING)
    assert printed["ours"] == []
    assert printed["stored"] == 7
    trace = open_trace(tool.folder / result.stderr.split("\n")[0].strip().split(" ")[-1])
    assert [(kernel.name, kernel.status) for kernel in trace.kernels] == [("store", "probed")]
