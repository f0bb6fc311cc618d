"""The libraries whose programs run on the simulated GPU, each in an environment of its own."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

from tui_probe.launcher.driver import native_library

FOLDER = Path(__file__).parent
NO_CURAND = "CUDA_ENABLE_CURAND = False\n"
"""PyCUDA's own settings: what it needs to be built without a library that a toolkit may lack."""


@dataclass(frozen=True)
class Suite:
    """The programs of a library: its packages, whose versions are printed, and the simulated GPUs for which they run."""

    name: str
    packages: tuple[str, ...]
    architectures: tuple[str, ...] = ("sm_80",)
    variables: tuple[tuple[str, str], ...] = ()

    @property
    def program(self) -> Path:
        return FOLDER / "programs" / f"{self.name}_cases.py"

    @property
    def requirements(self) -> list[str]:
        """Requirements that pip installs, a line each, with versions."""
        return (FOLDER / "requirements" / f"{self.name}.txt").read_text().split()

    def cases(self) -> list[str]:
        """The names of its cases, in order."""
        return re.findall(r"^@case\ndef (\w+)", self.program.read_text(), re.MULTILINE)


SUITES = (
    Suite("triton", ("triton",), ("sm_80", "sm_90"), (("TRITON_DEFAULT_FP_FUSION", "1"),)),
    Suite("numba", ("numba-cuda", "numba"), variables=(("NUMBA_CUDA_LOW_OCCUPANCY_WARNINGS", "0"),)),
    Suite("pycuda", ("pycuda",)),
    Suite("cuda_python", ("cuda-bindings", "cuda-core")),
    Suite("tinygrad", ("tinygrad",)),
    Suite("drjit", ("drjit",)),
    Suite("taichi", ("taichi",)),
)


def environment_of(suite: Suite, folder: Path, newest: bool = False) -> Path:
    """The Python of a virtual environment with what the suite needs, made anew where its requirements changed.

    With ``newest`` pip takes the newest versions it finds. Raises CalledProcessError where it cannot install them.
    """
    place = folder / (f"{suite.name}-newest" if newest else suite.name)
    python, complete = place / "bin" / "python", place / "complete"
    wanted = [requirement.partition("==")[0] for requirement in suite.requirements] if newest else suite.requirements
    if not complete.exists() or complete.read_text().split() != wanted:
        # Our pip installs there: to install another one, and to compile all modules, takes longer than the rest.
        subprocess.run([sys.executable, "-m", "venv", "--clear", "--without-pip", str(place)], check=True)
        pip = [sys.executable, "-m", "pip", "--python", str(python)]
        command = [*pip, "install", "-q", "--no-compile", "--no-cache-dir", *wanted]
        subprocess.run(command, check=True, env=build_variables(suite, folder), stdout=sys.stderr)
        complete.write_text("\n".join(wanted))
    return python


def build_variables(suite: Suite, folder: Path) -> dict[str, str]:
    """The environment of pip. PyCUDA is built: with the toolkit's headers, and a libcuda.so where there is no driver."""
    if suite.name != "pycuda":
        return dict(os.environ)
    (folder / ".aksetup-defaults.py").write_text(NO_CURAND)
    linked = folder / "link" / "libcuda.so"  # that next to the hook is for dlopen and exports nothing to link with
    linked.parent.mkdir(exist_ok=True)
    if not linked.is_symlink():
        linked.symlink_to(native_library("hook"))
    toolkit = os.environ.get("CUDA_HOME", "/usr/local/cuda")
    return os.environ | {
        "HOME": str(folder),
        "CPATH": f"{toolkit}/include",
        "LDFLAGS": f"-L{linked.parent}",
    }


def versions_of(suite: Suite, python: Path) -> dict[str, str]:
    """The versions that are installed, by the names of packages."""
    script = f"import importlib.metadata as m, json; print(json.dumps({{n: m.version(n) for n in {suite.packages!r}}}))"
    done = subprocess.run([str(python), "-c", script], check=True, capture_output=True, text=True)
    versions: dict[str, str] = json.loads(done.stdout)
    return versions
