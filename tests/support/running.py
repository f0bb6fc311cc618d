"""Run a program of the matrix by itself and under tui-probe, and compare."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
import time
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

from tests.support.catalogue import Program

ROOT: Final = Path(__file__).resolve().parents[2]
PROBED: Final = ("--machine-code", "all", "--tensors", "--wait", "--no-report")
"""Options of ``run``: the default probes, in all kernels, also in those that are launched once."""
_PROBLEM_CHARS: Final = 160
_EXCEPTION: Final = re.compile(r"[\w.]+(Error|Exception)\b")
_VARIABLE: Final = 5
"""Field of a line of ``tensor.trace``: the name."""
_FACTS = """
import importlib.metadata as m, importlib.util as u, json, sys
modules, packages = json.loads(sys.argv[1])
def known(name):
    try: return u.find_spec(name) is not None
    except ImportError: return False
def version(name):
    try: return m.version(name)
    except m.PackageNotFoundError: return None
print(json.dumps([[n for n in modules if not known(n)], {n: v for n in packages if (v := version(n))}]))
"""


@dataclass
class Record:
    """Outcome of a program; None where it was not measured.

    ``outcome``: ``unharmed`` (same output and exit status under tui-probe), ``harmed``, ``failed`` (already without
    tui-probe), ``not run``.
    """

    program: str
    outcome: str
    problem: str = ""
    versions: dict[str, str] = field(default_factory=dict)
    hardware: str | None = None
    date: str | None = None
    kernels: int | None = None
    ptx: int | None = None
    sass: int | None = None
    source_files: int | None = None
    tensors: int | None = None
    seconds: list[float] | None = None
    unprobed: dict[str, int] | None = None
    """Kernels without a probe by reason."""
    waits: bool = False
    """True if launches waited until their kernel was prepared (``--wait``)."""


@dataclass(frozen=True)
class Machine:
    """Interpreters that programs may use, and the GPU: None is the simulated one."""

    pythons: tuple[str, ...]
    gpu: str | None
    folder: Path
    limit: float
    """Seconds of each run of a program."""


def missing(program: Program, python: str) -> tuple[str, dict[str, str]]:
    """Return what an interpreter or this machine lacks for a program, "" if nothing, and versions of its packages."""
    if program.tool and not shutil.which(program.tool):
        return f"no {program.tool}", {}
    if program.variable and program.variable not in os.environ:
        return f"{program.variable} is not set", {}
    asked = json.dumps([program.modules, program.packages])
    done = subprocess.run([python, "-c", _FACTS, asked], capture_output=True, text=True, timeout=60, check=False)
    if done.returncode:
        return f"{python} does not start", {}
    lacking, versions = json.loads(done.stdout)
    return (f"no module {', '.join(lacking)}" if lacking else ""), versions


def run_program(program: Program, machine: Machine) -> Record:
    """Run it by itself, under tui-probe, and compare output and exit status."""
    if machine.gpu is None and not program.simulated:
        return Record(program.name, "not run", "needs a GPU")
    for python in machine.pythons:
        problem, versions = missing(program, python)
        if not problem:
            break
    else:
        return Record(program.name, "not run", problem)
    record = Record(program.name, "failed", "", versions, machine.gpu or "Simulated GPU", time.strftime("%Y-%m-%d"))
    if program.tool == "nvcc":
        record.versions["nvcc"] = nvcc_version()
    plain_command = launched([python, str(program.path)], machine, "plain", "--after", "9999h")
    timed(plain_command, machine)  # compilers fill their caches and print what they compile
    plain, first_seconds = timed(plain_command, machine)
    if plain is None or plain.returncode:
        record.problem = problem_of(plain)
        return record
    traces, record.waits = machine.folder / program.name, "--wait" in PROBED
    probed, second_seconds = timed(
        [*tool("run", machine), *PROBED, "--tracedir", str(traces), "--", python, str(program.path)], machine
    )
    record.seconds = [round(first_seconds, 1), round(second_seconds, 1)]
    same = probed is not None and (probed.stdout, probed.returncode) == (plain.stdout, plain.returncode)
    record.outcome, record.problem = ("unharmed", "") if same else ("harmed", problem_of(probed))
    count_kernels(record, traces)
    return record


def launched(command: list[str], machine: Machine, name: str, *options: str) -> list[str]:
    """Return the command that runs a program without probes: itself, or under the simulated driver."""
    if machine.gpu is not None:
        return command
    where = ["--no-report", "--tracedir", str(machine.folder / name)]
    return [*tool("run", machine), *options, *where, "--", *command]


def tool(name: str, machine: Machine) -> list[str]:
    simulated = ["--sim"] if machine.gpu is None and name == "run" else []
    return [sys.executable, "-m", "tui_probe", name, *simulated]


def timed(command: list[str], machine: Machine) -> tuple[subprocess.CompletedProcess[str] | None, float]:
    """Return how a command ended, None if it took too long, and its seconds."""
    begin = time.monotonic()
    environment = os.environ | {"PYTHONPATH": _search_path(), "PYTHONDONTWRITEBYTECODE": "1"}
    try:
        done = subprocess.run(command, env=environment, stdin=subprocess.DEVNULL, capture_output=True, text=True,
                              timeout=machine.limit, check=False)  # fmt: skip
    except subprocess.TimeoutExpired:
        done = None
    return done, time.monotonic() - begin


def _search_path() -> str:
    """Return this checkout, and what the caller's PYTHONPATH has: packages of the programs."""
    return os.pathsep.join([str(ROOT), *filter(None, [os.environ.get("PYTHONPATH")])])


def problem_of(done: subprocess.CompletedProcess[str] | None) -> str:
    """Return the last line of stderr that names an exception, else the last one."""
    if done is None:
        return "took too long"
    lines = [line.strip() for line in done.stderr.splitlines() if line.strip() and not line.startswith("[info]")]
    errors = [line for line in lines if _EXCEPTION.match(line)]
    return ([*lines, *errors][-1] if lines else f"exit status {done.returncode}, other output")[:_PROBLEM_CHARS]


def count_kernels(record: Record, traces: Path) -> None:
    """Add what the traces of a program say of its kernels."""
    logs = sorted(traces.glob("*/event.log"))
    if not logs:
        return
    reports = [report_of(log.parent) for log in logs]
    kernels = [kernel for report in reports for kernel in report["kernels"]]
    probed = [kernel["way"] for kernel in kernels if kernel["status"] == "probed"]
    reasons = [kernel["reason"] or kernel["status"] for kernel in kernels if kernel["status"] != "probed"]
    record.kernels, record.ptx, record.sass = len(kernels), probed.count("ptx"), probed.count("graft")
    record.source_files = len({name for report in reports for name in report["run"]["sources"]})
    record.tensors = len({name for log in logs for name in tensor_names(log.with_name("tensor.trace"))})
    record.unprobed = {reason: reasons.count(reason) for reason in sorted(set(reasons))}


def report_of(trace: Path) -> dict[str, Any]:
    """Return the JSON report of a trace."""
    command = [sys.executable, "-m", "tui_probe", "report", str(trace), "--format", "json"]
    environment = os.environ | {"PYTHONPATH": _search_path()}
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=True, timeout=120)
    report: dict[str, Any] = json.loads(done.stdout)
    return report


def tensor_names(path: Path) -> list[str]:
    """Return the names of the tensors that a trace knows."""
    if not path.is_file():
        return []
    lines = path.read_text(encoding="utf-8", errors="replace").splitlines()
    calls = [line.split("  ") for line in lines if line.startswith("[call]")]
    return [fields[_VARIABLE] for fields in calls if len(fields) > _VARIABLE]


def nvcc_version() -> str:
    done = subprocess.run(["nvcc", "--version"], capture_output=True, text=True, check=False)
    match = re.search(r"release [\d.]+, V([\d.]+)", done.stdout)
    return match[1] if match else ""


def gpu_of_machine() -> str | None:
    """Return name and driver of the GPU, None without one."""
    if not shutil.which("nvidia-smi"):
        return None
    command = ["nvidia-smi", "--query-gpu=name,driver_version", "--format=csv,noheader"]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    name, _, driver = done.stdout.partition("\n")[0].partition(", ")
    return f"{name}, driver {driver}" if done.returncode == 0 and driver else None
