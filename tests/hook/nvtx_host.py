"""NVTX as a program has it: the header's start-up and the calls it makes through its function tables, in ctypes."""

from __future__ import annotations

import ctypes
import os
from ctypes import byref, c_char_p, c_int, c_size_t, c_uint, c_uint16, c_uint32, c_uint64, c_void_p, c_wchar_p

CORE, CORE2 = 1, 5
SIZES = {CORE: 16, CORE2: 16}
ModuleTable = ctypes.CFUNCTYPE(c_int, c_int, ctypes.POINTER(c_void_p), ctypes.POINTER(c_uint))
ExportTable = ctypes.CFUNCTYPE(c_void_p, c_uint32)


class Callbacks(ctypes.Structure):
    """NvtxExportTableCallbacks."""

    _fields_ = [("size", c_size_t), ("function_table", ModuleTable)]


class Attributes(ctypes.Structure):
    """nvtxEventAttributes_v2 with a message."""

    _fields_ = [
        ("version", c_uint16),
        ("size", c_uint16),
        ("before", c_uint32 * 5),
        ("payload", c_uint64),
        ("kind", c_int),
        ("message", c_void_p),
    ]


functions = {module: (c_void_p * size)() for module, size in SIZES.items()}
tables = {
    module: (c_void_p * size)(
        *(ctypes.addressof(functions[module]) + place * ctypes.sizeof(c_void_p) for place in range(size))
    )
    for module, size in SIZES.items()
}


@ModuleTable
def function_table(module, table, size):  # type: ignore[no-untyped-def]
    if module not in tables:
        return 0
    table[0] = ctypes.addressof(tables[module])
    size[0] = SIZES[module]
    return 1


callbacks = Callbacks(ctypes.sizeof(Callbacks), function_table)


@ExportTable
def export_table(which):  # type: ignore[no-untyped-def]
    return ctypes.addressof(callbacks) if which == 1 else None


def start_nvtx() -> int:
    """Do the first NVTX call of a process. Returns whether the tool took the ranges."""
    tool = ctypes.CDLL(os.environ["NVTX_INJECTION64_PATH"])
    return int(tool.InitializeInjectionNvtx2(export_table))


def _function(module: int, place: int, result: object, *arguments: object):  # type: ignore[no-untyped-def]
    return ctypes.CFUNCTYPE(result, *arguments)(functions[module][place])  # type: ignore[arg-type]


def push(text: bytes) -> int:
    return int(_function(CORE, 9, c_int, c_char_p)(text))


def push_wide(text: str) -> int:
    return int(_function(CORE, 10, c_int, c_wchar_p)(text))


def pop() -> int:
    return int(_function(CORE, 11, c_int)())


def start(text: bytes) -> int:
    return int(_function(CORE, 5, c_uint64, c_char_p)(text))


def end(range_id: int) -> None:
    _function(CORE, 7, None, c_uint64)(range_id)


def domain(name: bytes) -> int:
    return int(_function(CORE2, 12, c_void_p, c_char_p)(name) or 0)  # NULL: the default domain


def registered(owner: int, text: bytes) -> int:
    return int(_function(CORE2, 10, c_void_p, c_void_p, c_char_p)(owner, text) or 0)


def attributes(kind: int, message: int) -> Attributes:
    made = Attributes(2, ctypes.sizeof(Attributes))
    made.kind, made.message = kind, message
    return made


def domain_push(owner: int, event: Attributes) -> int:
    return int(_function(CORE2, 4, c_int, c_void_p, c_void_p)(owner, byref(event)))


def domain_pop(owner: int) -> int:
    return int(_function(CORE2, 5, c_int, c_void_p)(owner))
