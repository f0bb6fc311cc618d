"""Whole probes: the TOML that they become, PTX that ptxas accepts, and records that can be determined on paper."""

from __future__ import annotations

import tomllib
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from tests.dsl.running import BLOCK, COUNT, GRID, LANES, PROGRAMS, SAXPY, THREADS, probed_saxpy, program, run_saxpy
from tests.golden import golden
from tui_probe.dsl.compiler import compile_tables
from tui_probe.engine.kernel import Kernel, function_instructions
from tui_probe.probe_files.loading import load_probe, read_probe
from tui_probe.probe_files.new_probe import to_toml
from tui_probe.ptx.parser import parse

NAMES = [path.stem for path in PROGRAMS]
WORKS = THREADS < COUNT  # by thread: block 0 holds elements 0 to 47, block 1 the others


@pytest.mark.parametrize("name", NAMES)
def test_the_text(name: str) -> None:
    path = Path(__file__).parent / "programs" / f"{name}.py"
    golden(f"{name}.toml", to_toml(path.read_text(), str(path)))


@pytest.mark.parametrize("name", NAMES)
def test_the_toml_is_the_same_probe(name: str) -> None:
    source = (Path(__file__).parent / "programs" / f"{name}.py").read_text()
    text = to_toml(source)
    assert tomllib.loads(text) == compile_tables(source, "probe.py")
    again = read_probe(text.encode(), Path(f"{name}.toml"))
    probe = program(name)
    assert (again.maps, again.registers, again.about) == (probe.maps, probe.registers, probe.about)
    assert probed_saxpy(again) == probed_saxpy(probe)
    assert probe.source == source


@pytest.mark.parametrize("name", NAMES)
def test_ptxas_accepts(name: str, accepts: Callable[[str], int]) -> None:
    assert accepts(probed_saxpy(program(name))) > 0


def test_block_sched_is_what_the_built_in_probe_is() -> None:
    ours, built_in = program("block_sched"), load_probe("block_sched")
    assert ours.callback == built_in.callback
    assert ours.maps == tuple(
        replace(own_map, reduction=None) for own_map in built_in.maps
    )  # the language has sums only
    np.testing.assert_array_equal(run_saxpy(ours).records["block_sched"], run_saxpy(built_in).records["block_sched"])


def test_block_sched_costs_no_register_more(accepts: Callable[[str], int]) -> None:
    assert accepts(probed_saxpy(program("block_sched"))) <= accepts(probed_saxpy(load_probe("block_sched")))


def test_gmem_bytes() -> None:
    moved = run_saxpy(program("gmem_bytes")).records["moved"]
    np.testing.assert_array_equal(moved["loaded"], np.where(WORKS, 8, 0))
    np.testing.assert_array_equal(moved["stored"], np.where(WORKS, 4, 0))


def test_counts() -> None:
    run = run_saxpy(program("counts"))
    works = WORKS.reshape(GRID, BLOCK)
    threads = np.array([part.size for block in works for part in (block[:32], block[32:])])
    working = np.array([part.sum() for block in works for part in (block[:32], block[32:])])
    sums = run.records["sums"]
    np.testing.assert_array_equal(sums["threads"], threads)
    np.testing.assert_array_equal(sums["large"], threads * 100000)
    np.testing.assert_array_equal(sums["products"], 0)
    np.testing.assert_array_equal(sums["loaded"], working * 8)  # two loads of 4 bytes; those of parameters are left out
    np.testing.assert_array_equal(sums["loads"], working * 2)  # those of parameters are not loads from memory
    pruned = Kernel.of(parse(SAXPY), "saxpy").pruned.splitlines()
    first = next(number for number, line in enumerate(pruned, 1) if "cvta.to.global" in line)
    last = next(number for number, line in enumerate(pruned, 1) if "%f3, [%rd7]" in line)
    np.testing.assert_array_equal(run.records["lines"]["first"], np.where(WORKS, first, 0))
    np.testing.assert_array_equal(run.records["lines"]["last"], np.where(WORKS, last, 0) + 1000 * (LANES % 2))


def test_sites() -> None:
    """Of saxpy two loads and a store, and a block of all threads, one of those that work, and one that all end in."""
    run = run_saxpy(program("sites"))
    assert run.records["accesses"].tolist() == [(COUNT, 4 * COUNT)] * 3
    blocks = run.records["blocks"]
    assert blocks["entered"].tolist() == [GRID * BLOCK, COUNT, GRID * BLOCK]
    body = list(function_instructions(Kernel.of(parse(SAXPY), "saxpy").entry))
    sizes = blocks["held"] // blocks["entered"]
    assert sizes.sum() == len(body)
    assert sizes[-1] == 1


def test_dmat() -> None:
    run = run_saxpy(program("dmat"))
    records = run.records["dmat"]
    y = run.y + 4 * np.arange(COUNT, dtype=np.uint64)
    x = run.x + 4 * np.arange(COUNT, dtype=np.uint64)
    np.testing.assert_array_equal(np.sort(records["address"]), np.sort(np.concatenate([x, y, y])))
    assert run.attempts == {"dmat": 3 * COUNT}
    for address in (int(run.y), int(run.y) + 4 * 69):
        first, second = np.sort(records["time"][records["address"] == address])
        assert first < second


def test_access_mix() -> None:
    run = run_saxpy(program("access_mix"))
    expected = []
    for thread in range(COUNT):
        # x is read, y is read, y is written; the accesses 0 and 2 are kept.
        for number, address in ((0, run.x + 4 * thread), (2, run.y + 4 * thread)):
            within = address % 128
            kind = 1 if within < 32 else 2 if within >= 96 or LANES[thread] == 9 else 3
            expected.append((number, address // 128, kind))
    assert sorted(run.records["kept"].tolist()) == sorted(expected)
    assert run.attempts == {"kept": 2 * COUNT}


def test_loops() -> None:
    sums = run_saxpy(program("loops")).records["sums"]
    for thread, lane in enumerate(LANES.tolist()):
        hashed, down = 0xCBF29CE484222325, 0
        for i in range(12):
            hashed = ((hashed ^ (lane >> i & 1)) * 0x100000001B3) % 2**64
        for i in range(5, -1, -1):
            down = down * 10 + i if lane > i else down
        assert sums[thread].tolist() == (hashed, down, sum(i * j for i in range(4) for j in (1, 4, 7)))


def test_nan_check() -> None:
    x = np.arange(COUNT, dtype=np.float32)
    x[5], x[60] = np.nan, np.inf
    run = run_saxpy(program("nan_check"), x)
    records = run.records["found"]
    assert np.flatnonzero(records["number"]).tolist() == [5, 60]
    assert records["number"].max() == 1
    assert records["address"][[5, 60]].tolist() == [run.y + 20, run.y + 240]
    values = records["bits"][[5, 60]].view(np.float32)
    assert np.isnan(values[0])
    assert values[1] == np.inf


def test_initial_values() -> None:
    values = run_saxpy(program("initial_values")).records["values"]
    np.testing.assert_array_equal(values["counter"], np.where(WORKS, 2**40 + 8, 2**40 + 7).astype(np.uint64))
    np.testing.assert_array_equal(values["low"], np.where(WORKS, 2, 2**32 - 1))
    np.testing.assert_array_equal(values["big"], np.full(GRID * BLOCK, 2**64 - 2, np.uint64))


def test_latency() -> None:
    longest = run_saxpy(program("latency")).records["longest"]
    np.testing.assert_array_equal(longest["loads"], np.where(WORKS, 2, 0))
    # The model's cost of a load from global memory is 200 cycles, and of reading a clock 4.
    np.testing.assert_array_equal(longest["cycles"], np.where(WORKS, 204, 0))


def test_widths() -> None:
    results = run_saxpy(program("widths")).records["results"]
    for thread, lane in enumerate(LANES.tolist()):
        x, amount = lane * 0x10000001 % 2**32, 4 * lane
        assert results[thread].tolist() == (
            x * 0x100000001 % 2**64,
            (x << amount) % 2**64,
            (x * x % 2**64 >> 4) % 2**32,
            x // (lane + 3),
            x * x % 2**64 % 1000003,
            x ^ (2**64 - 1),
            (1 << amount) % 2**32,
            (-(x & 0xFF) % 2**64) ^ (((x | 0xF0) - (x >> 3)) % 2**64),
            (x > 5 and lane != 7) + (x < 3 or lane >= 30),
        )


def test_names() -> None:
    named = run_saxpy(program("names")).records["named"]
    np.testing.assert_array_equal(named["tid"], LANES)
    np.testing.assert_array_equal(named["v0"], LANES + 1 + WORKS)
    np.testing.assert_array_equal(named["clock64"], 2 * (LANES + 1))


def test_two_maps() -> None:
    run = run_saxpy(program("two_maps"))
    # The lowest of the lanes 5, 13, 21, 29 that take the branch saves; the second warp of a block has lanes 0 to 15.
    assert run.records["odd"].tolist() == [(5, 1)] * 4
    np.testing.assert_array_equal(run.records["every"]["lane"], LANES)


def test_operands() -> None:
    run = run_saxpy(program("operands"))
    fma, loaded = run.records["fma"][:COUNT], run.records["loaded"][:COUNT]
    x = np.arange(COUNT, dtype=np.float32)
    np.testing.assert_array_equal(fma["a"].view(np.float32), x)
    np.testing.assert_array_equal(fma["b"].view(np.float32), np.full(COUNT, 2, np.float32))
    np.testing.assert_array_equal(fma["c"].astype(np.uint32).view(np.float32), np.ones(COUNT, np.float32))
    np.testing.assert_array_equal(fma["result"].view(np.float32), 2 * x + 1)
    # Of the two loads the later one, of y, is kept.
    np.testing.assert_array_equal(loaded["address"], run.y + 4 * np.arange(COUNT, dtype=np.uint64))
    one_bits = int(np.float32(1).view(np.uint32))
    np.testing.assert_array_equal(loaded["value"], np.full(COUNT, one_bits + 1, np.uint64))


def test_lines() -> None:
    pruned = Kernel.of(parse(SAXPY), "saxpy").pruned.splitlines()
    lines = [number for number, text in enumerate(pruned, 1) if "ld.global" in text or "st.global" in text]
    records = run_saxpy(program("lines")).records["places"].tolist()
    assert records == [(line, line - 1) for line in lines for _ in range(COUNT)]


def test_constants() -> None:
    assert set(run_saxpy(program("constants")).records["numbers"].tolist()) == {(12, 1, 22)}


def test_a_probe_in_python_is_loaded_by_its_path() -> None:
    path = PROGRAMS[0]
    probe = load_probe(str(path))
    assert (probe.name, probe.path, probe.source) == (path.stem, path, path.read_text())
