"""Checks of the driver, the GPUs, the CUDA tools and the package's own libraries."""

from __future__ import annotations

import json
import os
import re
import shutil
import signal
import subprocess
import sys
from dataclasses import dataclass
from importlib import metadata, util
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from tui_probe.errors import LaunchError
from tui_probe.launcher.driver import REINSTALL, Driver, find_driver, native_library, outdated_build, package_path
from tui_probe.own_python import own_environment
from tui_probe.toolchain import PTXAS_HINT, find_tools, silent_tools

if TYPE_CHECKING:
    from collections.abc import Mapping

State = Literal["ok", "optional", "warn", "missing"]
"""``optional``: it is not there, and no command that profiles needs it; the advice says what it would give."""


@dataclass(frozen=True)
class Item:
    """One thing that was looked at: what was found, and what to do if that is not enough."""

    name: str
    state: State
    found: str
    advice: str = ""


ANSWER_SECONDS = 60  # seconds; a driver may take ten to wake many GPUs
ASK_DRIVER = """
import ctypes, json, sys
driver = ctypes.CDLL(sys.argv[1])
version, count, name = ctypes.c_int(), ctypes.c_int(), ctypes.c_char_p()
driver.cuDriverGetVersion(ctypes.byref(version))
status = driver.cuInit(0)
if status:
    driver.cuGetErrorString(status, ctypes.byref(name))
else:
    driver.cuDeviceGetCount(ctypes.byref(count))
print(json.dumps({"version": version.value, "status": status, "devices": count.value,
                  "text": (name.value or b"unknown error").decode()}))
"""
COUNTER_SETTING = Path("/proc/driver/nvidia/params")
WITHOUT_GPU = "use the simulated GPU: tui-probe run --sim, tui-probe demo"
WITHOUT_PTXAS = f"without ptxas, the driver compiles PTX, and registers and spills are unknown; {PTXAS_HINT}"
# What must hold for the hook to stand in for the driver: a second load by name gives the library that is there.
ASK_HOOK = """
import ctypes, json, sys
hook = ctypes.CDLL(sys.argv[1], mode=ctypes.RTLD_GLOBAL)
print(json.dumps({"same": ctypes.CDLL("libcuda.so.1")._handle == hook._handle, "cuInit": hasattr(hook, "cuInit")}))
"""
PACKAGES = (
    *("textual", "rich", "numpy", "plotext", "toml", "nvidia-ml-py", "lz4", "argcomplete"),
    *(("zstandard",) if sys.version_info < (3, 14) else ()),  # its own module reads zstd frames from 3.14 on
)


def ask_library(program: str, *arguments: str, environment: Mapping[str, str] | None = None) -> dict[str, Any]:
    """Run a Python program that prints a JSON object; ``{"error": why}`` where it does not."""
    command = [sys.executable, "-P", "-c", program, *arguments]
    try:
        result = subprocess.run(
            command,
            env=own_environment() | dict(environment or {}),
            capture_output=True,
            text=True,
            timeout=ANSWER_SECONDS,
        )
    except subprocess.TimeoutExpired:
        return {"error": f"no answer within {ANSWER_SECONDS} s"}
    if result.returncode < 0:
        return {"error": f"it crashed ({signal.Signals(-result.returncode).name})"}
    try:
        answer = json.loads(result.stdout)
    except ValueError:
        return {"error": (result.stderr.strip().splitlines() or ["no answer"])[-1]}
    return answer if isinstance(answer, dict) else {"error": "no answer"}


def driver_items() -> list[Item]:
    """Check whether the CUDA driver is present and works."""
    try:
        driver = find_driver(None, simulated=False, environment=os.environ)
    except LaunchError:
        return [
            Item("driver", "missing", "no libcuda.so.1 on this machine", f"install the NVIDIA driver, or {WITHOUT_GPU}")
        ]
    return [driver_item(driver)]


def driver_item(driver: Driver) -> Item:
    """Check a driver by its own answer to ``cuInit``."""
    answer = ask_library(ASK_DRIVER, str(driver.path))
    if "error" in answer:
        finding = f"{driver.path} does not work: {answer['error']}"
        return Item("driver", "missing", finding, f"reinstall the driver, or {WITHOUT_GPU}")
    version = f"CUDA {answer['version'] // 1000}.{answer['version'] % 1000 // 10}"
    if answer["status"]:
        finding = f"{version}, {driver.path}, but cuInit returns {answer['status']}: {answer['text']}"
        return Item("driver", "missing", finding, f"see nvidia-smi and dmesg, or {WITHOUT_GPU}")
    if not answer["devices"]:
        return Item("driver", "missing", f"{version}, {driver.path}, no device", "check CUDA_VISIBLE_DEVICES")
    return Item("driver", "ok", f"{version}, {driver.path}, devices: {answer['devices']}")


def gpu_items() -> list[Item]:
    """Return an item per GPU that NVML reports."""
    import pynvml

    try:
        pynvml.nvmlInit()
    except pynvml.NVMLError as error:
        return [
            Item("GPU", "optional", f"NVML: {error}", "to see utilization, memory and clocks of the GPU, install NVML")
        ]
    try:
        release = nvml_text(pynvml.nvmlSystemGetDriverVersion())
        return [gpu_item(index, release) for index in range(pynvml.nvmlDeviceGetCount())]
    except pynvml.NVMLError as error:
        return [Item("GPU", "warn", f"NVML: {error}", "utilization, memory and clocks may be missing on the screen")]
    finally:
        pynvml.nvmlShutdown()


def gpu_item(index: int, release: str) -> Item:
    import pynvml

    device = pynvml.nvmlDeviceGetHandleByIndex(index)
    major, minor = pynvml.nvmlDeviceGetCudaComputeCapability(device)
    memory = pynvml.nvmlDeviceGetMemoryInfo(device).total / (1 << 30)
    name = nvml_text(pynvml.nvmlDeviceGetName(device))
    return Item(f"GPU {index}", "ok", f"{name}, {memory:.0f} GiB, compute capability {major}.{minor}, driver {release}")


def nvml_text(value: str | bytes) -> str:
    """NVML's strings are bytes in its older Python modules."""
    return value.decode() if isinstance(value, bytes) else value


def counter_items() -> list[Item]:
    """Check whether this user can read performance counters. tui-probe needs none; Nsight Compute does."""
    try:
        match = re.search(r"^RmProfilingAdminOnly: (\d)", COUNTER_SETTING.read_text(), re.MULTILINE)
    except OSError:
        return []
    if match is None:
        return []
    if match[1] == "0" or os.geteuid() == 0:
        return [Item("counters", "ok", "all users may read performance counters; only run --ncu needs them")]
    advice = "for ncu: run as root, or set the module option NVreg_RestrictProfilingToAdminUsers=0"
    return [
        Item(
            "counters",
            "optional",
            "only root may read performance counters; only run --ncu needs them",
            advice,
        )
    ]


def tool_items() -> list[Item]:
    return [
        cuda_tool("ptxas", WITHOUT_PTXAS, "missing"),
        cuda_tool("nvdisasm", "to show SASS: pip install 'tui-probe[cuda]'"),
        cuda_tool("cuobjdump", "optional: tui-probe reads cubins and fatbins itself"),
        nsight_tool("ncu", "for run --ncu, which shows Nsight Compute metrics"),
        nsight_tool("nsys", "to record timelines for tui-probe import"),
    ]


def cuda_tool(name: str, advice: str, missing_state: State = "optional") -> Item:
    """A tool of the CUDA toolkit: the newest is used, others are fallbacks for what it no longer takes."""
    tools = find_tools(name)
    if silent := ", ".join(map(str, silent_tools(name))):
        working_tool = f"{tools[0].version}, {tools[0].path}; " if tools else ""
        return Item(
            name,
            "warn",
            f"{working_tool}{silent} does not answer --version",
            "remove this ptxas, or put a working ptxas before it on PATH",
        )
    if not tools:
        return Item(name, missing_state, "not found", advice)
    fallbacks = "".join(f"; also {tool.version}" for tool in tools[1:])
    return Item(name, "ok", f"{tools[0].version}, {tools[0].path}{fallbacks}")


def nsight_tool(name: str, purpose: str) -> Item:
    path = shutil.which(name) or shutil.which(name, path="/usr/local/cuda/bin")
    if path is None:
        return Item(name, "optional", "not found", purpose)
    return Item(name, "ok", f"{version_of(Path(path))}, {path}")


def version_of(tool: Path) -> str:
    try:
        result = subprocess.run([tool, "--version"], capture_output=True, text=True, errors="replace", timeout=20)
    except (OSError, subprocess.TimeoutExpired):
        return "does not run"
    match = re.search(r"\d+\.\d+[\w.-]*", result.stdout)
    return match[0] if match else "unknown version"


def hook_items() -> list[Item]:
    """Check whether the hook driver loads, under the name by which programs ask for the driver."""
    try:
        hook = native_library("hook")
    except LaunchError as error:
        return [Item("hook", "missing", str(error))]
    answer = ask_library(ASK_HOOK, str(hook))
    if "error" in answer:
        return [Item("hook", "missing", f"{hook} does not load: {answer['error']}", REINSTALL)]
    if not (answer["same"] and answer["cuInit"]):
        return [Item("hook", "missing", f"{hook} does not replace libcuda.so.1", REINSTALL)]
    outdated = outdated_build()
    if outdated is not None:
        return [Item("hook", "warn", *outdated)]
    return [Item("hook", "ok", f"{hook} replaces libcuda.so.1")]


def simulator_items() -> list[Item]:
    """Run a kernel on the simulated GPU and check its result."""
    try:
        library = native_library("sim")
    except LaunchError as error:
        return [Item("simulated GPU", "missing", str(error))]
    settings = {
        "LD_LIBRARY_PATH": f"{library.parent}:{os.environ.get('LD_LIBRARY_PATH', '')}".rstrip(":"),
        "TUI_PROBE_SIM_PYTHON": sys.executable,
        "TUI_PROBE_SIM_PYTHONPATH": package_path(),
    }
    command = [sys.executable, "-P", "-m", "tui_probe.simgpu.examples.demo", "--kernel", "zero_fill", "--size", "512"]
    try:
        result = subprocess.run(
            command, env=own_environment() | settings, capture_output=True, text=True, timeout=ANSWER_SECONDS
        )
    except subprocess.TimeoutExpired:
        return [Item("simulated GPU", "missing", f"no result within {ANSWER_SECONDS} s", REINSTALL)]
    if result.returncode or result.stdout != "zero_fill ok\n":
        messages = (result.stderr or result.stdout).strip().splitlines() or [f"status {result.returncode}"]
        return [Item("simulated GPU", "missing", f"a kernel failed: {messages[-1]}", REINSTALL)]
    return [Item("simulated GPU", "ok", "ran a kernel with the correct result")]


def package_items() -> list[Item]:
    """The Python that runs this, and the packages that it uses."""
    installed, missing_packages = [f"Python {sys.version.split()[0]}"], []
    for name in PACKAGES:
        try:
            installed.append(f"{name} {metadata.version(name)}")
        except metadata.PackageNotFoundError:
            missing_packages.append(name)
    items = [Item("Python", "ok", ", ".join(installed))]
    if missing_packages:
        items.append(
            Item("packages", "missing", ", ".join(missing_packages), f"pip install {' '.join(missing_packages)}")
        )
    if util.find_spec("matplotlib") is None:
        advice = "to write PNG files: pip install 'tui-probe[png]'"
        items.append(Item("matplotlib", "optional", "not installed", advice))
    return items
