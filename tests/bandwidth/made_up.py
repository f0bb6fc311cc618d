"""A measurement of a card that does not exist: rates follow Little's law up to a limit, and fall off beyond it."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

from tui_probe.bandwidth.measure import DeviceProperties, bus_bandwidth
from tui_probe.bandwidth.rates import Bandwidth, Rate
from tui_probe.cli.bandwidth import lines

CARD = DeviceProperties("Test card", 132, 60 << 20, 141 << 30, 3_201_000, 6144, bus_bandwidth(3_201_000, 6144), 232_448)
LATENCY = 0.8e-6
PEAK = 4.3e12
FLIGHTS = tuple(4096 << power for power in range(6))
BLOCKS = (1, 4, 16, 33, 66, 132, 264, 528, 1056)


def rate(key: str, what: str, bytes_per_second: float, *, on_bus: bool = False, size: int = 1 << 30) -> Rate:
    time = size / bytes_per_second
    limit = CARD.memory_bandwidth if on_bus else None
    return Rate.from_times(key, what, size, (time, 1.02 * time, 0.99 * time), limit)


def swept(blocks: int, in_flight: int) -> Rate:
    """At most that many bytes are on their way as fit on the SMs; where more ask, some of the bandwidth is lost."""
    on_way = min(blocks, 132 * (232_448 // in_flight)) * in_flight
    wanted = on_way / LATENCY
    reached = min(wanted, PEAK) * (1 - 0.08 * max(0.0, 1 - PEAK / wanted))
    time = (1 << 28) / reached
    rate = Rate.from_times("to_shared", "memory to shared memory", 1 << 28, (time,) * 3, CARD.memory_bandwidth)
    return replace(rate, blocks=blocks, in_flight=in_flight)


def measured(*, auto: bool = True) -> Bandwidth:
    """Everything that ``tui-probe bandwidth`` measures."""
    tried = [swept(blocks, flight) for blocks in BLOCKS for flight in FLIGHTS]
    rates = [
        rate("memory_read", "memory, read", 4.61e12, on_bus=True),
        rate("memory_write", "memory, write", 4.25e12, on_bus=True),
        rate("memory_copy", "memory, copy", 3.92e12, on_bus=True),
        rate("driver_copy", "memory, driver's copy", 4.25e12, on_bus=True),
        rate("l2_read", "L2, read", 7.4e12),
        max(tried, key=lambda each: each.bytes_per_second),
        rate("host_to_device_pinned", "host to device, page-locked", 55e9),
        rate("device_to_host_pinned", "device to host, page-locked", 54e9),
        rate("host_to_device_pageable", "host to device, pageable", 9e9),
        rate("device_to_host_pageable", "device to host, pageable", 7e9),
        rate("disk_write", "disk, write", 1.2e9),
        rate("disk_read", "disk, read", 3.4e9),
    ]
    return Bandwidth(CARD, rates, tried if auto else [])


def write_result(path: Path, *, auto: bool = True) -> Path:
    """The file that ``tui-probe bandwidth --format json`` would write."""
    path.write_text("\n".join(lines(measured(auto=auto), "json", 100)) + "\n", encoding="utf-8")
    return path
