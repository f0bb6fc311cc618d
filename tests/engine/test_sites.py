"""Maps of sites: what is inserted, what kernel.info tells, and what is refused."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from tests.engine.kernels import entry, inserted, toml_probe
from tui_probe.engine.insertion import probed_kernel
from tui_probe.engine.kernel import Kernel
from tui_probe.errors import ProbeFileError
from tui_probe.probe_model.storage import Layout, Storage
from tui_probe.ptx.parser import parse
from tui_probe.trace.kernel_files import parse_kernel_info

if TYPE_CHECKING:
    from collections.abc import Callable

FILE = """
[map.m]
level = "{level}"
cap = {cap}
regs = {{ lanes = "u64", more = "{kind}" }}
[probe.p]
position = "{position}"
before = ".reg .b32 %a; .reg .b64 %b; mov.u32 %a, 5; mov.u64 %b, 7; {text}"
[probe.q]
position = "st.global"
before = ".reg .b32 %a; .reg .b64 %b; mov.u32 %a, 5; mov.u64 %b, 7; {other}"
"""
BODY = """.reg .b32 %r<3>;
.reg .b64 %rd<2>;
ld.global.u32 %r1, [%rd1];
st.global.u32 [%rd1], %r1;
ld.shared.u32 %r2, [%r1];
ld.global.u32 %r2, [%rd1]; st.global.u32 [%rd1], %r2;
ret;"""


def file_of(
    text: str, other: str = "", *, level: str = "site", cap: int = 1, kind: str = "u64", position: str = "ld.global"
) -> str:
    return FILE.format(text=text, other=other or text, level=level, cap=cap, kind=kind, position=position)


def test_a_record_an_instruction(accepts: Callable[[str], int]) -> None:
    """Two loads and two stores; the last two are on one line."""
    probe = toml_probe(file_of("ADD [ m ] {1, %a};", "ADD [ m ] {%b, 0};"))
    kernel = Kernel.of(parse(entry(BODY)), "kernel")
    text, info = probed_kernel(kernel, probe)
    first = kernel.pruned.splitlines().index("ld.global.u32 %r1, [%rd1];") + 1
    assert info.splitlines()[2:-1] == [
        "1",
        "1,0",
        "storage 0 sites record 16 cap 4 copies 128",
        f"sites 0 {first} {first + 1} {first + 3} {first + 3}",
    ]
    assert [line for line in inserted(text) if "red." in line] == [
        "red.global.add.u64 [%tp__address], 1;",
        "red.global.add.u64 [%tp__address+8], %tp__sum;",
        "red.global.add.u64 [%tp__address+16], %tp_b;",
        "red.global.add.u64 [%tp__address+32], 1;",
        "red.global.add.u64 [%tp__address+40], %tp__sum;",
        "red.global.add.u64 [%tp__address+48], %tp_b;",
    ]
    assert "mad.wide.u32 %tp__address, %tp__copy, 256, %tp__wide;" in inserted(text)
    accepts(text)


def test_blocks_have_records_of_their_own() -> None:
    """One for each block; the lines are those of their first instructions."""
    probe = toml_probe(file_of("ADD [ m ] {1, 1};", position="block"))
    text = "mov.u32 %r1, %tid.x;\n$again:\nadd.u32 %r1, %r1, 1;\nsetp.lt.u32 %p1, %r1, 9;\n@%p1 bra $again;\nret;"
    kernel = Kernel.of(parse(entry(f".reg .b32 %r<2>;\n.reg .pred %p<2>;\n{text}")), "kernel")
    probed_text, info = probed_kernel(kernel, probe)
    lines = kernel.pruned.splitlines()
    sites = parse_kernel_info(info.splitlines()).sites[0]
    assert [lines[line - 1].strip() for line in sites] == ["mov.u32 %r1, %tid.x;", "add.u32 %r1, %r1, 1;", "ret;"]
    assert probed_text.count("red.global.add.u64") == 2 * 3


def test_two_points_at_an_instruction_share_its_record() -> None:
    probe = toml_probe(file_of("ADD [ m ] {1, %a};", "ADD [ m ] {%b, 0};", position="ld.global:st.global"))
    info = probed_kernel(Kernel.of(parse(entry(BODY)), "kernel"), probe)[1]
    assert "cap 4 copies 128" in info


@pytest.mark.parametrize(
    ("sites", "copies"), [(0, 128), (1, 128), (170, 128), (171, 64), (341, 64), (342, 32), (1000, 16), (10**6, 4)]
)
def test_copies_of_many_sites_are_fewer(sites: int, copies: int) -> None:
    """All copies take at most 1 MiB, unless four take more."""
    storage = Storage(Layout.SITES, 48, sites)
    assert storage.copies == copies
    assert storage.slot_bytes % 256 == 0
    assert 48 * sites <= storage.slot_bytes < 48 * sites + 512


@pytest.mark.parametrize(
    ("text", "words"),
    [
        (file_of("SAVE [ m ] {%a, %b};"), "which needs ADD instead of SAVE"),
        (file_of("ADD [ m ] {1, 1};", position="kernel"), "write ADD at instructions"),
        (file_of("ADD [ m ] {1, 1};", kind="u32"), "make its field more a u64"),
        (file_of("ADD [ m ] {1, 1};", cap=4), "needs a map with cap = 1"),
        (file_of("ADD [ m ] {1, 1};", level="line"), "must be 'thread', 'warp' or 'site'"),
    ],
)
def test_invalid_sites(text: str, words: str) -> None:
    with pytest.raises(ProbeFileError, match=words):
        toml_probe(text)
