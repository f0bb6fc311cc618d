"""The driver, the GPUs, and who may read performance counters."""

from __future__ import annotations

import os
import re
from pathlib import Path

from tui_probe.errors import LaunchError
from tui_probe.launcher.driver import Driver, find_driver

from . import Item
from .probing import ask

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


def driver_items() -> list[Item]:
    """The CUDA driver: present, and does it work?"""
    try:
        driver = find_driver(None, simulated=False, environment=os.environ)
    except LaunchError:
        return [
            Item("driver", "missing", "no libcuda.so.1 on this machine", f"install the NVIDIA driver, or {WITHOUT_GPU}")
        ]
    return [driver_item(driver)]


def driver_item(driver: Driver) -> Item:
    """What the driver itself answers."""
    answer = ask(ASK_DRIVER, str(driver.path))
    if "error" in answer:
        found = f"{driver.path} does not work: {answer['error']}"
        return Item("driver", "missing", found, f"reinstall the driver, or {WITHOUT_GPU}")
    version = f"CUDA {answer['version'] // 1000}.{answer['version'] % 1000 // 10}"
    if answer["status"]:
        found = f"{version}, {driver.path}, but cuInit says {answer['status']}: {answer['text']}"
        return Item("driver", "missing", found, f"see nvidia-smi and dmesg, or {WITHOUT_GPU}")
    if not answer["devices"]:
        return Item("driver", "missing", f"{version}, {driver.path}, no device", "check CUDA_VISIBLE_DEVICES")
    return Item("driver", "ok", f"{version}, {driver.path}, devices: {answer['devices']}")


def gpu_items() -> list[Item]:
    """Each GPU as NVML sees it."""
    import pynvml

    try:
        pynvml.nvmlInit()
    except pynvml.NVMLError as error:
        return [Item("GPU", "optional", f"NVML: {error}", "with NVML the load, memory and clocks of a GPU are shown")]
    try:
        release = text(pynvml.nvmlSystemGetDriverVersion())
        return [gpu_item(index, release) for index in range(pynvml.nvmlDeviceGetCount())]
    except pynvml.NVMLError as error:
        return [Item("GPU", "warn", f"NVML: {error}", "load, memory and clocks may not be shown")]
    finally:
        pynvml.nvmlShutdown()


def gpu_item(index: int, release: str) -> Item:
    import pynvml

    device = pynvml.nvmlDeviceGetHandleByIndex(index)
    major, minor = pynvml.nvmlDeviceGetCudaComputeCapability(device)
    memory = pynvml.nvmlDeviceGetMemoryInfo(device).total / (1 << 30)
    name = text(pynvml.nvmlDeviceGetName(device))
    return Item(f"GPU {index}", "ok", f"{name}, {memory:.0f} GiB, compute capability {major}.{minor}, driver {release}")


def text(value: str | bytes) -> str:
    """NVML's strings are bytes in its older Python modules."""
    return value.decode() if isinstance(value, bytes) else value


def counter_items() -> list[Item]:
    """May this user read performance counters? tui-probe needs none; Nsight Compute does."""
    try:
        match = re.search(r"^RmProfilingAdminOnly: (\d)", COUNTER_SETTING.read_text(), re.MULTILINE)
    except OSError:
        return []
    if match is None:
        return []
    if match[1] == "0" or os.geteuid() == 0:
        return [Item("counters", "ok", "performance counters may be read (tui-probe needs none, ncu does)")]
    advice = "for ncu: root, or the module option NVreg_RestrictProfilingToAdminUsers=0"
    return [
        Item("counters", "optional", "performance counters are for root only; tui-probe needs none, ncu does", advice)
    ]
