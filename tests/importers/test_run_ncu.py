"""``tui-probe run --ncu`` with a script instead of ncu."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.importers.files import REAL
from tests.patience import HANG
from tui_probe.errors import LaunchError
from tui_probe.launcher.ncu import find_ncu, needs_root

ROOT = Path(__file__).resolve().parents[2]
FAKE = """\
#!{python}
import json, os, subprocess, sys
arguments = sys.argv[1:]
log = arguments[arguments.index("--log-file") + 1]
options, command = arguments[: arguments.index("--metrics") + 2], arguments[arguments.index("--metrics") + 2 :]
status = subprocess.call(command)
table = open({table!r}, encoding="utf-8").read() if {table!r} else "==ERROR== ERR_NVGPUCTRPERM\\n"
open(log, "w", encoding="utf-8").write(table)
json.dump({{"options": options, "command": command}}, open({received!r}, "w"))
sys.exit(status)
"""


def fake_ncu(folder: Path, table: Path | None) -> Path:
    """A program named ncu that runs the command, writes a table, and notes its arguments."""
    tools = folder / "tools"
    tools.mkdir()
    program = tools / "ncu"
    received = str(folder / "received.json")
    program.write_text(FAKE.format(python=sys.executable, table=str(table or ""), received=received))
    program.chmod(0o755)
    return tools


def run(folder: Path, tools: Path | None, *words: str) -> subprocess.CompletedProcess[str]:
    path = os.environ["PATH"] if tools is None else f"{tools}:{os.environ['PATH']}"
    return subprocess.run(
        [sys.executable, "-m", "tui_probe", "run", *words],
        cwd=folder,
        env=os.environ | {"PATH": path, "PYTHONPATH": str(ROOT), "COLUMNS": "100", "CUDA_HOME": ""},
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=HANG,
    )


def test_ncu_output_is_imported(tmp_path: Path) -> None:
    tools = fake_ncu(tmp_path, REAL / "ncu" / "vec_metrics.csv")
    result = run(tmp_path, tools, "--ncu", "--", sys.executable, "-c", "print('own output'); raise SystemExit(7)")
    assert result.returncode == 7
    assert result.stdout.startswith("own output\n\nfiles")
    assert "3 iterations found" in result.stdout
    received = json.loads((tmp_path / "received.json").read_text())
    assert received["command"][0] == sys.executable
    (log,) = (tmp_path / "trace").iterdir()
    assert received["options"] == [
        "--csv", "--log-file", str(log), "--target-processes", "all", "--metrics",
        "dram__bytes.sum,lts__t_bytes.sum,l1tex__t_bytes.sum,gpu__time_duration.sum",
    ]  # fmt: skip
    assert log.read_text() == (REAL / "ncu" / "vec_metrics.csv").read_text()
    assert f"[info] ncu writes {log}" in result.stderr


def test_metrics_of_the_user(tmp_path: Path) -> None:
    tools = fake_ncu(tmp_path, REAL / "ncu" / "vec_metrics.csv")
    result = run(tmp_path, tools, "--ncu=a__b.sum, c__d.sum", "true")
    assert result.returncode == 0
    assert json.loads((tmp_path / "received.json").read_text())["options"][-1] == "a__b.sum,c__d.sum"
    assert "l1tex__t_" in result.stdout


def test_only_the_part_between_start_and_stop(tmp_path: Path) -> None:
    tools = fake_ncu(tmp_path, REAL / "ncu" / "vec_metrics.csv")
    assert run(tmp_path, tools, "--ncu=a__b.sum", "--capture-range", "--", "true").returncode == 0
    received = json.loads((tmp_path / "received.json").read_text())
    assert received["options"][5:7] == ["--profile-from-start", "off"]
    assert received["command"] == ["true"]


def test_no_permission_is_explained_and_the_status_stays(tmp_path: Path) -> None:
    result = run(tmp_path, fake_ncu(tmp_path, None), "--ncu", "--", "sh", "-c", "exit 3")
    assert (result.returncode, result.stdout) == (3, "")
    assert "ERR_NVGPUCTRPERM" in result.stderr
    assert "Probes count requests, sectors, bytes and tensor operations without this permission" in result.stderr


def test_no_report(tmp_path: Path) -> None:
    tools = fake_ncu(tmp_path, REAL / "ncu" / "vec_metrics.csv")
    result = run(tmp_path, tools, "--ncu", "--no-report", "--", "echo", "hello")
    assert (result.returncode, result.stdout) == (0, "hello\n")


def test_options_of_the_hook_are_refused(tmp_path: Path) -> None:
    result = run(tmp_path, None, "--ncu", "--sim", "--benchmark", "true")
    assert result.returncode == 2
    assert "omit --benchmark, --sim" in result.stderr


def test_a_command_that_is_not_there(tmp_path: Path) -> None:
    tools = fake_ncu(tmp_path, REAL / "ncu" / "vec_metrics.csv")
    result = run(tmp_path, tools, "--ncu", "--", "no-such-command")
    assert result.returncode == 127
    assert not (tmp_path / "received.json").exists()


def test_ncu_search_path(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tui_probe.launcher.ncu._PLACES", (str(tmp_path / "nsight"),))
    with pytest.raises(LaunchError, match="install Nsight Compute"):
        find_ncu({"PATH": str(tmp_path)})
    for version in ("2024.3", "2025.1"):
        place = tmp_path / "nsight" / version
        place.mkdir(parents=True)
        (place / "ncu").write_text("#!/bin/sh\n")
        (place / "ncu").chmod(0o755)
    assert find_ncu({"PATH": str(tmp_path)}) == str(tmp_path / "nsight" / "2025.1" / "ncu")
    home = tmp_path / "cuda" / "bin"
    home.mkdir(parents=True)
    (home / "ncu").write_text("#!/bin/sh\n")
    (home / "ncu").chmod(0o755)
    assert find_ncu({"PATH": str(tmp_path), "CUDA_HOME": str(home.parent)}) == str(home / "ncu")


@pytest.mark.parametrize(("text", "user", "needed"), [("RmProfilingAdminOnly: 1\n", 1000, True),
                                                      ("RmProfilingAdminOnly: 1\n", 0, False),
                                                      ("RmProfilingAdminOnly: 0\n", 1000, False)])  # fmt: skip
def test_who_may_read_counters(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, text: str, user: int, needed: bool
) -> None:
    settings = tmp_path / "params"
    settings.write_text(text)
    monkeypatch.setattr(os, "geteuid", lambda: user)
    assert needs_root(settings) is needed
    assert not needs_root(tmp_path / "missing")


def test_a_command_right_after_the_option_is_not_taken_for_metrics(tmp_path: Path) -> None:
    result = run(tmp_path, None, "--ncu", "python", "program.py")
    assert result.returncode == 2
    assert "or only --ncu -- COMMAND" in result.stderr
