"""CUDA tools of this machine: paths, versions, supported architectures, and disassembly by nvdisasm."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
from functools import lru_cache
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Final, NamedTuple

from tui_probe.errors import ToolchainError

if TYPE_CHECKING:
    from collections.abc import Iterator

PTXAS_HINT: Final = "install the Python package nvidia-cuda-nvcc, or set CUDA_HOME to a CUDA toolkit"

_RELEASE: Final = re.compile(r"release (\d+)\.(\d+)(?:, V([\d.]+))?")
_ARCHITECTURE: Final = re.compile(r"'sm_(\d+)[af]?'")
_VERSION_SECONDS: Final = 2
"""A tool prints its version in hundredths of a second; one that hangs delays the search for tools once."""
_silent_tools: Final[set[Path]] = set()
NVDISASM_HINT: Final = "install the wheel nvidia-cuda-nvdisasm, or set CUDA_HOME to a CUDA toolkit"
_DISASSEMBLY_SECONDS: Final = 120


class Tool(NamedTuple):
    """A program of a CUDA release. ``release`` is (13, 0); ``version`` the full number, 13.0.88."""

    path: Path
    release: tuple[int, int]
    version: str


def find_tools(name: str = "ptxas") -> list[Tool]:
    """All tools of that name on this machine that run, newest first; one of each version."""
    by_version: dict[str, Tool] = {}
    for path in candidate_paths(name):
        tool = _tool_at(path)
        if tool is not None:
            by_version.setdefault(tool.version, tool)
    return sorted(by_version.values(), key=lambda tool: [int(part) for part in tool.version.split(".")], reverse=True)


@lru_cache
def tool_architectures(ptxas: Tool) -> frozenset[int]:
    """Architectures that a ptxas assembles for (90); empty if it does not say."""
    try:
        result = subprocess.run(
            [ptxas.path, "--help"], capture_output=True, text=True, timeout=_VERSION_SECONDS, check=True
        )
    except (OSError, subprocess.SubprocessError):
        return frozenset()
    _, _, option_text = result.stdout.partition("--gpu-name")
    return frozenset(int(number) for number in _ARCHITECTURE.findall(option_text))


def candidate_paths(name: str) -> Iterator[Path]:
    """Yield the paths at which a tool may be: CUDA_HOME, PATH, /usr/local, an installed Triton, NVIDIA's wheels."""
    for variable in ("CUDA_HOME", "CUDA_PATH"):
        if home := os.environ.get(variable):
            yield Path(home) / "bin" / name
    if path := shutil.which(name):
        yield Path(path)
    yield Path("/usr/local/cuda/bin") / name
    yield from Path("/usr/local").glob(f"cuda-*/bin/{name}")
    for folder in _package_directories("triton"):
        yield folder / "backends" / "nvidia" / "bin" / name
    for folder in _package_directories("nvidia"):
        yield from folder.glob(f"*/bin/{name}")


def silent_tools(name: str = "ptxas") -> list[Path]:
    """Tools that ``find_tools`` excluded because they did not answer when they were asked for their version."""
    return sorted(path for path in _silent_tools if path.name == name)


def _package_directories(package: str) -> list[Path]:
    """Return the directory of a Python package, without importing it."""
    spec = find_spec(package)
    return [Path(folder) for folder in (spec.submodule_search_locations or ())] if spec else []


def _tool_at(path: Path) -> Tool | None:
    """The tool at a path with its version, or None if there is none that runs."""
    try:
        return _ask_version(path, path.stat().st_mtime_ns)
    except OSError:
        return None


@lru_cache
def _ask_version(path: Path, _modified: int) -> Tool | None:
    """Ask a tool for its version; remembered until the file changes."""
    try:
        result = subprocess.run(
            [path, "--version"], capture_output=True, text=True, timeout=_VERSION_SECONDS, check=True
        )
    except subprocess.TimeoutExpired:
        _silent_tools.add(path)
        return None
    except (OSError, subprocess.SubprocessError):
        return None
    match = _RELEASE.search(result.stdout)
    if match is None:
        return None
    release = int(match[1]), int(match[2])
    return Tool(path, release, match[3] or f"{match[1]}.{match[2]}")


def find_disassembler() -> Tool | None:
    """The newest nvdisasm, None if there is none."""
    return next(iter(find_tools("nvdisasm")), None)


def disassemble(tool: Tool, cubin: Path, symbol: int | None = None) -> str:
    """The code sections of a cubin, with the source lines that it carries. Raises ToolchainError.

    With ``symbol``, the index of a function's symbol, the section with that function only: of a cubin with hundreds of
    kernels nothing else is read.
    """
    selection = [] if symbol is None else ["-fun", str(symbol)]
    command = [str(tool.path), "-c", "-g", *selection, str(cubin)]
    try:
        result = subprocess.run(command, capture_output=True, timeout=_DISASSEMBLY_SECONDS, check=False)
    except (OSError, subprocess.SubprocessError) as error:
        raise ToolchainError(f"{tool.path}: {error}") from error
    if result.returncode:
        message = result.stderr.decode("utf-8", "replace").strip().partition("\n")[0]
        raise ToolchainError(f"{tool.path.name} {tool.version} cannot read {cubin}: {message}")
    return result.stdout.decode("utf-8", "replace")
