"""Real programs on the simulated GPU, each kind in a fresh environment: ``python -m tests.real_programs.run``.

Makes a virtual environment per library (in ``--folder``, which is kept and used again), installs the newest version
that pip finds, runs the programs of ``programs/`` under ``tui-probe run --sim``, and prints a table with versions. Each
case compares with NumPy. ``--only triton`` runs one of them. Needs the network, and nvcc with g++ for PyCUDA.
"""

from __future__ import annotations

import argparse
import json
import os
import re
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

from tui_probe.launcher.natives import native_library

PROGRAMS = Path(__file__).with_name("programs")
LIMIT = 900  # seconds for the cases of one library
NO_CURAND = "CUDA_ENABLE_CURAND = False\n"
"""PyCUDA's own settings: what it needs to be built without a library that a toolkit may lack."""


@dataclass(frozen=True)
class Suite:
    """The programs of a library: what pip installs for them, and whose versions are told."""

    name: str
    requirements: tuple[str, ...]
    told: tuple[str, ...]
    variables: tuple[tuple[str, str], ...] = ()


SUITES = (
    Suite("triton", ("triton", "numpy"), ("triton",), (("TRITON_DEFAULT_FP_FUSION", "1"),)),
    Suite("numba", ("numba-cuda[cu13]",), ("numba-cuda", "numba"), (("NUMBA_CUDA_LOW_OCCUPANCY_WARNINGS", "0"),)),
    Suite("pycuda", ("pycuda", "numpy"), ("pycuda",)),
    Suite("cuda_python", ("cuda-bindings", "cuda-core[cu13]", "numpy"), ("cuda-bindings", "cuda-core")),
    Suite("tinygrad", ("tinygrad", "numpy", "nvidia-cuda-nvrtc"), ("tinygrad",)),
)


@dataclass(frozen=True)
class Outcome:
    """How the cases of a suite went, by their lines."""

    suite: Suite
    versions: str
    right: int
    wrong: tuple[str, ...]

    @property
    def is_right(self) -> bool:
        return self.right > 0 and not self.wrong


def environment_of(suite: Suite, folder: Path) -> Path:
    """The Python of a virtual environment with what the suite needs, made where it is not there."""
    place = folder / suite.name
    python = place / "bin" / "python"
    if not (place / "complete").exists():
        subprocess.run([sys.executable, "-m", "venv", "--clear", str(place)], check=True)
        (folder / ".aksetup-defaults.py").write_text(NO_CURAND)
        link = f"-L{native_library('hook').parent}"  # a libcuda.so to link with, where there is no driver
        variables = os.environ | {"HOME": str(folder), "LDFLAGS": link} if suite.name == "pycuda" else os.environ
        command = [str(python), "-m", "pip", "install", "-q", "--no-cache-dir", *suite.requirements]
        subprocess.run(command, check=True, env=variables)
        (place / "complete").touch()
    return python


def versions_of(suite: Suite, python: Path) -> str:
    """``numba-cuda 0.30.4, numba 0.68.1``, as installed."""
    script = f"import importlib.metadata as m, json; print(json.dumps([m.version(n) for n in {suite.told!r}]))"
    told = json.loads(subprocess.run([str(python), "-c", script], check=True, capture_output=True, text=True).stdout)
    return ", ".join(f"{name} {version}" for name, version in zip(suite.told, told, strict=True))


def run_suite(suite: Suite, python: Path, folder: Path) -> Outcome:
    """Run its cases under the tool. A case without a line of its own was not right."""
    program = PROGRAMS / f"{suite.name}_cases.py"
    tool = [sys.executable, "-m", "tui_probe", "run", "--sim", "--no-report", "--tracedir", str(folder / "traces")]
    variables = os.environ | dict(suite.variables)
    done = subprocess.run(
        [*tool, "--", str(python), str(program)], env=variables, capture_output=True, text=True, timeout=LIMIT
    )
    (folder / f"{suite.name}.log").write_text(done.stdout + done.stderr)
    right = set(re.findall(r"^(\w+) ok$", done.stdout, re.MULTILINE))
    cases = re.findall(r"^@case\ndef (\w+)", program.read_text(), re.MULTILINE)
    return Outcome(suite, versions_of(suite, python), len(right), tuple(case for case in cases if case not in right))


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--folder", type=Path, default=Path("real-programs"), help="where environments and logs are")
    parser.add_argument("--only", choices=[suite.name for suite in SUITES], action="append")
    arguments = parser.parse_args()
    folder = arguments.folder.absolute()
    folder.mkdir(parents=True, exist_ok=True)
    print("| Library | Right | Wrong |\n|---|--:|---|")
    all_right = True
    for suite in SUITES:
        if arguments.only and suite.name not in arguments.only:
            continue
        outcome = run_suite(suite, environment_of(suite, folder), folder)
        all_right &= outcome.is_right
        print(f"| {outcome.versions} | {outcome.right} | {', '.join(outcome.wrong) or '–'} |", flush=True)
    return 0 if all_right else 1


if __name__ == "__main__":
    sys.exit(main())
