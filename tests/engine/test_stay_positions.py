"""Places in SASS at which a warp may stay: barriers, mbarriers, polled memory, locks, loops that no count ends."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from tests.gpu.programs import deadlocks
from tui_probe.binaries.cubin import Cubin
from tui_probe.engine.assembler import Assembler
from tui_probe.engine.grafting.grafts import Grafter
from tui_probe.engine.grafting.stay_positions import stay_instructions
from tui_probe.errors import UnsupportedKernelError
from tui_probe.probe_files.loading import load_probe
from tui_probe.sass.operations import known_access, mnemonic, operation_name
from tui_probe.sass.target import GraftTarget
from tui_probe.trace.sites import parse_sites

if TYPE_CHECKING:
    from pathlib import Path

pytestmark = pytest.mark.usefixtures("ptxas")

LOOPS = """
.visible .entry halved(.param .u64 memory)
{
    .reg .pred %p<3>; .reg .b32 %r<6>; .reg .b64 %rd<3>;
    ld.param.u64 %rd1, [memory];
    ld.global.u32 %r1, [%rd1];
    mov.u32 %r3, 0;
AGAIN:
    mul.lo.u32 %r1, %r1, %r1;
    xor.b32 %r1, %r1, 1234567;
    setp.ne.u32 %p1, %r1, 1;
    @%p1 bra AGAIN;
    st.global.u32 [%rd1], %r1;
    ret;
}
.visible .entry counted(.param .u64 memory, .param .u32 n)
{
    .reg .pred %p<3>; .reg .b32 %r<6>; .reg .b64 %rd<3>;
    ld.param.u64 %rd1, [memory];
    ld.param.u32 %r2, [n];
    mov.u32 %r1, 0;
    mov.u32 %r3, 7;
AGAIN:
    mul.lo.u32 %r3, %r3, %r3;
    xor.b32 %r3, %r3, 1234567;
    add.u32 %r1, %r1, 1;
    setp.lt.u32 %p1, %r1, %r2;
    @%p1 bra AGAIN;
    st.global.u32 [%rd1], %r3;
    ret;
}
"""


def assembled(text: str, arch: int, folder: Path) -> Cubin:
    source, image = folder / "kernel.ptx", folder / "kernel.cubin"
    source.write_text(text)
    Assembler().assemble(source, image, f"sm_{arch}", "")
    return Cubin.read(image.read_bytes())


def operations(cubin: Cubin, name: str) -> list[str]:
    """The operations at which a warp of a kernel may stay, with the modifier of their position."""
    target = GraftTarget.from_cubin(cubin, name)
    stays = sorted(stay_instructions(target).items())
    return [f"{operation_name(target.words[index], target.arch)} {stay.modifiers[0]}" for index, stay in stays]


@pytest.mark.parametrize("arch", [80, 90])
@pytest.mark.parametrize(
    ("kind", "expected"),
    [
        ("mbarrier", {"SYNCS other", "BAR other"}),
        ("grid", {"BAR other", "LD access", "LDG access", "ATOMG access"}),
        ("lock", {"ATOMG access", "ATOM access"}),
    ],
)
def test_deadlocks_have_their_operations(arch: int, kind: str, expected: set[str], tmp_path: Path) -> None:
    cubin = assembled(deadlocks.HEAD + deadlocks.SHAPES[kind][0] + deadlocks.FILE, arch, tmp_path)
    places = operations(cubin, kind)
    assert places
    if not (arch == 80 and kind == "mbarrier"):  # a shared atomic there
        assert set(places) <= expected
    assert operations(cubin, "finished") == []


def test_loop_that_a_count_ends_is_no_place(tmp_path: Path) -> None:
    cubin = assembled(deadlocks.HEAD + LOOPS, 90, tmp_path)
    assert operations(cubin, "counted") == []
    assert [place.partition(" ")[2] for place in operations(cubin, "halved")] == ["other"]


@pytest.mark.parametrize("arch", [80, 86, 90])
@pytest.mark.parametrize("kind", ["mbarrier", "grid", "lock"])
def test_watchdog_is_grafted_at_each_place(arch: int, kind: str, tmp_path: Path) -> None:
    text = (deadlocks.HEAD + deadlocks.SHAPES[kind][0] + deadlocks.FILE).replace("7.8", "8.6")
    cubin = assembled(text, arch, tmp_path)
    grafter = Grafter(load_probe("stuck_warps"), Assembler(), samples_blocks=False)
    grafted = grafter.graft(cubin, kind)
    (probe,) = parse_sites(grafted.sites.encode()) or ()
    assert [site.points for site in probe.sites] == [
        ("stay_at_access",) if place.endswith("access") else ("stay",) for place in operations(cubin, kind)
    ]
    assert Cubin.read(grafted.probed_image).image != cubin.image
    with pytest.raises(UnsupportedKernelError, match="the kernel has no waits"):
        grafter.graft(cubin, "finished")


def test_atomic_of_unknown_form_is_a_place_without_address(tmp_path: Path) -> None:
    """Bits of the type that are not known make its address unknown, not the kernel."""
    cubin = assembled(deadlocks.HEAD + deadlocks.SHAPES["lock"][0] + deadlocks.FILE, 90, tmp_path)
    target = GraftTarget.from_cubin(cubin, "lock")
    index = next(i for i, stay in stay_instructions(target).items() if operation_name(target.words[i], 90) == "ATOMG")
    unknown = target.words[index].with_field(73, 3, 7)
    assert known_access(target.words[index], 90) is not None
    assert known_access(unknown, 90) is None
    assert mnemonic(unknown, 90) == "ATOMG"
