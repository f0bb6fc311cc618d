"""Environment of a program under the hook: variables of the loader, of the hook, of Python and of frameworks."""

from __future__ import annotations

import contextlib
import os
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Final, NamedTuple

from tui_probe.engine.cache import EMPTY_KERNEL_DIRECTORY, default_cache_directory
from tui_probe.errors import LaunchError
from tui_probe.probe_model import fused_places

from .control import NO_LIMIT
from .driver import package_path
from .options import ALL, AUTO, MAX_KEPT_BYTES, MAX_LOG_BYTES, MAX_RESULT_FILES, MAX_TRACE_BYTES, MAX_WRITE_RATE

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from tui_probe.probe_files.choices import ChosenProbe
    from tui_probe.probe_model.probe import Weight

    from .driver import Driver
    from .options import RunOptions

LOADING_VARIABLE: Final = "TUI_PROBE_LOADING"
AUDIT: Final = "audit"
PRELOAD: Final = "preload"
AUDIT_LIBRARY: Final = "libtui-probe-audit.so"
"""File in the hook's directory; ``tensortrace`` and the simulated driver's server know this name."""
PYTHON_PATH: Final = "PYTHONPATH"
_TENSORTRACE: Final = Path(__file__).resolve().parents[1] / "tensortrace"
START_DIRECTORY: Final = str(_TENSORTRACE / "start")
"""Directory of a ``sitecustomize`` that starts with the program and then runs the program's own."""
SHIM_DIRECTORY: Final = str(_TENSORTRACE / "shim")
"""Directory of a module ``neutrino``, which gives way to an installed one."""
NVTX_INJECTION: Final = "NVTX_INJECTION64_PATH"
CUTE_LINE_INFO: Final = "CUTE_DSL_LINEINFO"
PYCUDA_FLAGS: Final = "PYCUDA_DEFAULT_NVCC_FLAGS"
XLA_LINE_INFO: Final = "--xla_gpu_generate_line_info"
UVX_DIRECTORIES: Final = ("archive-v", "environments-v")
"""Directories of ``uvx`` environments in uv's cache. Those of ``uv run --with`` are elsewhere, and are the user's."""
CACHE_MARK: Final = "CACHEDIR.TAG"
"""File at the root of uv's cache."""


def loader_variables(base: Mapping[str, str], hook: Path) -> dict[str, str]:
    """The loader's variables: those of ``base``, and the hook's.

    An audit library gives the hook to any code that asks for the driver. Loaders without usable audit libraries preload
    the hook; the audit library drops that entry. ``TUI_PROBE_LOADING`` restricts this to one way.
    Raises LaunchError where the loader cannot take the hook's path, or where there is no such way.
    """
    if set(str(hook)) & set(": "):
        reason = "LD_PRELOAD does not support paths with spaces or colons; install tui-probe in another directory"
        raise LaunchError(f"{hook}: {reason}")
    method = base.get(LOADING_VARIABLE, "")
    if method not in ("", AUDIT, PRELOAD):
        raise LaunchError(
            f"{LOADING_VARIABLE}={method}: not a loading method; set the variable to {AUDIT} or {PRELOAD}, or unset it"
        )
    variables = {"LD_LIBRARY_PATH": _with_entry(base.get("LD_LIBRARY_PATH"), str(hook.parent), ":", is_first=True)}
    if method != AUDIT:
        variables["LD_PRELOAD"] = _with_entry(base.get("LD_PRELOAD"), preload_entry(hook), ": ")
    if method != PRELOAD:
        variables["LD_AUDIT"] = _with_entry(base.get("LD_AUDIT"), str(hook.parent / AUDIT_LIBRARY), ":")
    return variables | {"TUI_PROBE_HOOK": str(hook)}


def preload_entry(hook: Path) -> str:
    """The hook's entry in ``LD_PRELOAD``, a path that no one opens.

    Where the audit library drops the entry, glibc gives this name to the library that it gets instead. The name of the
    hook stays free for who opens the hook itself, as NVTX does.
    """
    return f"/.{hook}"


def _with_entry(entries: str | None, own_entry: str, separators: str, *, is_first: bool = False) -> str:
    """The user's entries, as they are, and ours once, after them unless it has to be found ``is_first``."""
    other_entries = entries or ""
    for separator in separators:
        other_entries = other_entries.replace(f"{own_entry}{separator}", "")  # of a run around this one
    other_entries = other_entries.removesuffix(own_entry).rstrip(separators)
    if not other_entries:
        return own_entry
    return f"{own_entry}:{other_entries}" if is_first else f"{other_entries}:{own_entry}"


def graft_faults_file() -> Path | None:
    """Return the file of kernels whose SASS had a probe when a GPU context failed; make its directory.

    The hook leaves these kernels unchanged from then on, and appends to the file (``hook/src/prepare/graft_faults.h``).
    None where this user has no cache directory.
    """
    folder = default_cache_directory("grafts")
    if folder is None:
        return None
    with contextlib.suppress(OSError):
        folder.mkdir(parents=True, exist_ok=True)
    return folder / "faulted"


def faulted_kernels(path: Path) -> list[str]:
    """The names in the file, each once, in order; none if it is not there. Lines are ``ERROR SECONDS NAME``: the
    driver's number of the error, and when it was, since 1970.
    """
    try:
        lines = path.read_text(errors="replace").splitlines()
    except OSError:
        return []
    return list(dict.fromkeys(parts[2] for line in lines if len(parts := line.split(" ", 2)) == 3 and parts[2]))


class Setting(NamedTuple):
    """A variable that the run sets for the program, and the reason."""

    name: str
    value: str
    reason: str


class HookPaths(NamedTuple):
    """The paths that are passed to the hook, all absolute."""

    hook: Path
    trace_root: Path
    socket: Path
    probe: Path
    """The probe file, of several the first one's; all are in ``probes``."""
    probes: Path
    cupy_cache: Path
    ending: Path
    """File that exists once the run is asked to end."""
    adjacent: Path
    """Takes what processes report about drivers that are loaded next to the one that the hook calls."""
    notes: Path
    """Takes what processes note for the launcher: see ``notes``."""
    control: Path | None = None
    """None: every process counts for itself."""


def target_environment(
    base: Mapping[str, str],
    options: RunOptions,
    driver: Driver,
    paths: HookPaths,
    stamp: str,
    probes: Sequence[ChosenProbe] = (),
) -> dict[str, str]:
    """``base`` with all that the hook needs.

    Raises LaunchError where the loader could not take the hook's path.
    """
    environment = dict(base)
    environment |= loader_variables(base, paths.hook)
    environment |= _path_variables(paths)
    environment |= {
        "TUI_PROBE_DRIVER": str(driver.path),
        "TUI_PROBE_STAMP": stamp,
        "TUI_PROBE_LAUNCHER": str(os.getpid()),
        "TUI_PROBE_WEIGHT": weight_of(probes),
    }
    for name, value in (
        option_variables(options) | probe_variables(probes, paths.probes, options) | control_variables(paths)
    ).items():
        environment.pop(name, None)  # of a run around this one
        if value:
            environment[name] = value
    if options.min_free_disk:
        environment["TUI_PROBE_MIN_FREE_DISK"] = options.min_free_disk
    environment |= {setting.name: setting.value for setting in framework_settings(base, paths.hook, paths.cupy_cache)}
    environment |= {setting.name: setting.value for setting in python_settings(base)}
    return environment | driver_variables(driver, options) | check_variables(base, driver, options)


def _path_variables(paths: HookPaths) -> dict[str, str]:
    return {
        "TUI_PROBE_TRACE_ROOT": str(paths.trace_root),
        "TUI_PROBE_ENGINE": str(paths.socket),
        "TUI_PROBE_PROBE": str(paths.probe),
        "TUI_PROBE_ENDING": str(paths.ending),
        "TUI_PROBE_BESIDE": str(paths.adjacent),
        "TUI_PROBE_NOTES": str(paths.notes),
    }


def check_variables(base: Mapping[str, str], driver: Driver, options: RunOptions) -> dict[str, str]:
    """Return the variable that has the simulated GPU check accesses, or not; none for a real one."""
    if not driver.simulated:
        return {}
    is_enabled = base.get("TUI_PROBE_SIM_CHECK", "1") != "0"
    is_checked = is_enabled if options.checked is None else options.checked
    return {"TUI_PROBE_SIM_CHECK": "1" if is_checked else "0"}


def driver_variables(driver: Driver, options: RunOptions) -> dict[str, str]:
    """Return the variables of the simulated GPU, or those of a real one."""
    if not driver.simulated:
        empty_kernels = default_cache_directory(EMPTY_KERNEL_DIRECTORY)
        return {"TUI_PROBE_EMPTY_KERNELS": str(empty_kernels)} if empty_kernels else {}
    variables = {
        "TUI_PROBE_SIM_PYTHON": sys.executable,
        "TUI_PROBE_SIM_PYTHONPATH": package_path(),
        "TUI_PROBE_PATIENT": "1",  # it takes a hundred times as long as a GPU anyway
    }
    architecture = options.simulated_architecture
    return variables | ({"TUI_PROBE_SIM_ARCH": architecture} if architecture else {})


def option_variables(options: RunOptions) -> dict[str, str]:
    """The hook's variables that follow from options; "" where the hook's default holds."""
    return {
        "TUI_PROBE_KERNELS": options.kernels or "",
        "TUI_PROBE_FILTER": options.excluded or "",
        "TUI_PROBE_LAUNCHES": "" if options.launches == ALL else options.launches,
        "TUI_PROBE_BENCHMARK": "1" if options.benchmark else "",
        "TUI_PROBE_REPLAY": "1" if options.replay else "",
        "TUI_PROBE_PATIENT": "1" if options.wait else "",
        "TUI_PROBE_KEEP_LAUNCH": "\n".join(options.kept_launches),
        "TUI_PROBE_MAX_KEPT_BYTES": limit_text(options.max_kept_bytes, MAX_KEPT_BYTES),
        "TUI_PROBE_SAVE_RESULTS": "1" if options.save_results else "",
        "TUI_PROBE_MEMUSAGE": "1" if options.memusage else "",
        "TUI_PROBE_DETAIL": "1" if options.detail else "",
        "TUI_PROBE_MACHINE_CODE": "" if options.machine_code == AUTO else options.machine_code,
        "TUI_PROBE_GRAFT_FAULTS": str(graft_faults_file() or ""),
        "TUI_PROBE_KEEP_SECRETS": "1" if options.keep_secrets else "",
        "TUI_PROBE_TIMES": "" if options.times else "0",
        "TUI_PROBE_MAX_TRACE_BYTES": limit_text(options.max_trace_bytes, MAX_TRACE_BYTES),
        "TUI_PROBE_MAX_RESULT_FILES": limit_text(options.max_result_files, MAX_RESULT_FILES),
        "TUI_PROBE_MAX_LOG_BYTES": limit_text(options.max_log_bytes, MAX_LOG_BYTES),
        "TUI_PROBE_MAX_WRITE_RATE": limit_text(options.max_write_rate, MAX_WRITE_RATE),
        "TUI_PROBE_MAX_PROBE_MEMORY": str(options.max_probe_memory or ""),
        "TUI_PROBE_MAX_HOST_MEMORY": str(options.max_host_memory or ""),
        "TUI_PROBE_WATCHDOG": str(max(round(options.watchdog * 1000), 1)) if options.watchdog else "",
        "TUI_PROBE_CAPTURE_RANGE": "1" if options.capture_range else "",
        "TUI_PROBE_NVTX": options.nvtx or "",
        "TUI_PROBE_TENSORS": "1" if options.tensors else "",
    }


def places_to_fuse(probes: Sequence[ChosenProbe], options: RunOptions) -> tuple[int, ...]:
    """Return the places of the probes that a kernel has at the same time; none of a run that measures each by itself,
    and not those that measure a sample of blocks.
    """
    is_separate = options.benchmark or options.memusage
    return (
        ()
        if is_separate
        else fused_places([None if probe.sample else (probe.name, probe.facts.counts) for probe in probes])
    )


def probe_variables(probes: Sequence[ChosenProbe], folder: Path, options: RunOptions) -> dict[str, str]:
    """The hook's variables for the probes of a run: the names and the folder of the files only if there are several."""
    has_several = len(probes) > 1
    return {
        "TUI_PROBE_PROBES": ":".join(probe.name for probe in probes) if has_several else "",
        "TUI_PROBE_PROBE_FOLDER": str(folder) if has_several else "",
        "TUI_PROBE_SAMPLE": ":".join(probe.sample for probe in probes),
        "TUI_PROBE_FUSED": ":".join(map(str, places_to_fuse(probes, options))),
        "TUI_PROBE_ALLOCATIONS": "1" if any(probe.facts.reads_allocations for probe in probes) else "",
        "TUI_PROBE_HOST_RECORDS": "1" if any(probe.facts.is_kept_by_host for probe in probes) else "",
        "TUI_PROBE_NEEDS_SASS": "1" if any(probe.facts.needs_machine_code for probe in probes) else "",
    }


def weight_of(probes: Sequence[ChosenProbe]) -> Weight:
    """Return the weight of the lightest probe: the others alternate with it."""
    return "heavy" if probes and all(probe.facts.weight == "heavy" for probe in probes) else "light"


def control_variables(paths: HookPaths) -> dict[str, str]:
    """The hook's variable for the control page of the run."""
    return {"TUI_PROBE_CONTROL": str(paths.control or "")}


def limit_text(limit: int, default: int) -> str:
    """A limit in the hook's words: ``none``, a number, or "" where it is the default."""
    if limit == NO_LIMIT:
        return "none"
    return "" if limit == default else str(limit)


def framework_settings(base: Mapping[str, str], hook: Path, cupy_cache: Path) -> list[Setting]:
    """Return settings that make frameworks keep PTX and report ranges. The user's own values stay."""
    settings = []
    if NVTX_INJECTION not in base:
        settings.append(Setting(NVTX_INJECTION, str(hook), "NVTX passes the program's ranges to the hook"))
    flags = base.get("XLA_FLAGS", "")
    if XLA_LINE_INFO not in flags:
        settings.append(
            Setting(
                "XLA_FLAGS", f"{flags} {XLA_LINE_INFO}=true".strip(), "JAX keeps PTX in its cubins only with this flag"
            )
        )
    if "CUPY_COMPILE_WITH_PTX" not in base:
        settings.append(Setting("CUPY_COMPILE_WITH_PTX", "1", "CuPy loads PTX instead of cubins without PTX"))
        if "CUPY_CACHE_DIR" not in base:
            reason = "CuPy's default cache holds cubins without PTX; this cache holds PTX"
            settings.append(Setting("CUPY_CACHE_DIR", str(cupy_cache), reason))
    if PYCUDA_FLAGS not in base:
        settings.append(Setting(PYCUDA_FLAGS, "-lineinfo", "PyCUDA keeps PTX in cubins only with -lineinfo"))
    if CUTE_LINE_INFO not in base:
        settings.append(Setting(CUTE_LINE_INFO, "1", "CuTe DSL writes source lines into its cubins"))
    return settings


def python_settings(base: Mapping[str, str]) -> list[Setting]:
    """Return the settings of PYTHONPATH, with the package's entries before and after the user's, and of PATH."""
    path, programs = python_path(base), program_path(base.get("PATH", ""), Path(sys.prefix))
    reason = "numba-cuda keeps PTX in its cubins; --tensors can name tensors; programs can import neutrino"
    settings = [] if path is None else [Setting(PYTHON_PATH, path, reason)]
    if programs is not None:
        settings.append(
            Setting(
                "PATH",
                programs,
                "uvx puts tui-probe's environment first in PATH; with this PATH, programs find the user's python",
            )
        )
    return settings


def python_path(base: Mapping[str, str]) -> str | None:
    """``PYTHONPATH`` for the target: what it was, and ours around it. None where a colon in our path forbids that.

    Modules are last, so that anything that the user put there wins; the ``sitecustomize`` must be found first.
    """
    if os.pathsep in str(_TENSORTRACE):
        return None
    user_path = base.get(PYTHON_PATH)
    entries = (
        [entry for entry in user_path.split(os.pathsep) if entry not in (START_DIRECTORY, SHIM_DIRECTORY)]
        if user_path
        else []
    )
    return os.pathsep.join([START_DIRECTORY, *entries, SHIM_DIRECTORY])


def program_path(path: str, prefix: Path) -> str | None:
    """Return PATH for the program if ``prefix`` is an environment that ``uvx`` made for tui-probe, else None.

    ``uvx`` puts that environment first, so ``uvx tui-probe run -- python train.py`` would find a Python without the
    user's packages. It comes last here: ``uvx --with`` may have added programs that are nowhere else.
    """
    if not prefix.parent.name.startswith(UVX_DIRECTORIES) or not (prefix.parent.parent / CACHE_MARK).is_file():
        return None
    programs = str(prefix / "bin")
    other_entries = [entry for entry in path.split(os.pathsep) if entry != programs]
    return os.pathsep.join([*other_entries, programs])
