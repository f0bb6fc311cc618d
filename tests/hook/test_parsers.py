"""The hook's parsers never read outside what they are given, no matter what it is."""

from __future__ import annotations

import struct
import subprocess
from collections.abc import Sequence
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from .conftest import Build
from .object_files import compile_with_hook
from .test_images import CODE, PACKED, PLAIN, PTX, elf, fatbin

HERE = Path(__file__).resolve().parent
ELSEWHERE = struct.pack("<HHIQIIHHI", 2, 1, 64, 4, 0, 0, 0, 0, 90).ljust(64, b"\0") + b"code"
SEEDS = [
    fatbin(ELSEWHERE, PLAIN),
    PTX,
    elf({".text": b"abc", ".nv_debug_ptx_txt": PTX}),
    fatbin(CODE, PLAIN, PACKED),
    b"\n// x\n" + PTX,
]


@pytest.fixture(scope="module")
def parsers(built: Build, tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("parsers") / "parsers"
    flags = ["-g1", "-O0", "-fsanitize=address,undefined", "-fno-sanitize-recover=all"]
    compile_with_hook(built, HERE / "parsers_program.c", path, *flags)
    return path


def parse(program: Path, kind: int, inputs: list[bytes]) -> list[list[str]]:
    """Return the parsers' output for each input."""
    data = b"".join(struct.pack("<II", kind, len(content)) + content for content in inputs)
    environment = {"ASAN_OPTIONS": "detect_leaks=0"}
    run = subprocess.run([program], input=data, capture_output=True, check=False, env=environment)
    assert run.returncode == 0, run.stderr.decode()
    return [line.split() for line in run.stdout.decode().splitlines()]


@st.composite
def damaged(draw: st.DrawFn) -> bytes:
    """An image with some of its bytes changed, cut off, or repeated."""
    image = bytearray(draw(st.sampled_from(SEEDS)))
    for _ in range(draw(st.integers(0, 6))):
        at = draw(st.integers(0, len(image) - 1))
        image[at : at + draw(st.integers(0, 8))] = draw(st.binary(max_size=8) | st.just(b"\xff" * 8))
        image = image or bytearray(b"\0")
    return bytes(image[: draw(st.integers(0, len(image)) | st.just(len(image)))])


SOME = settings(
    max_examples=25, deadline=None, suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large]
)


@SOME
@given(images=st.lists(damaged() | st.binary(max_size=200), min_size=1, max_size=30))
def test_images(parsers: Path, images: list[bytes]) -> None:
    for (name, size, kept, _), image in zip(parse(parsers, 0, images), images, strict=True):
        assert name in {"elf", "fatbin", "warpped_fatbin", "ptx", "unknown"}
        assert int(kept) <= int(size) <= len(image)


@pytest.mark.parametrize(("kind", "has_bytes"), [(1, True), (8, False), (0x70000007, False), (0x7000000A, False)])
def test_sections_without_content_end_nowhere(parsers: Path, kind: int, has_bytes: bool) -> None:
    """Memory without initial values has a size, but nothing of it is in the file."""
    image = bytearray(elf({".nv.shared": b""}))
    section = len(image) - 2 * 64
    struct.pack_into("<I", image, section + 4, kind)
    struct.pack_into("<Q", image, section + 32, 1 << 20)
    ((name, size, *_),) = parse(parsers, 0, [bytes(image)])
    assert (name, size == str(len(image))) == ("elf", not has_bytes)


@SOME
@given(
    entries=st.lists(st.tuples(st.integers(0, 4), st.binary(max_size=60), st.integers(16, 80)), max_size=8),
    tail=st.binary(max_size=15),
)
def test_fatbins_keep_exactly_their_ptx_entries(
    parsers: Path, entries: list[tuple[int, bytes, int]], tail: bytes
) -> None:
    made = [
        (kind, struct.pack("<HHIQ", kind, 1, header, len(payload)).ljust(header, b"\7") + payload)
        for kind, payload, header in entries
    ]
    image = fatbin(*[entry for _, entry in made])
    ptx_entries = [entry for kind, entry in made if kind == 1]
    expected = fatbin(*ptx_entries) if ptx_entries else b""
    assert parse(parsers, 0, [image + tail]) == [["fatbin", str(len(image)), str(len(expected)), str(sum(expected))]]


@SOME
@given(images=st.lists(damaged() | st.binary(max_size=200), min_size=1, max_size=30), device=st.integers(1, 130))
def test_machine_code_of_any_bytes(parsers: Path, images: list[bytes], device: int) -> None:
    for (verdict, *_), image in zip(
        parse(parsers, 3, [struct.pack("<I", device) + image for image in images]), images, strict=True
    ):
        assert int(verdict) in range(4), image


@SOME
@given(
    entries=st.lists(
        st.tuples(st.integers(1, 3), st.sampled_from((75, 80, 86, 90, 91, 100, 103, 120)), st.binary(max_size=40)),
        max_size=8,
    ),
    device=st.sampled_from((80, 86, 90, 103)),
)
def test_fatbins_keep_what_a_device_can_run(parsers: Path, entries: list[tuple[int, int, bytes]], device: int) -> None:
    made = [
        (kind, target, struct.pack("<HHIQIIHHI", kind, 1, 64, len(code), 0, 0, 0, 0, target).ljust(64, b"\7") + code)
        for kind, target, code in entries
    ]
    code = [each for kind, target, each in made if kind == 2 and target // 10 == device // 10 and target <= device]
    ptx = [each for kind, _, each in made if kind == 1]
    targets = [target for kind, target, _ in made if kind == 1]
    image = (fatbin(*ptx) if ptx else b"") + (fatbin(*code) if code else b"")
    ((verdict, outcome, size, total, _),) = parse(
        parsers, 3, [struct.pack("<I", device) + fatbin(*[each for *_, each in made])]
    )
    loaded = [target for kind, target, _ in made if kind == 2 and target // 10 == device // 10 and target <= device]
    assert int(verdict) == image_verdict(targets, loaded, device)
    if any(kind == 2 for kind, *_ in made):
        assert (outcome, int(size), int(total)) == ("made" if image else "refused", len(image), sum(image))


def image_verdict(targets: Sequence[int], loaded: Sequence[int], device: int) -> int:
    """The best verdict for its PTX; 4: it runs, but the device loads SASS for another target."""
    verdicts = {target: ptx_verdict(target, device) for target in targets}
    best = max(verdicts.values(), default=0)
    newest = max((target for target, verdict in verdicts.items() if verdict == 3), default=0)
    return 4 if best == 3 and loaded and max(loaded) != newest else best


def ptx_verdict(target: int, device: int) -> int:
    """1: for newer devices; 2: only the text tells; 3: it runs."""
    if target > device:
        return 1
    return 3 if target == device or target < 90 else 2


@SOME
@given(
    patches=st.lists(
        st.tuples(
            st.sampled_from(("abs64", "abs32lo", "abs32hi")),
            st.integers(0, 2**64 - 1),
            st.integers(-(2**63) + 1, 2**63 - 1),
            st.from_regex(r"\A[A-Za-z_$.][A-Za-z0-9_$.]{0,20}\Z"),
        ),
        max_size=20,
    ),
    constants=st.lists(
        st.tuples(st.from_regex(r"\A[A-Za-z_$][A-Za-z0-9_$]{0,20}\Z"), st.integers(1, 1 << 16)), max_size=20
    ),
)
def test_patches_and_constants_round_trip(
    parsers: Path, patches: list[tuple[str, int, int, str]], constants: list[tuple[str, int]]
) -> None:
    lines = ["add", "0", "0", "way graft", "grafted 0 128 appended 4096"]
    lines += [f"patch {kind} {offset} {addend} {name}" for kind, offset, addend, name in patches]
    lines += [f"constant {name} {size}" for name, size in constants]
    kinds = ("abs64", "abs32lo", "abs32hi")
    expected = [f"{kinds.index(kind)}:{offset}:{addend}:{name}" for kind, offset, addend, name in patches]
    expected += [f"{name}:{size}" for name, size in constants]
    assert parse(parsers, 1, ["\n".join(lines).encode()]) == [["read", "0", "0", "0", *expected, "graft"]]


@pytest.mark.parametrize(
    "line",
    [
        "way", "way ", "way sass", "patch", "patch abs64", "patch abs64 0", "patch abs64 0 0", "patch abs64 0 0 ",
        "patch abs64 -1 0 x", "patch abs64 0 --1 x", "patch abs64 0 0 x y", "patch abs64 1x 0 x", "patch  0 0 x",
        "patch abs64 18446744073709551616 0 x", "patch abs 0 0 x", "constant", "constant x", "constant x 0",
        "constant x -1", "constant x 65537", "constant x 4 y", "constant  4",
    ],
)  # fmt: skip
def test_lines_of_machine_code_that_mean_nothing(parsers: Path, line: str) -> None:
    ((found, *_),) = parse(parsers, 1, [f"add\n0\n0\n{line}\n".encode()])
    assert found == ("read" if line in ("way", "patch", "constant") else "refused")


@SOME
@given(texts=st.lists(st.binary(max_size=80) | st.text("0123456789,-\n add", max_size=40).map(str.encode), max_size=30))
def test_kernel_info_of_any_bytes(parsers: Path, texts: list[bytes]) -> None:
    assert len(parse(parsers, 1, [*texts, *[b"add\n" + text for text in texts]])) == 2 * len(texts)


@SOME
@given(
    parameters=st.integers(0, 300),
    maps=st.lists(st.tuples(st.integers(0, 1), st.integers(1, 2**32 - 1)), max_size=100),
    variables=st.lists(st.from_regex(r"\A[A-Za-z_$][A-Za-z0-9_$]{0,20}\Z"), max_size=20),
)
def test_kernel_info_round_trip(
    parsers: Path, parameters: int, maps: list[tuple[int, int]], variables: list[str]
) -> None:
    lines = [
        "add",
        str(parameters),
        str(len(maps)),
        *[f"{level},{size}" for level, size in maps],
        "callback block_sched",
    ]
    text = "\n".join(lines + [f"global {name}" for name in variables]) + "\n"
    assert parse(parsers, 1, [text.encode()]) == [["read", str(parameters), str(len(maps)), str(len(variables))]]


@pytest.mark.parametrize(
    ("maps", "storage", "outcome"),
    [
        (["0,-1", "0,4"], ["0 rows record 16 cap 0", "1 counts"], "read"),
        (["1,64", "1,4", "1,16"], ["0 queue record 16 cap 4", "1 counts", "2 marked record 16 cap 1"], "read"),
        (["1,0", "1,16"], ["0 sites record 16 cap 4 copies 64", "1 marked record 16 cap 1"], "read"),
        (["1,0"], ["0 sites record 16 cap 0 copies 64"], "read"),  # no such instruction
        (["1,0"], ["0 sites record 24 cap 4 copies 64 max 16"], "read"),
        (["1,0"], ["0 sites record 24 cap 4 copies 64 max 24"], "refused"),
        (["1,0"], ["0 sites record 24 cap 4 copies 64 max 4"], "refused"),
        (["1,0"], ["0 sites record 16 cap 4 copies 0"], "refused"),
        (["1,0"], ["0 sites record 16 cap 4"], "refused"),
        (["1,0"], ["0 sites record 12 cap 4 copies 64"], "refused"),
        (["1,16"], ["0 sites record 16 cap 4 copies 64"], "refused"),
        (["0,0"], ["0 sites record 16 cap 4 copies 64"], "refused"),
        (["1,0"], ["0 marked record 16 cap 4 copies 64"], "refused"),
        (["1,0"], [], "refused"),
        (["0,-1", "0,4"], ["0 rows record 16 cap 0 even", "1 counts"], "read"),
        (["0,-1", "0,4"], ["0 rows record 8 cap 0 even", "1 counts"], "refused"),
        (["0,-1", "0,4"], ["0 rows record 16 cap 0 even so", "1 counts"], "refused"),
        (["0,16"], ["0 marked record 16 cap 1 even"], "refused"),
        (["0,-1", "0,4"], ["0 rows record 16 cap 0"], "refused"),  # nothing counts
        (["0,-1", "0,8"], ["0 rows record 16 cap 0", "1 counts"], "refused"),
        (["0,-1", "1,4"], ["0 rows record 16 cap 0", "1 counts"], "refused"),
        (["1,-1", "1,4"], ["0 rows record 16 cap 0", "1 counts"], "refused"),
        (["0,-1", "0,4"], ["0 queue record 16 cap 0", "1 counts"], "refused"),
        (["0,4", "0,4"], ["0 counts"], "refused"),
        (["0,16", "0,4"], ["0 marked record 16 cap 1", "1 counts"], "refused"),
        (["0,16"], ["0 marked record 16 cap 0"], "refused"),
        (["0,16"], ["0 marked record 0 cap 1"], "refused"),
        (["0,16"], ["0 marked record 18 cap 1"], "refused"),
        (["0,16"], ["0 marked"], "refused"),
        (["0,16"], ["1 marked record 16 cap 1"], "refused"),
        (["0,16"], ["0 heap record 16 cap 1"], "refused"),
        (["0,-1"], [], "refused"),
    ],
)
def test_storage_lines_go_with_their_maps(parsers: Path, maps: list[str], storage: list[str], outcome: str) -> None:
    lines = ["add", "2", str(len(maps)), *maps, *[f"storage {kind}" for kind in storage]]
    ((found, *_),) = parse(parsers, 1, ["\n".join(lines).encode()])
    assert found == outcome


@pytest.mark.parametrize(
    ("maps", "lines", "outcome"),
    [
        (["1,16"], ["storage 0 marked record 16 cap 1", "reduce 0 block record 8 min:u64@0:u64@0"], "read"),
        (["0,4"], ["reduce 0 warp record 8 sum:u64@0:u32@0"], "read"),
        (["1,4", "1,8"], ["reduce 1 launch record 8 max:u64@0:u64@0"], "read"),
        (["1,4"], ["reduce 0 warp record 8 sum:u64@0:u32@0"], "refused"),  # it has one per warp
        (["1,4"], ["storage 0 folded record 4 cap 1", "reduce 0 launch record 8 sum:u64@0:u32@0"], "read"),
        (["1,4"], ["storage 0 folded record 4 cap 1", "reduce 0 block record 8 sum:u64@0:u32@0"], "refused"),
        (["1,4"], ["storage 0 folded record 4 cap 1"], "refused"),  # its slots are of no warp
        (["0,4"], ["storage 0 folded record 4 cap 1", "reduce 0 launch record 8 sum:u64@0:u32@0"], "refused"),
        (["1,4"], ["reduce 1 block record 8 sum:u64@0:u32@0"], "refused"),
        (["1,4"], ["reduce 0 block record 8 sum:u64@0:u32@4"], "refused"),
        (["1,4"], ["reduce 0 block record 8 sum:u64@0:u32@0"] * 2, "refused"),
        (["1,4"], ["reduce 0"], "refused"),
        (["1,4"], ["reduce block record 8 sum:u64@0:u32@0"], "refused"),
        (
            ["1,-1", "1,4"],
            ["storage 0 queue record 8 cap 0", "storage 1 counts", "reduce 0 block record 8 sum:u64@0:u64@0"],
            "refused",
        ),
        (["1,0"], ["storage 0 sites record 8 cap 4 copies 64", "reduce 0 launch record 8 sum:u64@0:u64@0"], "refused"),
    ],
)
def test_only_maps_of_one_record_are_reduced(parsers: Path, maps: list[str], lines: list[str], outcome: str) -> None:
    ((found, *_),) = parse(parsers, 1, ["\n".join(["add", "2", str(len(maps)), *maps, *lines]).encode()])
    assert found == outcome


LEAST_MAPS = ["1,0", "1,4"]
SITES_AND_SUM = ["storage 0 sites record 16 cap 4 copies 64", "reduce 1 launch record 8 sum:u64@0:u32@0"]


@pytest.mark.parametrize(
    ("lines", "outcome"),
    [
        ([*SITES_AND_SUM, "least 0 percent 1 of 1"], "read"),
        ([*SITES_AND_SUM, "least 0 percent 0 of 1"], "refused"),
        ([*SITES_AND_SUM, "least 0 percent 101 of 1"], "refused"),
        ([*SITES_AND_SUM, "least 1 percent 1 of 1"], "refused"),  # it has no sites
        ([*SITES_AND_SUM, "least 0 percent 1 of 2"], "refused"),
        ([*SITES_AND_SUM, "least 0 percent 1"], "refused"),
        (["least 0 percent 1 of 1", *SITES_AND_SUM], "refused"),
        ([SITES_AND_SUM[0], "reduce 1 block record 8 sum:u64@0:u32@0", "least 0 percent 1 of 1"], "refused"),
        ([SITES_AND_SUM[0], "reduce 1 launch record 8 max:u32@0:u32@0", "least 0 percent 1 of 1"], "refused"),
    ],
)
def test_least_share_is_of_sites_in_the_sum_of_a_launch(parsers: Path, lines: list[str], outcome: str) -> None:
    ((found, *_),) = parse(parsers, 1, ["\n".join(["add", "2", "2", *LEAST_MAPS, *lines]).encode()])
    assert found == outcome


def sampled(spec: str, blocks: int) -> range | None:
    """The blocks of a sample as the help tells them; None if it is not a sample."""
    one, slash, step = spec.partition("/")
    first, dash, last = spec.partition("-")
    if slash:
        return range(0, blocks, int(step)) if one == "1" and int(step) else None
    if dash:
        return range(int(first), min(int(last) + 1, blocks)) if int(first) <= int(last) else None
    if not int(one):
        return None
    blocks_each = max(blocks // int(one), 1)
    blocks_each -= blocks_each >= 16 and blocks_each % 2 == 0
    return range(0, blocks_each * min(int(one), blocks), blocks_each)


@SOME
@given(
    specs=st.lists(
        st.tuples(st.from_regex(r"\A(1/[0-9]{1,4}|[0-9]{1,3}-[0-9]{1,4}|[0-9]{1,4}|2/3)\Z"), st.integers(1, 5000)),
        max_size=30,
    )
)
def test_samples(parsers: Path, specs: list[tuple[str, int]]) -> None:
    samples = parse(parsers, 2, [f"{spec} {blocks}".encode() for spec, blocks in specs])
    for (outcome, *numbers), (spec, blocks) in zip(samples, specs, strict=True):
        expected = sampled(spec, blocks)
        assert (outcome == "read") == (expected is not None)
        if expected is not None:
            first, step, count = map(int, numbers)
            assert list(range(first, first + step * count, step)) == list(expected)


@pytest.mark.parametrize("spec", ["", "x", "1/", "1/0", "/4", "-3", "4-", "5-4", "0", "1/4x", "1 / 4", "-1", "2/4"])
def test_invalid_samples(parsers: Path, spec: str) -> None:
    """Then all blocks are measured."""
    assert parse(parsers, 2, [f"{spec} 100".encode()]) == [["refused", "0", "1", "100"]]
