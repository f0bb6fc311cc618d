"""What a GPU can do at most, unit by unit: what a kernel's counts are held against.

Rates of an SM are from the table of arithmetic throughput in NVIDIA's CUDA programming guide (warp instructions a
clock: its results a clock / 32) and the white papers of Volta, Turing, Ampere, Hopper; rates of memory are those of
the data sheets, which a measurement (``tui-probe bandwidth``) replaces. What no source states is None: no share is
made of it.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from tui_probe.bandwidth.figures import Bandwidth
    from tui_probe.trace.process_events import Device

ISSUED_A_CLOCK: Final = 4.0
"""Warp instructions that the four schedulers of an SM issue."""
REQUESTS_A_CLOCK: Final = 1.0
"""Requests that the load and store units of an SM take, and passes of its shared memory."""
_TENSOR_HALF: Final = {"7.0": 1024, "7.5": 1024, "8.0": 2048, "8.6": 1024, "8.9": 1024, "9.0": 4096}
"""Dense operations in half precision of the tensor cores of an SM in a clock."""
_SHARE_OF_MMA: Final = {"9.0": 0.63}
"""Of that, what instructions of one warp reach (mma.sync), where only those of four warps (wgmma) reach all: Luo et
al., Benchmarking and Dissecting the Nvidia Hopper GPU Architecture (2024), table of tensor core throughput."""
_FP32: Final = {"7.0": 2, "7.5": 2, "8.0": 2, "8.6": 4, "8.7": 4, "8.9": 4, "9.0": 4, "10.0": 4, "12.0": 4}
_FP64: Final = {"7.0": 1, "7.5": 1 / 16, "8.0": 1, "8.6": 1 / 16, "8.7": 1 / 16, "8.9": 1 / 16, "9.0": 2, "10.0": 2,
                "12.0": 1 / 16}  # fmt: skip
_HALF: Final = {"7.0": 2, "7.5": 2, "8.0": 4, "8.6": 2, "8.7": 2, "8.9": 2, "9.0": 2, "10.0": 4, "12.0": 2}
"""Of 9.0 not the guide's 4: on an H200 a kernel of nothing but HFMA2 issued 1.96 of them a clock and SM with its pipe
busy for 99 % of the time by Nsight Compute: 16 lanes a scheduler."""
_MEMORIES: Final = (
    ("H200", 4.8e12, 60 << 20), ("H100 PCIe", 2.0e12, 50 << 20), ("H100 NVL", 3.9e12, 50 << 20),
    ("H100", 3.35e12, 50 << 20), ("A100-SXM4-80GB", 2.039e12, 40 << 20), ("A100 80GB", 1.935e12, 40 << 20),
    ("A100", 1.555e12, 40 << 20), ("V100", 0.9e12, 6 << 20), ("L40S", 0.864e12, 96 << 20), ("L40", 0.864e12, 96 << 20),
    ("L4", 0.3e12, 48 << 20), ("A10", 0.6e12, 6 << 20), ("T4", 0.32e12, 4 << 20), ("RTX 4090", 1.008e12, 72 << 20),
    ("RTX 3090", 0.936e12, 6 << 20),
)  # fmt: skip
"""Bytes per second and bytes of L2 cache by a part of the name, the longer names first."""
_L2: Final = {"H200": 7.4e12}
"""Bytes per second of the L2 cache, as ``tui-probe bandwidth`` measured them; no data sheet states any."""
_SIMULATED: Final = 1.555e12 / 108
"""Bytes per second of memory for each SM of a simulated GPU: as of an A100, which it is like."""


@dataclass(frozen=True, slots=True)
class Machine:
    """The most of each a second, of the whole GPU at its highest clock; None where it is not known."""

    name: str
    sms: int
    issue: float | None = None
    """Warp instructions."""
    fp32: float | None = None
    fp64: float | None = None
    fp16: float | None = None
    requests: float | None = None
    tensor: float | None = None
    """Operations in half precision, of all instructions; ``mma`` of those of one warp."""
    mma: float | None = None
    memory: float | None = None
    """Bytes of device memory."""
    l2: float | None = None
    """Bytes of the L2 cache."""
    l2_size: int | None = None
    simulated: bool = False


def machine_of(device: Device, bandwidth: Bandwidth | None = None, *, simulated: bool = False) -> Machine:
    """What is known of a device; of its memories what was measured, else by its name. A simulated one has no time."""
    clocks = float(device.sms) * device.clock_khz * 1e3 or None
    kind = device.capability

    def rate(a_clock: float | None) -> float | None:
        return None if clocks is None or a_clock is None else a_clock * clocks

    memory, l2_size = (_SIMULATED * device.sms, None) if simulated else _memory_of(device.name)
    tensor = rate(_TENSOR_HALF.get(kind))
    mma = None if tensor is None else tensor * _SHARE_OF_MMA.get(kind, 1.0)
    machine = Machine(
        device.name, device.sms, rate(ISSUED_A_CLOCK), rate(_FP32.get(kind)), rate(_FP64.get(kind)),
        rate(_HALF.get(kind)), rate(REQUESTS_A_CLOCK), tensor, mma, memory,
        next((bytes_ for part, bytes_ in _L2.items() if part in device.name), None), l2_size, simulated,
    )  # fmt: skip
    return machine if bandwidth is None else _with_measured(machine, bandwidth)


def _memory_of(name: str) -> tuple[float | None, int | None]:
    return next(((rate, size) for part, rate, size in _MEMORIES if part in name), (None, None))


def _with_measured(machine: Machine, bandwidth: Bandwidth) -> Machine:
    memory, l2 = bandwidth.rate("memory_read"), bandwidth.rate("l2_read")
    return replace(
        machine,
        memory=machine.memory if memory is None else memory.bytes_per_second,
        l2=machine.l2 if l2 is None else l2.bytes_per_second,
        l2_size=machine.l2_size if bandwidth.card is None else bandwidth.card.l2_bytes or machine.l2_size,
    )
