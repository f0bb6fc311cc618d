"""A kernel pruned out of a cubin with others: everything of it is the same, and nothing of the others is left."""

from __future__ import annotations

import contextlib
import random
import re
import struct
import subprocess
from typing import TYPE_CHECKING

import pytest

from tests.sass.kernels import LINKED, MANY_PARAMETERS, OWN_TABLE, SAXPY, SEVERAL
from tests.turns import due
from tui_probe.binaries.cubin import Cubin
from tui_probe.binaries.line_tables import cut_table, source_locations
from tui_probe.errors import ImageError
from tui_probe.sass import nv_info
from tui_probe.sass.excerpt import KeptWholeError
from tui_probe.sass.nv_info import read_attributes
from tui_probe.sass.prune import prune_cubin
from tui_probe.sass.target import GraftTarget
from tui_probe.sass.variables import BY_ADDRESS, calls_outside, shared_variables
from tui_probe.sass.words import WORD_BYTES
from tui_probe.toolchain import disassemble, find_disassembler, find_tools

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

    Assemble = Callable[[str, int | str], Cubin]
    Link = Callable[..., Cubin]

ARCHITECTURES = (80, 86, 90, 100)
SYMBOLS_FIRST = {nv_info.PARAMETER_BANK, nv_info.FRAME_SIZE, nv_info.MIN_STACK_SIZE, nv_info.REGISTERS}
CODE_PREFIX = ".text."
_NUMBERED = re.compile(r"\.sectioninfo.*|\.sectionflags.*|\.section\s+\.text.*|//.*")
"""Numbers of sections and symbols in the output of nvdisasm."""


@pytest.fixture(scope="module")
def linked(tmp_path_factory: pytest.TempPathFactory) -> Link:
    """Functions that keep their sections, as nvlink leaves them."""
    assemblers, linkers = find_tools("ptxas"), find_tools("nvlink")
    if not assemblers or not linkers:
        pytest.skip("no ptxas or nvlink on this machine: install nvidia-cuda-nvcc")
    folder = tmp_path_factory.mktemp("linked")

    def link(arch: int, text: str = LINKED) -> Cubin:
        source, relocatable, binary = folder / "a.ptx", folder / "a.o", folder / "a.cubin"
        source.write_text(f".version 8.7\n.target sm_{arch}\n.address_size 64\n{text}")
        subprocess.run([assemblers[0].path, "-c", f"-arch=sm_{arch}", source, "-o", relocatable], check=True)
        subprocess.run([linkers[0].path, f"-arch=sm_{arch}", relocatable, "-o", binary], check=True)
        return Cubin.read(binary.read_bytes())

    return link


def facts(cubin: Cubin, name: str, functions: tuple[str, ...] = ()) -> dict[str, object]:
    """All that the file records about a kernel and functions, by names instead of numbers."""
    names = {CODE_PREFIX + function for function in (name, *functions)}
    own = {section.number for section in cubin.sections if section.name in names}
    content: dict[str, object] = {}
    for section in cubin.sections:
        mine = section.number in own or (section.flags & 0x40 and section.info in own)
        head = section.type, section.flags, section.align, section.size
        if mine and section.type not in (4, 9) and not section.name.startswith(".nv.info"):
            linked = cubin.sections[section.info].name if section.flags & 0x40 else section.info >> 24
            content[section.name] = *head, linked, cubin.content(section)
        elif section.name in (".nv.constant3", ".nv.constant4", ".nv.global", ".nv.global.init", ".nv.compat"):
            content[section.name] = *head, cubin.content(section)
    content["symbols"] = sorted(
        (
            symbol.name,
            symbol.kind,
            symbol.binding,
            symbol.other,
            cubin.sections[symbol.section].name,
            symbol.value,
            symbol.size,
        )
        for symbol in cubin.symbols
        if symbol.section in own or symbol.kind == 1
    )
    content["relocations"] = sorted(
        (table.name, relocation.offset, relocation.kind, cubin.symbol(relocation.symbol).name, str(relocation.addend))
        for table in cubin.relocation_sections()
        for relocation in cubin.relocations(table)
        if table.info in own or cubin.sections[table.info].name in (".nv.constant4", ".nv.global.init")
    )
    content["attributes"] = sorted(attributes(cubin, own), key=str)
    content["calls"] = sorted(calls(cubin, own))
    flags = cubin.header.flags
    content["device"] = flags & 0xFFFFFF, cubin.sections[flags >> 24].name if cubin.is_new_abi else flags
    return content


def attributes(cubin: Cubin, own: set[int]) -> Iterator[tuple[object, ...]]:
    for section in cubin.sections:
        mine = section.name.startswith(".nv.info.") and section.info in own
        if not mine and section.name != ".nv.info":
            continue
        for attribute in read_attributes(cubin.content(section)):
            if attribute.number in SYMBOLS_FIRST:
                symbol = cubin.symbol(attribute.words()[0])
                if mine or symbol.section in own:
                    yield section.name, attribute.number, symbol.name, attribute.value[4:]
            elif attribute.number == nv_info.EXTERNS:
                yield section.name, attribute.number, [cubin.symbol(number).name for number in attribute.words()]
            else:
                yield section.name, attribute.format, attribute.number, attribute.value


def calls(cubin: Cubin, own: set[int]) -> Iterator[tuple[str, str]]:
    """Direct calls, the first group of pairs; the others report functions that are called by their addresses."""
    group = 0
    for caller, callee in struct.iter_unpack("<II", cubin.content(cubin.section(".nv.callgraph"))):
        group = callee if callee >= 0xFFFF0000 else group
        if callee < 0xFFFF0000 and group == 0xFFFFFFFF and cubin.symbol(caller).section in own:
            yield cubin.symbol(caller).name, cubin.symbol(callee).name


@pytest.mark.parametrize("arch", ARCHITECTURES)
def test_all_of_a_kernel_is_the_same_and_the_others_are_gone(assembled: Assemble, arch: int) -> None:
    unpruned = assembled(SEVERAL, arch)
    assert len(unpruned.kernels) == 5
    for name in unpruned.kernels:
        pruned = prune_cubin(unpruned, name, cut_table)
        assert pruned.kernels == (name,)
        assert facts(pruned, name) == facts(unpruned, name)
        others = set(unpruned.kernels) - {name}
        assert not [section.name for section in pruned.sections if any(other in section.name for other in others)]
        assert not [section.name for section in pruned.sections if "debug" in section.name or "merc" in section.name]
        assert GraftTarget.from_cubin(pruned, name).words == GraftTarget.from_cubin(unpruned, name).words
        assert len(pruned.image) < len(unpruned.image) / 2
        assert prune_cubin(pruned, name, cut_table).image == pruned.image
        for section in pruned.sections[1:]:
            assert section.offset % max(section.align, 1) == 0


@pytest.mark.parametrize("arch", due(ARCHITECTURES))
def test_nvidias_tools_read_it_as_the_whole(assembled: Assemble, tmp_path: Path, arch: int) -> None:
    tool, dumpers = find_disassembler(), find_tools("cuobjdump")
    if tool is None:
        pytest.skip("no nvdisasm on this machine: install nvidia-cuda-nvdisasm")
    unpruned = assembled(SEVERAL, arch)
    paths = tmp_path / "unpruned.cubin", tmp_path / "only.cubin"
    paths[0].write_bytes(unpruned.image)
    for name in ("calling", "varied"):
        pruned = prune_cubin(unpruned, name, cut_table)
        paths[1].write_bytes(pruned.image)
        texts = [
            _NUMBERED.sub("", disassemble(tool, path, cubin.kernel_symbol(name).number))
            for path, cubin in zip(paths, (unpruned, pruned), strict=True)
        ]
        assert texts[1] == texts[0]
        for dumper in dumpers[:1]:
            done = subprocess.run([dumper.path, "-elf", paths[1]], capture_output=True, text=True, check=False)
            assert done.returncode == 0, done.stderr
            assert f"sm={arch}" in done.stdout


@pytest.mark.parametrize("arch", [80, 90, 100])
def test_functions_that_are_called_come_along(linked: Link, arch: int) -> None:
    link = linked(arch)
    pruned = prune_cubin(link, "direct", cut_table)
    code = {section.name for section in pruned.sections if section.name.startswith(CODE_PREFIX)}
    assert code == {".text.direct", ".text.outer", ".text.inner"}
    assert facts(pruned, "direct", ("outer", "inner")) == facts(link, "direct", ("outer", "inner"))
    bare = prune_cubin(link, "alone", cut_table)
    assert [section.name for section in bare.sections if section.name.startswith(CODE_PREFIX)] == [".text.alone"]


@pytest.mark.parametrize("arch", [80, 90, 100])
@pytest.mark.parametrize("kernel", ["indirect", "by_table"])
def test_functions_that_are_called_by_the_originals_addresses_stay_there(linked: Link, kernel: str, arch: int) -> None:
    """Relocations of a parameter or of a shared variable: what is left of the variable here is never read."""
    pruned = prune_cubin(linked(arch), kernel, cut_table)
    assert [section.name for section in pruned.sections if section.name.startswith(CODE_PREFIX)] == [f".text.{kernel}"]
    named = {
        pruned.symbol(relocation.symbol).name
        for table in pruned.relocation_sections()
        for relocation in pruned.relocations(table)
    }
    assert not named & {"inner", "outer"}
    target = GraftTarget.from_cubin(pruned, kernel)
    assert target.has_unseen_calls
    assert calls_outside(target) == BY_ADDRESS
    patched = {patch.name for patch in shared_variables(target).patches}
    assert patched >= ({"steps"} if kernel == "by_table" else set())
    assert not GraftTarget.from_cubin(linked(arch), kernel).has_unseen_calls


@pytest.mark.parametrize(
    ("text", "kernel", "words"),
    [
        (LINKED, "telling", r"\.text\.telling contains the address of inner"),
        (OWN_TABLE, "by_own_table", r"\.nv\.global\.init contains the address of outer"),
    ],
    ids=["telling", "by_own_table"],
)
def test_functions_known_by_address_keep_the_cubin_whole(linked: Link, text: str, kernel: str, words: str) -> None:
    with pytest.raises(KeptWholeError, match=words):
        prune_cubin(linked(90, text), kernel, cut_table)


def test_a_function_that_is_left_out_must_not_end_the_kernel(linked: Link) -> None:
    link = linked(90)
    code = link.section(".text.inner")
    at = code.offset + code.size - WORD_BYTES
    ending = bytes.fromhex("4d79000000000000000080030000ea0f0".ljust(32, "0")[:32])
    changed = Cubin.read(link.image[:at] + ending + link.image[at + WORD_BYTES :])
    with pytest.raises(KeptWholeError, match=r"\.text\.inner has an EXIT"):
        prune_cubin(changed, "by_table", cut_table)
    prune_cubin(changed, "alone", cut_table)


@pytest.mark.parametrize(
    ("old", "new", "words"),
    [
        (b".nv.callgraph", b".nv.undergrow", r"unknown section \.nv\.undergrow"),
        (b".note.nv.cuinfo", b".note.nv.others", "the file has unknown flags"),
        (struct.pack("<BBH", 4, 0x1C, 8), struct.pack("<BBH", 4, 0x7E, 8), "unknown attribute 0x7e"),
    ],
    ids=["section", "flags", "attribute"],
)
def test_unknown_section_keeps_the_cubin_whole(assembled: Assemble, old: bytes, new: bytes, words: str) -> None:
    unpruned = assembled(SEVERAL, 90)
    assert old in unpruned.image
    with pytest.raises(KeptWholeError, match=words):
        prune_cubin(Cubin.read(unpruned.image.replace(old, new)), "saxpy", cut_table)


def test_a_cubin_with_one_kernel_stays_as_it_is(assembled: Assemble) -> None:
    cubin = assembled(SAXPY, 90)
    assert prune_cubin(cubin, "saxpy", cut_table) is cubin


def test_lines_of_the_kernel_stay(tmp_path: Path) -> None:
    tools = find_tools("ptxas")
    if not tools:
        pytest.skip("no ptxas on this machine: install nvidia-cuda-nvcc")
    text = '.version 8.1\n.target sm_90\n.address_size 64\n.file 1 "/src/one.cu"\n.file 2 "/src/two.cu"\n'
    text += SAXPY.replace("@%p1 exit;", ".loc 1 12 3\n@%p1 exit;\n.loc 2 7 1\n")
    text += MANY_PARAMETERS.replace("st.global", ".loc 2 40 1\nst.global")
    source, binary = tmp_path / "a.ptx", tmp_path / "a.cubin"
    source.write_text(text)
    subprocess.run([tools[0].path, "-arch=sm_90", "-lineinfo", source, "-o", binary], check=True)
    unpruned = Cubin.read(binary.read_bytes())
    for name, lines in (("saxpy", {12, 7}), ("many", {40})):
        pruned, size = prune_cubin(unpruned, name, cut_table), unpruned.kernel_symbol(name).size
        places = source_locations(pruned.image, name, size)
        assert places == source_locations(unpruned.image, name, size)
        assert {line for _, line in places.values()} == lines
        assert pruned.section(".debug_line").size < unpruned.section(".debug_line").size


def test_damaged_files_are_refused_or_pruned(assembled: Assemble) -> None:
    unpruned, chance = assembled(SEVERAL, 90), random.Random(5)
    code = [(section.offset, section.end) for section in unpruned.sections if section.name.startswith(CODE_PREFIX)]
    data_bytes = [at for at in range(len(unpruned.image)) if not any(start <= at < end for start, end in code)]
    for _ in range(300):
        image = bytearray(unpruned.image)
        for at in chance.sample(data_bytes, 3):
            image[at] = chance.choice((0, 1, 0x7F, 0xFF, chance.randrange(256)))
        with contextlib.suppress(ImageError, KeptWholeError):
            assert "varied" in prune_cubin(Cubin.read(bytes(image)), "varied", cut_table).kernels
