"""Limiter verdicts on an H200 for kernels with known counts and times, unit by unit, on paper."""

from __future__ import annotations

from dataclasses import replace

import pytest

from tui_probe.trace.event_types import Device
from tui_probe.verdicts.utilization import Demand, PeakRates, limiter_verdict, peak_rates, relative_demand

H200 = peak_rates(Device(0, 132, 1_980_000, "9.0", "NVIDIA H200"))
"""4.8 TB/s, and 132 · 1.98e9 = 2.61e11 cycles of SMs a second."""
CYCLES = 132 * 1.98e9
NOTHING = Demand(
    seconds=100e-6, blocks=4096, size=0, sectors=0, shared=0, memory=0, instructions=0, fp32=0, fp64=0, fp16=0, tensor=0
)
"""All counted, and nothing asked of any unit, in 100 µs."""


def limit(machine: PeakRates = H200, **asked: float | None) -> tuple[str | None, str, float | None]:
    verdict = limiter_verdict(replace(NOTHING, **asked), machine)  # type: ignore[arg-type]
    return verdict.limit, verdict.level, verdict.share


def test_a_copy_at_nine_tenths_of_the_bandwidth() -> None:
    size = 0.9 * 4.8e12 * 100e-6
    assert limit(size=size, sectors=size / 32) == ("memory", "", pytest.approx(0.9))


def test_bytes_do_not_show_a_strided_copy() -> None:
    """4 of the 32 bytes of each sector are asked for: an eighth of the bytes keeps memory just as busy."""
    size = 0.9 * 4.8e12 * 100e-6 / 8
    assert limit(size=size, sectors=8 * size / 32)[0] == "memory"
    assert limit(size=size, sectors=None) == (None, "", pytest.approx(0.9 / 8))


def test_memory_level_follows_touched_bytes() -> None:
    size = 0.9 * 4.8e12 * 100e-6
    assert limit(size=size, sectors=size / 32, footprint=size) == ("memory", "DRAM", pytest.approx(0.9))
    again = 0.7 * 7.4e12 * 100e-6
    assert limit(size=again, sectors=again / 32, footprint=20 << 20) == ("memory", "L2", pytest.approx(0.7))
    assert limit(size=again, sectors=again / 32, reach=20 << 20)[1] == "L2"
    assert limit(size=size, sectors=size / 32, footprint=size / 2)[:2] == ("memory", "")


def test_counters_of_hardware_go_before_what_instructions_ask_for() -> None:
    asked = 3 * 4.8e12 * 100e-6
    assert limit(size=asked, sectors=asked / 32) == ("memory", "", pytest.approx(3.0))
    assert limit(size=asked, sectors=asked / 32, dram=0.1 * 4.8e12 * 100e-6)[0] == "latency"
    assert limit(size=asked, sectors=asked / 32, dram=0.7 * 4.8e12 * 100e-6) == ("memory", "DRAM", pytest.approx(0.7))


@pytest.mark.parametrize(("unit", "a_clock"), [("fp32", 4.0), ("fp64", 2.0), ("fp16", 2.0), ("instructions", 4.0)])
def test_pipes_by_instructions_of_warps(unit: str, a_clock: float) -> None:
    name = "issue" if unit == "instructions" else unit
    assert limit(**{unit: 0.75 * a_clock * CYCLES * 100e-6}) == (name, "", pytest.approx(0.75))
    assert limit(**{unit: 0.5 * a_clock * CYCLES * 100e-6})[0] == "latency"


def test_tensor_cores_by_which_instructions_they_are_given() -> None:
    """4096 operations a clock of an SM by wgmma; mma.sync reaches 63 % of that."""
    half = 0.5 * 4096 * CYCLES * 100e-6
    assert limit(tensor=half, wgmma=1000)[0] == "latency"
    assert limit(tensor=half, wgmma=0) == ("tensor", "", pytest.approx(0.5 / 0.63))


def test_shared_memory_and_requests_take_a_cycle_each() -> None:
    assert limit(shared=0.8 * CYCLES * 100e-6) == ("memory", "L1", pytest.approx(0.8))
    assert limit(memory=0.8 * CYCLES * 100e-6) == ("memory", "L1", pytest.approx(0.8))


def test_l1_is_unknown_without_shared_memory() -> None:
    """Of a matrix product that counts 0.11 without and 0.8 with the requests to shared memory."""
    asked = {"sectors": 4 * 0.11 * CYCLES * 100e-6, "memory": None}
    verdict = limiter_verdict(replace(NOTHING, shared=None, **asked), H200)
    assert [share.name for share in verdict.shares] == ["memory"]
    assert verdict.unknown == ("requests to shared memory",)
    assert limit(shared=0.69 * CYCLES * 100e-6, **asked) == ("memory", "L1", pytest.approx(0.8))


def test_memory_behind_caches_limits_only_where_all_else_was_counted() -> None:
    asked = 0.9 * 4.8e12 * 100e-6 / 32
    assert limit(sectors=asked) == ("memory", "", pytest.approx(0.9))
    for unit in ("shared", "instructions", "tensor"):
        assert limit(sectors=asked, **{unit: None}) == (None, "", pytest.approx(0.9))


def test_a_certain_unit_goes_before_memory_that_caches_may_serve() -> None:
    asked = 1.5 * 4.8e12 * 100e-6
    tensor = 0.7 * 0.63 * 4096 * CYCLES * 100e-6
    assert limit(sectors=asked / 32, tensor=tensor) == ("tensor", "", pytest.approx(0.7))
    assert limit(sectors=asked / 32, tensor=tensor, footprint=asked)[0] == "memory"


def test_more_than_a_unit_can_do_is_not_certain_but_goes_before_memory_behind_caches() -> None:
    """Work that the assembler removes from PTX is counted, too."""
    issued, requests = 1.12 * 4 * CYCLES * 100e-6, 0.78 * CYCLES * 100e-6
    verdict = limiter_verdict(
        replace(NOTHING, instructions=issued, shared=requests, sectors=1.5 * 4.8e12 * 100e-6 / 32), H200
    )
    assert {share.name: share.is_certain for share in verdict.shares} == {
        "memory": False,
        "issue": False,
        "memory (L1)": True,
    }
    assert (verdict.limit, verdict.share) == ("issue", pytest.approx(1.12))


def test_latency_bound_without_a_busy_unit() -> None:
    assert limit(fp32=1000)[0] == "latency"
    assert limit(fp32=1000, blocks=8)[0] == "too small"
    assert limit(fp32=1000, blocks=8, seconds=3e-6)[0] == "launch"


def test_unmeasured_unit_may_be_the_limiter() -> None:
    verdict = limiter_verdict(replace(NOTHING, fp32=1000, tensor=None), H200)
    assert (verdict.limit, verdict.unknown) == (None, ("tensor operations",))
    assert limiter_verdict(replace(NOTHING, seconds=None, fp32=1000), H200).unknown == ("time",)


def test_a_simulated_gpu_has_no_verdict_but_an_order() -> None:
    simulated = peak_rates(Device(0, 8, 1_000_000, "8.0", "Simulated GPU"), simulated=True)
    demand = replace(NOTHING, sectors=1e6, fp32=1000, seconds=None)
    assert limiter_verdict(demand, simulated).limit is None
    first, *_, last = relative_demand(demand, simulated)
    assert (first.unit, first.share, last.unit) == ("memory", 1.0, "fp32")
