"""The package's own parts: the hook, the simulated GPU, and the Python packages it uses."""

from __future__ import annotations

import os
import subprocess
import sys
from importlib import metadata, util

from tui_probe.errors import LaunchError
from tui_probe.launcher.natives import native_library, package_path
from tui_probe.own_python import own_environment

from . import Item
from .probing import LIMIT, ask

# What must hold for the hook to stand in for the driver: a second load by name gives the library that is there.
ASK_HOOK = """
import ctypes, json, sys
hook = ctypes.CDLL(sys.argv[1], mode=ctypes.RTLD_GLOBAL)
print(json.dumps({"same": ctypes.CDLL("libcuda.so.1")._handle == hook._handle, "cuInit": hasattr(hook, "cuInit")}))
"""
PACKAGES = ("textual", "rich", "numpy", "plotext", "toml", "nvidia-ml-py", "zstandard", "lz4")
REINSTALL = "reinstall: pip install ."


def hook_items() -> list[Item]:
    """Does the hook driver load, and under the name by which programs ask for the driver?"""
    try:
        hook = native_library("hook")
    except LaunchError as error:
        return [Item("hook", "missing", str(error), REINSTALL)]
    answer = ask(ASK_HOOK, str(hook))
    if "error" in answer:
        return [Item("hook", "missing", f"{hook} does not load: {answer['error']}", REINSTALL)]
    if not (answer["same"] and answer["cuInit"]):
        return [Item("hook", "missing", f"{hook} does not stand in for libcuda.so.1", REINSTALL)]
    return [Item("hook", "ok", f"{hook} stands in for libcuda.so.1")]


def simulator_items() -> list[Item]:
    """Runs a kernel on the simulated GPU and checks its result."""
    try:
        library = native_library("sim")
    except LaunchError as error:
        return [Item("simulated GPU", "missing", str(error), REINSTALL)]
    settings = {
        "LD_LIBRARY_PATH": f"{library.parent}:{os.environ.get('LD_LIBRARY_PATH', '')}".rstrip(":"),
        "TUI_PROBE_SIM_PYTHON": sys.executable,
        "TUI_PROBE_SIM_PYTHONPATH": package_path(),
    }
    command = [sys.executable, "-P", "-m", "tui_probe.simgpu.examples.demo", "--kernel", "zero_fill", "--size", "512"]
    try:
        result = subprocess.run(
            command, env=own_environment() | settings, capture_output=True, text=True, timeout=LIMIT
        )
    except subprocess.TimeoutExpired:
        return [Item("simulated GPU", "missing", f"no result within {LIMIT} s", REINSTALL)]
    if result.returncode or result.stdout != "zero_fill ok\n":
        said = (result.stderr or result.stdout).strip().splitlines() or [f"status {result.returncode}"]
        return [Item("simulated GPU", "missing", f"a kernel did not run: {said[-1]}", REINSTALL)]
    return [Item("simulated GPU", "ok", "ran a kernel with the right result")]


def package_items() -> list[Item]:
    """The Python that runs this, and the packages that it uses."""
    found, missing = [f"Python {sys.version.split()[0]}"], []
    for name in PACKAGES:
        try:
            found.append(f"{name} {metadata.version(name)}")
        except metadata.PackageNotFoundError:
            missing.append(name)
    items = [Item("Python", "ok", ", ".join(found))]
    if missing:
        items.append(Item("packages", "missing", ", ".join(missing), f"pip install {' '.join(missing)}"))
    if util.find_spec("matplotlib") is None:
        advice = "with it PNG files are written: pip install 'tui-probe[png]'"
        items.append(Item("matplotlib", "optional", "not installed", advice))
    return items
