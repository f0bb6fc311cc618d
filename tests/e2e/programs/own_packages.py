"""A program of an environment with other versions of NumPy, rich and Textual: launches a kernel by ctypes alone.

Writes, as JSON, the entries of ``sys.path`` that exist, the version of each package, and the packages of tui-probe
that it finds.
"""

from __future__ import annotations

import ctypes
import importlib.util
import json
import sys
from pathlib import Path

import numpy
import rich
import textual

PTX = b""".version 7.0
.target sm_80
.address_size 64
.visible .entry store(.param .u64 out)
{
    .reg .b32 %r<2>;
    .reg .b64 %rd<2>;
    ld.param.u64 %rd1, [out];
    mov.u32 %r1, 7;
    st.global.u32 [%rd1], %r1;
    ret;
}
"""


def launch() -> int:
    """Launch the kernel and return what it stored."""
    driver = ctypes.CDLL("libcuda.so.1")
    context, module, function = ctypes.c_void_p(), ctypes.c_void_p(), ctypes.c_void_p()
    address, stored = ctypes.c_uint64(), ctypes.c_uint32()
    arguments = (ctypes.c_void_p * 1)(ctypes.cast(ctypes.byref(address), ctypes.c_void_p))
    one, nothing = (1, 1, 1), (0, None)
    statuses = [
        driver.cuInit(0),
        driver.cuCtxCreate_v2(ctypes.byref(context), 0, 0),
        driver.cuModuleLoadData(ctypes.byref(module), PTX),
        driver.cuModuleGetFunction(ctypes.byref(function), module, b"store"),
        driver.cuMemAlloc_v2(ctypes.byref(address), ctypes.c_size_t(4)),
        driver.cuLaunchKernel(function, *one, *one, *nothing, arguments, None),
        driver.cuMemcpyDtoH_v2(ctypes.byref(stored), address, ctypes.c_size_t(4)),
    ]
    assert not any(statuses), statuses
    return stored.value


RECORD = {
    "stored": launch(),
    "path": [entry for entry in sys.path if Path(entry).exists()],
    "versions": [package.__version__ for package in (numpy, rich, textual)],
    "ours": [name for name in ("tui_probe", "plotext", "lz4") if importlib.util.find_spec(name)],
}
json.dump(RECORD, sys.stdout)
