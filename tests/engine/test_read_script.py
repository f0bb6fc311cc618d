"""The generated ``read.py``: with nothing but NumPy it reads what our own reader reads."""

from __future__ import annotations

import runpy
import struct
import subprocess
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.engine.kernels import BLOCK_SCHED, toml_probe
from tests.engine.reduced_maps import reduced_bytes
from tui_probe.probe_files.loading import built_in_names, load_probe
from tui_probe.probe_model.probe import Probe
from tui_probe.probe_model.read_script import read_script
from tui_probe.trace.results import read_result

UNKNOWN = 0xFFFFFFFF
TWO_MAPS = toml_probe(
    """
[map.ends]
level = "warp"
regs = { smid = "u32", time = "u64" }
[map.moves]
level = "thread"
cap = 3
regs = { address = "u64", bytes = "u32", line = "u32" }
[probe.p]
position = "ld.global"
before = \"\"\"
SAVE [ ends ] {%smid, %clock64};
SAVE [ moves ] {ADDR, BYTES, %laneid};
\"\"\"
"""
)


def result_file(
    path: Path,
    sizes: list[tuple[int, int]],
    contents: list[bytes],
    marks: list[tuple[int, int, bytes]] = [],  # noqa: B006
) -> Path:
    """A result of 2 × 1 × 2 blocks of 5 × 9 threads. ``sizes``: bytes and threads per slot of each map."""
    head = struct.pack("<8I", 2, 1, 2, 5, 9, 1, 64, len(sizes))
    at = len(head) + 16 * len(sizes)
    for (slot_bytes, divisor), content in zip(sizes, contents, strict=True):
        assert len(content) == 4 * -(-45 // divisor) * slot_bytes
        head += struct.pack("<IIQ", slot_bytes, divisor, at)
        at += len(content)
    body = b"".join([head, *contents])
    if marks:
        body += bytes(-len(body) % 8) + b"records\1"
        body += b"".join(struct.pack("<IIQ", kind, record, len(bits)) for kind, record, bits in marks)
        body += b"".join(bits for _, _, bits in marks)
    path.write_bytes(body)
    return path


def random_bytes(count: int) -> bytes:
    return np.random.default_rng(3).integers(0, 256, count, np.uint8).tobytes()


def two_maps(path: Path, room: int, attempts: list[int]) -> Path:
    """A result of ``TWO_MAPS``, in which warps 0 and 3 saved."""
    counts = np.resize(np.array(attempts, "<u4"), 180)
    contents = [random_bytes(8 * 16), random_bytes(180 * 16 * room), counts.tobytes()]
    marks = [(1, 16, np.packbits([1, 0, 0, 1, 0, 0, 0, 0], bitorder="little").tobytes()), (2, 16, b""), (3, 4, b"")]
    return result_file(path, [(16, 32), (16 * room, 1), (4, 1)], contents, marks)


def names_of(folder: Path, probe: Probe) -> dict[str, Any]:
    """The names of a generated script, run in this process."""
    path = folder / "read.py"
    path.write_text(read_script(probe), encoding="utf-8")
    return runpy.run_path(str(path), run_name="read")


def run_script(folder: Path, probe: Probe, *words: str) -> subprocess.CompletedProcess[str]:
    """Run ``read.py`` in a Python that sees nothing of tui-probe."""
    (folder / "read.py").write_text(read_script(probe), encoding="utf-8")
    command = [sys.executable, "-I", "-W", "error", *(words or ("read.py",))]
    return subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False)


def test_read_script_as_a_module(tmp_path: Path) -> None:
    path = two_maps(tmp_path / "1.bin", 3, [0, 1, 3, 7, UNKNOWN])
    program = (
        "import sys; sys.path.insert(0, '.'); import numpy as np, read; r = read.read('1.bin')\n"
        "print(r.grid, r.block, r.shared_bytes, [n for n in sys.modules if n.startswith('tui')])\n"
        "named = {f'map {n}': a for n, a in r.maps.items()} | {f'is {n}': a for n, a in r.written.items()}\n"
        "np.savez('out.npz', **named)"
    )
    done = run_script(tmp_path, TWO_MAPS, "-c", program)
    assert (done.stdout, done.stderr) == ("(2, 1, 2) (5, 9, 1) 64 []\n", "")
    ours = read_result(path)
    with np.load(tmp_path / "out.npz") as theirs:
        ends, moves, attempts = (theirs[f"map {name}"] for name in ("ends", "moves", "moves.attempts"))
        np.testing.assert_array_equal(ends, ours.records(0, ends.dtype))
        np.testing.assert_array_equal(moves, ours.records(1, moves.dtype))
        np.testing.assert_array_equal(attempts, ours.records(2, "<u4"))
        np.testing.assert_array_equal(theirs["is ends"], ours.written_mask(0))
        np.testing.assert_array_equal(theirs["is moves"], ours.written_mask(1))
        assert (ends.shape, moves.shape, attempts.shape) == ((4, 2, 1), (4, 45, 3), (4, 45, 1))
        assert ends.dtype.names == ("time", "smid")
        assert theirs["is ends"].ravel().tolist() == [True, False, False, True, False, False, False, False]
        saved = theirs["is moves"].sum(axis=2).ravel()[:5].tolist()
        assert saved == [0, 1, 3, 3, 3]  # random bytes are not zeros


def test_a_sample_of_the_blocks(tmp_path: Path) -> None:
    """The 4 blocks of the file are some of a larger grid."""
    path = two_maps(tmp_path / "1.bin", 3, [0, 1, 3])
    data = path.read_bytes()
    sample = struct.pack("<6I", 10, 3, 1, 2, 7, 4)
    data = struct.pack("<3I", 4, 1, 1) + data[12:]
    path.write_bytes(data + bytes(-len(data) % 8) + b"sampled\1" + sample)
    result, ours = names_of(tmp_path, TWO_MAPS)["read"](str(path)), read_result(path)
    assert (result.grid, result.blocks) == (ours.header.grid, ours.blocks) == ((10, 3, 1), range(2, 30, 7))
    np.testing.assert_array_equal(result.maps["moves"], ours.records(1, result.maps["moves"].dtype))
    np.testing.assert_array_equal(result.written["ends"], ours.written_mask(0))
    done = run_script(tmp_path, TWO_MAPS, "read.py", "1.bin")
    assert done.stdout.splitlines()[1] == "  a sample of 4 blocks: 2 to 23 in steps of 7"


def test_script_reads_results_without_an_optional_map(tmp_path: Path) -> None:
    maps = TWO_MAPS.maps[0], replace(TWO_MAPS.maps[1], optional=True)
    probe = replace(TWO_MAPS, maps=maps)
    both = names_of(tmp_path, probe)["read"](str(two_maps(tmp_path / "2.bin", 3, [2])))
    assert list(both.maps) == ["ends", "moves", "moves.attempts"]
    path = result_file(tmp_path / "1.bin", [(16, 32)], [random_bytes(8 * 16)])
    assert list(names_of(tmp_path, probe)["read"](str(path)).maps) == ["ends"]
    with pytest.raises(ValueError, match="not a result file with the 3 maps"):
        names_of(tmp_path, TWO_MAPS)["read"](str(path))


def test_read_script_as_a_program(tmp_path: Path) -> None:
    start = np.arange(8, dtype="<u8") * 10
    record = np.zeros(8, np.dtype("<u8,<u4,<u4"))
    record["f0"], record["f1"], record["f2"] = start, 5, [0, 1] * 4
    result_file(tmp_path / "1.bin", [(16, 32)], [record.tobytes()])
    done = run_script(tmp_path, BLOCK_SCHED, "read.py", "1.bin", "1.bin")
    summary = (
        "1.bin: grid (2, 1, 2), block (5, 9, 1), 64 bytes of dynamic shared memory\n"
        "  block_sched: 8 records; 4 blocks have 2 slots each; a slot has room for 1\n"
        "    start: 0 to 70, mean 35\n"
        "    elapsed: 5 to 5, mean 5\n"
        "    smid: 0 to 1, mean 0.5\n"
    )
    assert (done.stdout, done.stderr) == (2 * summary, "")


def test_a_summary_counts_attempts(tmp_path: Path) -> None:
    two_maps(tmp_path / "1.bin", 3, [2, 7, 0, UNKNOWN])
    done = run_script(tmp_path, TWO_MAPS, "read.py", "1.bin")
    assert "  moves: 360 records; 4 blocks have 45 slots each; a slot has room for 3\n" in done.stdout
    assert "  moves.attempts: 405 in total, at most 7 per slot\n" in done.stdout


def test_without_a_file_it_tells_its_use(tmp_path: Path) -> None:
    done = run_script(tmp_path, BLOCK_SCHED)
    assert done.returncode == 1
    assert "python read.py result/" in done.stderr


@given(room=st.integers(0, 4), attempts=st.lists(st.integers(0, 6) | st.just(UNKNOWN), min_size=1, max_size=9))
def test_the_room_is_that_of_the_launch(
    tmp_path_factory: pytest.TempPathFactory, room: int, attempts: list[int]
) -> None:
    folder = tmp_path_factory.getbasetemp()
    path = two_maps(folder / "room.bin", room, attempts)
    result = names_of(folder, TWO_MAPS)["read"](str(path))
    assert result.maps["moves"].shape == (4, 45, room)
    saved = [room if count == UNKNOWN else min(count, room) for count in np.resize(attempts, 180).tolist()]
    assert result.written["moves"].sum(axis=2).ravel().tolist() == saved


def test_unwritten_slot_is_distinguished_from_a_zero(tmp_path: Path) -> None:
    path = result_file(
        tmp_path / "1.bin",
        [(16, 32)],
        [bytes(128)],
        [(1, 16, np.packbits([1, 1] + [0] * 6, bitorder="little").tobytes())],
    )
    result = names_of(tmp_path, BLOCK_SCHED)["read"](str(path))
    assert result.written["block_sched"].sum() == 2


def test_records_of_sites(tmp_path: Path) -> None:
    """Behind the maps, where the others have their marks."""
    probe = toml_probe(
        """
[map.first]
level = "warp"
regs = { smid = "u32" }
[map.sites]
level = "site"
regs = { lanes = "u64", bytes = "u64" }
[probe.p]
position = "ld.global"
before = "SAVE [ first ] {%smid}; ADD [ sites ] {1, 4};"
"""
    )
    sums = np.array([(7, 28), (3, 12), (0, 0)], "<u8,<u8")
    marks = [(1, 4, b"\x01"), (4, 16, sums.tobytes())]
    path = result_file(tmp_path / "1.bin", [(4, 32), (0, 32)], [bytes(32), b""], marks)
    result = names_of(tmp_path, probe)["read"](str(path))
    assert result.maps["sites"].tolist() == [[[(7, 28), (3, 12), (0, 0)]]]
    assert result.written["sites"].all()
    assert result.written["first"].sum() == 1
    ours = read_result(path).sites(1, sums.dtype)
    np.testing.assert_array_equal(result.maps["sites"].ravel().tolist(), ours.tolist())  # type: ignore[union-attr]
    assert read_result(path).sites(0, sums.dtype) is None
    assert "    bytes: 0 to 28, mean 13.3333" in run_script(tmp_path, probe, "read.py", "1.bin").stdout


@pytest.mark.parametrize("group", ["warp", "block", "launch"])
def test_reduced_map_content(tmp_path: Path, group: str) -> None:
    """Of 4 blocks of 45 threads; one block saved nothing."""
    probe = toml_probe(
        f"""
[map.m]
level = "thread"
reduce = "{group}"
regs = {{ smid = "u32", time = "u64" }}
reduced = {{ first = "min time", smid = "same" }}
[probe.p]
position = "kernel"
before = "SAVE [ m ] {{%smid, %clock64}};"
"""
    )
    (own,) = probe.maps
    assert own.reduction is not None
    slots = np.random.default_rng(1).integers(0, 256, (4, 45, 16), np.uint8)
    saved = np.arange(4 * 45).reshape(4, 45) < 3 * 45
    left = reduced_bytes(own.reduction, slots, saved)
    path = result_file(tmp_path / "1.bin", [(0, 1)], [b""], [(5, 16, left)])
    result = names_of(tmp_path, probe)["read"](str(path))
    shape = {"warp": (4, 2), "block": (4, 1), "launch": (1, 1)}[group]
    record = np.dtype([("first", "<u8"), ("smid", "<u4"), ("rest", "<u4")])
    ours = read_result(path).reduced(0, record)
    assert ours is not None
    assert (result.reduced, result.maps["m"].shape) == ({"m": group}, (*shape, 1))
    np.testing.assert_array_equal(result.maps["m"]["first"][:, :, 0], ours.records["first"])
    np.testing.assert_array_equal(result.written["m"][:, :, 0], ours.saved)
    output = run_script(tmp_path, probe, "read.py", "1.bin").stdout
    groups = shape[0] * shape[1]
    assert f"  m: {groups if group == 'launch' else groups * 3 // 4} of {groups} records, one per {group}" in output


@pytest.mark.parametrize("size", [0, 31, 40, 100])
def test_files_that_are_cut_off(tmp_path: Path, size: int) -> None:
    path = two_maps(tmp_path / "1.bin", 3, [1])
    path.write_bytes(path.read_bytes()[:size])
    with pytest.raises(ValueError):  # noqa: PT011  NumPy's own for an empty file
        names_of(tmp_path, TWO_MAPS)["read"](str(path))
    ended = run_script(tmp_path, TWO_MAPS, "read.py", "1.bin")
    assert ended.returncode == 1
    assert ended.stderr.startswith("1.bin cannot be read as a result: ")


def test_a_file_of_another_probe(tmp_path: Path) -> None:
    path = two_maps(tmp_path / "1.bin", 3, [1])
    with pytest.raises(ValueError, match="not a result file with the 1 maps of this trace"):
        names_of(tmp_path, BLOCK_SCHED)["read"](str(path))


@pytest.mark.parametrize("name", built_in_names())
def test_every_built_in_probe_gets_a_readable_script(tmp_path: Path, name: str) -> None:
    probe = load_probe(name)
    lines = read_script(probe).splitlines()
    assert len(lines) < 195
    assert max(map(len, lines)) <= 120
    maps = names_of(tmp_path, probe)["MAPS"]
    for own_map in probe.maps:
        assert maps[own_map.name].itemsize == own_map.record_bytes
        assert {name: kind[1] for name, kind in maps[own_map.name].fields.items()} == {
            record.name: record.offset for record in own_map.fields
        }


def test_parse_gives_lists_by_map_block_and_slot(tmp_path: Path) -> None:
    path = two_maps(tmp_path / "1.bin", 3, [0, 1, 3])
    header, sections, records = names_of(tmp_path, TWO_MAPS)["parse"](str(path))
    result = names_of(tmp_path, TWO_MAPS)["read"](str(path))
    assert (header.gridDimX, header.gridDimZ, header.blockDimY, header.sharedMemBytes) == (2, 2, 9, 64)
    assert [(record.size, record.warpDiv) for record in sections] == [(16, 32), (48, 1), (4, 1)]
    ends = result.maps["ends"]
    assert len(records["ends"]) == 4
    assert records["ends"][0][0][0].time == ends["time"][0, 0, 0]
    assert [record.smid for block in records["ends"] for slot in block for record in slot] == ends[
        "smid"
    ].ravel().tolist()
    assert records["moves.attempts"][0][1][0].value == 1


def test_parse_of_what_a_run_kept_of_each_block(tmp_path: Path) -> None:
    """One record per block, instead of its warps."""
    script = names_of(tmp_path, BLOCK_SCHED)
    record = script["MAPS"]["block_sched"].metadata["reduced"]
    saved = [(100, 7, 3), (110, 8, 2), (120, 9, 3), (130, 1, 2)]
    left = struct.pack("<II", 2, 16) + np.array(saved, record).tobytes() + b"\x0f"
    path = result_file(tmp_path / "1.bin", [(0, 32)], [b""], [(5, 16, left)])
    blocks = script["parse"](str(path))[2]["block_sched"]
    assert [(block[0][0].start, block[0][0].elapsed, block[0][0].smid) for block in blocks] == saved
