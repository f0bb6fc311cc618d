"""Sites as the engine writes them equal those that a reader finds in ``pruned.ptx``."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from tests.bench.assembling import assembler
from tests.engine.kernels import CORPUS, DATA, entry, toml_probe
from tests.ptx.corpus import CorpusFile
from tests.ptx.images import fatbin_of
from tests.turns import due
from tui_probe.engine.insertion import build_probed_ptx
from tui_probe.engine.kernel import Kernel, function_instructions
from tui_probe.engine.site_file import SiteSources, site_file
from tui_probe.errors import UnsupportedKernelError
from tui_probe.probe_files.loading import load_probe
from tui_probe.ptx.images import find_ptx
from tui_probe.ptx.parser import parse
from tui_probe.ptx.tree import Module
from tui_probe.records.probed_sites import SitesFromPtx
from tui_probe.trace.sites import ProbeSites, Site, SiteInstruction, parse_sites
from tui_probe.trace.source_lines import SourceLine, lines_of_directives

PROBES = {
    name: load_probe(name)
    for name in ("dmat", "nan_check", "inst_mix_by_line", "program_progress", "warp_progress", "gmem_bytes_by_line")
}
CUBINS = ("attn_fwd.sm_90a.cubin", "triton_add.sm_90a.cubin")


def written(kernel: Kernel, probe: str, image: bytes = b"") -> ProbeSites:
    """Contents of the file of a kernel with one probe."""
    notes = build_probed_ptx(kernel, PROBES[probe]).notes
    (sites,) = parse_sites(site_file(probe, kernel, notes, image).encode())
    assert sites.probe == probe
    return sites


def compared(folder: Path, module: Module, image: bytes) -> int:
    """Compare each kernel of a module that takes the probes and calls nothing; how many there were."""
    number = 0
    (folder / "original.bin").write_bytes(image)
    (folder / "original.ptx").write_text(module.source)
    for name in [item.name for item in module.entries()][:6]:
        kernel = Kernel.of(module, name)
        (folder / "pruned.ptx").write_text(kernel.pruned)
        try:
            sites = {probe: written(kernel, probe, image) for probe in PROBES}
        except UnsupportedKernelError:
            continue
        if kernel.bodies != [kernel.entry]:
            continue
        same_as_parsed(sites, SitesFromPtx(folder))
        number += 1
    return number


def same_as_parsed(found: dict[str, ProbeSites], older: SitesFromPtx) -> None:
    parsed = {(instruction.line, instruction.opcode): instruction for instruction in older.instructions()}
    for probe in ("dmat", "gmem_bytes_by_line", "inst_mix_by_line", "nan_check"):
        for instruction in found[probe].instructions():
            assert as_read(instruction) == parsed[instruction.line, instruction.opcode]
    accesses = {line for (line, name) in parsed if parsed[line, name].access and is_global(name)}
    assert {
        instruction.line for instruction in found["dmat"].instructions() if is_global(instruction.opcode)
    } == accesses
    assert list(found["nan_check"].unchecked) == older.unchecked()
    sites = found["inst_mix_by_line"].maps["sites"]
    blocks = older.blocks([site.instruction.line for site in sites])
    assert [[as_read(instruction) for instruction in site.block] for site in sites] == blocks
    assert len(blocks) > 0
    for probe in ("program_progress", "warp_progress"):
        for site in found[probe].sites:
            assert (site.instruction.source or site.following) == older.following(site.instruction.line)


def as_read(instruction: SiteInstruction) -> SiteInstruction:
    """The instruction as a reader of PTX has it, who knows neither names of mbarriers nor calls."""
    return replace(instruction, barrier="", call=None)


def is_global(name: str) -> bool:
    opcode_parts = name.split(".")
    return "global" in opcode_parts and "bulk" not in opcode_parts


@pytest.mark.parametrize("file", due(CORPUS), ids=lambda file: file.name)
def test_the_file_tells_what_the_ptx_does(file: CorpusFile, tmp_path: Path) -> None:
    compared(tmp_path, parse(file.read_text()), file.read_text().encode())


@pytest.mark.parametrize("name", CUBINS)
def test_sources_from_the_line_tables_of_a_cubin(name: str, tmp_path: Path) -> None:
    image = (DATA / name).read_bytes()
    module = parse(find_ptx(image))
    assert compared(tmp_path, module, image) == 1
    sites = written(Kernel.of(module, module.entries()[0].name), "dmat", image).sites
    assert all(site.instruction.source for site in sites)


def instruction_sources(kernel: Kernel, image: bytes) -> list[tuple[SourceLine, ...]]:
    sources = SiteSources(kernel, image)
    return [sources.source_chain(kernel.line_of(own)) for own in function_instructions(kernel.entry)]


@pytest.mark.parametrize(
    ("file", "depth"), due([("numba_warp_sum.sm_80", 2), ("triton_attention.sm_90a", 1), ("torch_softmax.sm_90a", 1)])
)
def test_lines_of_a_line_table_are_those_of_directives(file: str, depth: int, tmp_path: Path) -> None:
    """A fatbin whose cubin keeps its PTX without ``.loc``, as ``nvcc -lineinfo`` leaves it: its line table has the
    lines, and those of the calls that were inlined.
    """
    source, arch = DATA / f"{file}.ptx", file.rpartition(".")[2]
    named = parse(source.read_text())
    name = named.entries()[0].name
    assembler().assemble(source, tmp_path / "kernel.bin", arch, name, lines=True)
    image = fatbin_of(cubin=(int(arch[3:5]), (tmp_path / "kernel.bin").read_bytes()))
    plain = parse(find_ptx(image, name))
    assert not lines_of_directives(plain.source)
    expected, from_table = (instruction_sources(Kernel.of(module, name), image) for module in (named, plain))
    known = [(own, other) for own, other in zip(from_table, expected, strict=True) if own]
    assert 3 * len(known) > len(from_table), "some instructions have no machine code of their own"
    assert max(len(own) for own, _ in known) == depth, "calls that were inlined have their lines"
    assert sum(own == other for own, other in known) > 0.97 * len(known), "ptxas moves some instructions"


BODY = """.reg .b32 %r<3>;
.reg .b64 %rd<2>;
.loc 1 7 1
ld.param.u64 %rd1, [a];
loop:
ld.global.v2.u32 {%r1, %r2}, [%rd1];
.loc 1 9 1
st.global.u32 [%rd1], %r1;
cp.async.ca.shared.global [%r1], [%rd1], 16;
bra loop;"""
PROBE = """
[map.sums]
level = "site"
regs = { times = "u64" }
[map.pace]
level = "warp"
cap = 8
regs = { line = "u32" }
[probe.first]
position = "ld.global:cp.async"
before = "ADD [ sums ] {1};"
[probe.second]
position = "st.global:ld.global"
before = "ADD [ sums ] {1};"
[probe.around]
position = "loop"
before = "SAVE [ pace ] {LINE};"
"""


def test_all_parts_of_a_file() -> None:
    text = '.version 8.0\n.target sm_80\n.address_size 64\n.file 1 "/src/a b.cu"\n'
    text += entry(BODY).partition(".address_size 64\n")[2]
    kernel = Kernel.of(parse(text), "kernel")
    probe = toml_probe(PROBE)
    notes = build_probed_ptx(kernel, probe).notes
    (sites,) = parse_sites(site_file(probe.name, kernel, notes, b"").encode())
    first = kernel.pruned.splitlines().index("ld.param.u64 %rd1, [a];") + 1
    seven, nine = SourceLine("/src/a b.cu", 7), SourceLine("/src/a b.cu", 9)
    load = SiteInstruction(first + 2, "ld.global.v2.u32", "load", "u32", "global", "load", 8, seven)
    store = SiteInstruction(first + 4, "st.global.u32", "store", "u32", "global", "store", 4, nine)
    name = "cp.async.ca.shared.global"
    copy = SiteInstruction(first + 5, name, "load", "", "shared.global", "copy", 16, nine)
    assert sites.sites == (
        Site("instruction", ("first", "second"), load),
        Site("instruction", ("second",), store),
        Site("instruction", ("first",), copy),
        Site("loop", ("around",), load),
    )
    assert sites.maps == {"sums": sites.sites[:3]}
    assert sites.unchecked == ()


def test_instruction_of_toolkit_header_has_its_call() -> None:
    text = '.version 8.0\n.target sm_80\n.address_size 64\n.file 1 "/src/a.cu"\n'
    text += '.file 2 "/usr/local/cuda-13.0/include/sm_30_intrinsics.hpp"\n'
    inlined = BODY.replace(".loc 1 9 1", ".loc 2 202 3, function_name own, inlined_at 1 7 1")
    kernel = Kernel.of(parse(text + entry(inlined).partition(".address_size 64\n")[2]), "kernel")
    probe = toml_probe(PROBE)
    (sites,) = parse_sites(site_file(probe.name, kernel, build_probed_ptx(kernel, probe).notes, b"").encode())
    load, store = sites.sites[0].instruction, sites.sites[1].instruction
    assert (load.source, load.call) == (SourceLine("/src/a.cu", 7), None)
    assert store.source is not None
    assert store.source.line == 202
    assert store.call == SourceLine("/src/a.cu", 7)
