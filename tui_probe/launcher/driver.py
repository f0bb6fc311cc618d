"""CUDA driver of a run, and the package's own shared libraries, or why an installation has none."""

from __future__ import annotations

import os
import re
import subprocess
from pathlib import Path
from typing import TYPE_CHECKING, Final, Literal, NamedTuple

from tui_probe.errors import LaunchError, NoDriverError
from tui_probe.version import __version__, package_folders

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

PROCESSORS: Final = ("x86_64", "aarch64")
MIN_GLIBC: Final = (2, 17)
"""Version in the names of the wheels that ``.ci/wheels`` builds."""
VIEWER_COMMANDS: Final = "open, show, report, compare, import and eval work without the hook driver"
LIBRARY: Final = "libcuda.so.1"
REINSTALL: Final = "reinstall tui-probe: pip install --force-reinstall tui-probe, or in a clone: pip install ."
ELF_MACHINE: Final = {"x86_64": 62, "aarch64": 183}
"""``e_machine`` of ELF headers, by the name of the processor in ``uname``."""
USUAL_FOLDERS: Final = (
    "/usr/lib/x86_64-linux-gnu",
    "/usr/lib/aarch64-linux-gnu",
    "/usr/lib64",
    "/usr/lib",
    "/usr/lib/wsl/lib",
    "/usr/local/nvidia/lib64",
    "/run/opengl-driver/lib",
)
_SOURCES_RECORD: Final = "sources.sha256"
"""Written by the build, next to the libraries."""
_SOURCE_FOLDERS: Final = ("audit", "by_name", "simgpu", "src")
_OTHER_SOURCES: Final = ("CMakeLists.txt", "symbols.txt", "trampolines.cmake", "../tui_probe/reasons/reasons.def")
OWN_LIBRARY_LIMIT: Final = 8 << 20
"""Bytes. Larger files are not searched for our own marks: the real driver has tens of MB, our libraries below 1 MB."""


def require_hook() -> None:
    """Raise LaunchError with what to install if this is the viewer wheel. ``TUI_PROBE_NATIVE`` replaces C parts."""
    if os.environ.get("TUI_PROBE_NATIVE") or any((folder / "_native").is_dir() for folder in package_folders()):
        return
    raise LaunchError(f"this is the viewer wheel, which has no hook driver: {_obstacle()}; {VIEWER_COMMANDS}")


def _obstacle() -> str:
    import platform  # the command line imports this module for each command

    system, machine = platform.system(), platform.machine()
    min_glibc = ".".join(map(str, MIN_GLIBC))
    if system != "Linux":
        return f"programs can be profiled on Linux only, not on {system}"
    if machine not in PROCESSORS:
        return f"tui-probe can profile programs on x86-64 and aarch64 only, not on {machine}"
    glibc = glibc_version()
    if glibc is None:
        return f"tui-probe run needs glibc {min_glibc} or later, and this system has another C library"
    if glibc < MIN_GLIBC:
        return f"tui-probe run needs glibc {min_glibc} or later, and this system has {'.'.join(map(str, glibc))}"
    wheel = f"tui_probe-{__version__}-py3-none-manylinux_2_17_{machine}.whl"
    return f"install {wheel} with pip install --force-reinstall"


def glibc_version() -> tuple[int, int] | None:
    """Return the version of the C library of this process; None if it is not glibc."""
    try:
        text = os.confstr("CS_GNU_LIBC_VERSION") or ""
    except (AttributeError, OSError, ValueError):  # another system; a C library that has no such value
        return None
    match = re.fullmatch(r"glibc (\d+)\.(\d+)\b.*", text)
    return None if match is None else (int(match[1]), int(match[2]))


def native_library(kind: Literal["hook", "sim"]) -> Path:
    """The absolute path of the hook driver or of the simulated driver.

    ``TUI_PROBE_NATIVE`` names another directory with ``hook/`` and ``sim/`` (a source checkout's build).
    Raises LaunchError where the library is missing, or all of them, as in the viewer wheel.
    """
    native_folder = os.environ.get("TUI_PROBE_NATIVE")
    folders = [Path(native_folder)] if native_folder else [folder / "_native" for folder in package_folders()]
    paths = [(folder / kind / LIBRARY).absolute() for folder in folders]
    for path in paths:
        if path.is_file():
            return path
    library_name = "hook driver" if kind == "hook" else "simulated driver"
    require_hook()
    advice = "build it there (cmake -S hook)" if native_folder else REINSTALL
    raise LaunchError(f"the {library_name} is missing; expected at {' or '.join(map(str, paths))}; {advice}")


def outdated_build() -> tuple[str, str] | None:
    """Return that the C parts of an editable install were built from other sources, and the fix; None if they were not.

    Other installs cost one look for a file. An editable one reads its sources only if one is newer than the build.
    """
    folders = package_folders()
    checkout = next(
        (folder.parent for folder in folders if (folder.parent / "hook" / "CMakeLists.txt").is_file()), None
    )
    if checkout is None or os.environ.get("TUI_PROBE_NATIVE"):
        return None
    try:
        sources = _native_sources(checkout / "hook")
        record = next((path for folder in folders if (path := folder / "_native" / _SOURCES_RECORD).is_file()), None)
        if record is not None:
            is_newer = max(os.stat(path).st_mtime for path in sources.values()) > record.stat().st_mtime  # noqa: PTH116 - fast
            if not is_newer or record.read_text().strip() == _digest(sources):
                return None
    except OSError:
        return None
    problem = f"the hook driver was not built from the current sources in {checkout}/hook"
    return problem, f"rebuild it: pip install -e {checkout}"


def _native_sources(hook: Path) -> dict[str, str]:
    """Paths of the files that ``hook/CMakeLists.txt`` compares, by their names there, in order."""
    start = len(f"{hook}/")
    walks = (os.walk(hook / name) for name in _SOURCE_FOLDERS)
    paths = [f"{folder}/{name}" for walk in walks for folder, _, names in walk for name in names]
    return dict(sorted((path[start:], path) for path in [*paths, *(f"{hook}/{name}" for name in _OTHER_SOURCES)]))


def _digest(sources: Mapping[str, str]) -> str:
    import hashlib  # only for sources that are newer than the build

    lines = (f"{hashlib.sha256(Path(path).read_bytes()).hexdigest()}  {name}\n" for name, path in sources.items())
    return hashlib.sha256("".join(lines).encode()).hexdigest()


def package_path() -> str:
    """Return the value of PYTHONPATH with which a fresh Python imports this package, entries joined by ":"."""
    folders = [folder.absolute() for folder in package_folders()]
    # Folders of other names hold the package or its compiled part, and cannot be imported as tui_probe.
    return os.pathsep.join(dict.fromkeys(str(folder.parent) for folder in folders if folder.name == "tui_probe"))


class Driver(NamedTuple):
    """A CUDA driver library (absolute path) and whether it is the simulated one."""

    path: Path
    simulated: bool


def find_driver(user_path: Path | None, simulated: bool, environment: Mapping[str, str]) -> Driver:
    """``user_path`` if given, else the simulated driver if asked for, else the machine's.

    Raises NoDriverError where the machine has none, LaunchError where the chosen one cannot be it.
    """
    if user_path is not None:
        return chosen_driver(user_path)
    if simulated:
        return Driver(native_library("sim"), simulated=True)
    for path in candidates(environment):
        if is_driver(path):
            return Driver(path, simulated=False)
    raise NoDriverError(
        f"no NVIDIA driver on this machine ({LIBRARY} was not found in the loader's cache and the usual places);"
        " install the driver, name it with --driver PATH, or use the simulated GPU with --sim"
    )


def chosen_driver(user_path: Path) -> Driver:
    """The driver that the user named, checked as a file can be."""
    path = user_path.absolute()
    if not is_elf_for_this_machine(path):
        raise LaunchError(f"--driver {user_path}: not a shared library for {os.uname().machine}")
    if b"TUI_PROBE_DRIVER" in own_text(path):
        raise LaunchError(
            f"--driver {user_path}: this is the hook of tui-probe; pass the libcuda.so.1 of the NVIDIA driver"
        )
    return Driver(path, simulated=b"TUI_PROBE_SIM" in own_text(path))


def candidates(environment: Mapping[str, str]) -> Iterator[Path]:
    """Yield the paths that the dynamic loader tries for the driver, in its order, then the usual ones."""
    for folder in environment.get("LD_LIBRARY_PATH", "").split(":"):
        if folder:
            yield Path(folder).absolute() / LIBRARY
    yield from loader_cache()
    for folder in USUAL_FOLDERS:
        yield Path(folder) / LIBRARY


def loader_cache() -> list[Path]:
    """The driver libraries in the dynamic loader's cache; none where there is no ldconfig."""
    for tool in ("/sbin/ldconfig", "/usr/sbin/ldconfig"):
        if os.access(tool, os.X_OK):
            listing = subprocess.run([tool, "-p"], capture_output=True, text=True, errors="replace").stdout
            return [Path(path) for path in re.findall(rf"^\s*{re.escape(LIBRARY)} .*=> (/.*)$", listing, re.MULTILINE)]
    return []


def is_driver(path: Path) -> bool:
    """A library for this machine that is not one of tui-probe."""
    return is_elf_for_this_machine(path) and b"TUI_PROBE_" not in own_text(path)


def is_elf_for_this_machine(path: Path) -> bool:
    try:
        with path.open("rb") as file:
            head = file.read(20)
    except OSError:
        return False
    machine = ELF_MACHINE.get(os.uname().machine)
    return head[:5] == b"\x7fELF\x02" and (machine is None or int.from_bytes(head[18:20], "little") == machine)


def own_text(path: Path) -> bytes:
    """The content of a library small enough to be ours (the real driver has tens of megabytes), else nothing."""
    return path.read_bytes() if path.stat().st_size < OWN_LIBRARY_LIMIT else b""
