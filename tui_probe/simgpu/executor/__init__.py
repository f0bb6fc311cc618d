"""Executes PTX with NumPy, many threads at a time, under a deterministic model of time (see ``model``)."""

from tui_probe.simgpu.executor.checks.checker import Checker
from tui_probe.simgpu.executor.device_calls import HEAP, HEAP_BYTES
from tui_probe.simgpu.executor.execution import MAX_THREADS, Execution, execute
from tui_probe.simgpu.executor.faults import (
    AbortError,
    DeadlockError,
    KernelAssertionError,
    MemoryFaultError,
    MisalignedAddressError,
    TrapError,
    UnsupportedInstructionError,
)
from tui_probe.simgpu.executor.kernel import Kernel, Parameter, compile_kernel, function_addresses
from tui_probe.simgpu.executor.memory import GLOBAL_START, DeviceMemory
from tui_probe.simgpu.executor.model import Machine

__all__ = [
    "GLOBAL_START",
    "HEAP",
    "HEAP_BYTES",
    "MAX_THREADS",
    "AbortError",
    "Checker",
    "DeadlockError",
    "DeviceMemory",
    "Execution",
    "Kernel",
    "KernelAssertionError",
    "Machine",
    "MemoryFaultError",
    "MisalignedAddressError",
    "Parameter",
    "TrapError",
    "UnsupportedInstructionError",
    "compile_kernel",
    "execute",
    "function_addresses",
]
