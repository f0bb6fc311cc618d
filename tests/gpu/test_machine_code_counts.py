"""Counts of counting probes in SASS equal those by PTX, the hardware's counters, and the numbers on paper; and the
kernels leave the same memory behind.
"""

from __future__ import annotations

import importlib.util
import struct
import subprocess
import sys
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path

import pytest

from tests.bench.verdicts import base, built
from tui_probe.binaries.cubin import Cubin
from tui_probe.cuda_driver import DRIVER_LIBRARY
from tui_probe.engine.assembler import Assembler
from tui_probe.engine.grafting.grafts import GraftedKernel, Grafter
from tui_probe.engine.insertion import probed_kernel
from tui_probe.engine.kernel import Kernel
from tui_probe.engine.trial.graft_trial import CudaContext
from tui_probe.probe_files.loading import load_probe
from tui_probe.probe_model.probe import Probe
from tui_probe.probekit.measured import analyse_results
from tui_probe.probes import tensorop_count, what_limits
from tui_probe.probes.dmat.accesses import read_accesses
from tui_probe.probes.dmat.boxes import read_boxes
from tui_probe.probes.dmat.coalescing import by_line
from tui_probe.probes.gmem_sectors import analysis as gmem_sectors
from tui_probe.ptx.parser import parse
from tui_probe.trace.device_memory import LaunchMemory
from tui_probe.trace.follow import open_trace
from tui_probe.trace.model import Kernel as TracedKernel
from tui_probe.trace.results import read_result

from .conftest import PROGRAMS, Runner, nvcc_program, tool
from .test_counts import METRICS, Counted, counters_of

ARCH = 90
BLOCKS, THREADS = 32, 256
WARPS = BLOCKS * THREADS // 32
MEMORY = BLOCKS * THREADS * 128
SITE_BYTES = 4 << 20
"""More than all copies of the records of a kernel's sites take."""
SOURCES = {"gmem_sectors": "memory_patterns", "gmem_bytes": "memory_patterns", "tensorop_count": "matrix_products"}
"""By probe the program with kernels for it."""
BY_LINE = {**SOURCES, "divergence": "memory_patterns"}
"""The same, with a probe whose counts of branches PTX does not have."""
# Accesses without a space may be known to be global in machine code, and how many passes a loop takes whose lanes leave
# one after another depends on where the compiled code lets them meet again.
DIFFERENT = {"generic_copy", "loop_of_lanes"}
UNORDERED = {"atomics"}
"""Sums of floats depend on the order of additions."""
ON_PAPER = {
    ("gmem_sectors", "coalesced_store"): {"store_requests": 256, "store_sectors": 1024},
    ("tensorop_count", "half_products"): {"mma": WARPS * 32, "multiply_adds": WARPS * 16 * 8 * 16},
    ("tensorop_count", "integer_products"): {"mma": 2 * WARPS * 32, "multiply_adds": 2 * WARPS * 16 * 8 * 32},
}
EXECUTED = {
    "smsp__inst_executed.sum": "instructions",
    **{f"smsp__sass_thread_inst_executed_op_{name}_pred_on.sum": name
       for name in ("ffma", "fadd", "fmul", "dfma", "dadd", "dmul")},
}  # fmt: skip
NEARLY = 0.01
"""Lanes that wait for each other at a call may be issued it in more groups than come out of it."""
LIBRARIES = {
    "PyTorch": ("elementwise",),
    "cuBLAS": ("gemm", "nvjet"),
    "cuDNN": ("cudnn", "conv", "fprop"),
}
"""Parts of the names of kernels."""


@dataclass
class Images:
    """The same kernels as machine code only and as PTX."""

    cubin: Cubin
    ptx: str

    def kernel(self, name: str) -> Kernel:
        return Kernel.of(parse(self.ptx), name)


@pytest.fixture(scope="module")
def images(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Images]:
    """By program."""
    folder, jobs = tmp_path_factory.mktemp("images"), []
    for program in sorted(set(SOURCES.values())):
        for kind in ("cubin", "ptx"):
            output = folder / f"{program}.{kind}"
            command = [tool("nvcc"), f"-{kind}", f"-arch=sm_{ARCH}", "-o", str(output), str(PROGRAMS / f"{program}.cu")]
            jobs.append(subprocess.Popen(command))
    assert all(job.wait(300) == 0 for job in jobs)
    return {
        program: Images(Cubin.read((folder / f"{program}.cubin").read_bytes()), (folder / f"{program}.ptx").read_text())
        for program in set(SOURCES.values())
    }


@pytest.fixture(scope="module")
def cuda() -> CudaContext:
    return CudaContext(DRIVER_LIBRARY, ARCH)


def grafted(images: Images, probe: Probe) -> dict[str, GraftedKernel]:
    """Each kernel with the probe in its machine code."""
    grafter = Grafter(probe, Assembler(), samples_blocks=False)
    names = list(images.cubin.kernels)
    with ThreadPoolExecutor() as pool:
        return dict(zip(names, pool.map(lambda name: grafter.graft(images.cubin, name), names), strict=True))


def by_ptx(images: Images, probe: Probe, folder: Path) -> dict[str, bytes]:
    """Each kernel with the probe in its PTX, assembled."""
    assembler = Assembler()

    def assembled(name: str) -> bytes:
        source, binary = folder / f"{name}.ptx", folder / f"{name}.bin"
        source.write_text(probed_kernel(images.kernel(name), probe)[0])
        assembler.assemble(source, binary, f"sm_{ARCH}", name)
        return binary.read_bytes()

    names = list(images.cubin.kernels)
    with ThreadPoolExecutor() as pool:
        return dict(zip(names, pool.map(assembled, names), strict=True))


def launched(cuda: CudaContext, image: bytes, kernel: str, map_bytes: int = 0) -> tuple[bytes, bytes]:
    """The memory that a kernel leaves behind, and its map."""
    memory = cuda.allocate_zeros(MEMORY)
    cuda.write(memory, bytes(range(256)) * (MEMORY // 256) if kernel not in UNORDERED else bytes(MEMORY))
    added = [cuda.allocate_zeros(map_bytes)] if map_bytes else []
    cuda.launch(cuda.load(image).function(kernel), BLOCKS, THREADS, [memory, BLOCKS * THREADS - 1000, *added])
    return cuda.read(memory, MEMORY), cuda.read(added[0], map_bytes) if added else b""


def sums(content: bytes, probe: Probe) -> Counter[str]:
    """The sum of each field over all records of a map."""
    (own_map,) = probe.maps
    found: Counter[str] = Counter()
    for at in range(0, len(content) // own_map.record_bytes * own_map.record_bytes, own_map.record_bytes):
        for field in own_map.fields:
            kind = "<Q" if field.type == "u64" else "<I"
            found[field.name] += struct.unpack_from(kind, content, at + field.offset)[0]
    return +found


@pytest.mark.parametrize("name", SOURCES)
def test_counts_of_warps_are_those_of_ptx(
    name: str, images: dict[str, Images], cuda: CudaContext, tmp_path: Path
) -> None:
    probe, own = load_probe(name), images[SOURCES[name]]
    grafts, expected_images = grafted(own, probe), by_ptx(own, probe, tmp_path)
    size = WARPS * probe.maps[0].record_bytes
    different, changed = set(), set()
    for kernel, made in grafts.items():
        native, _ = launched(cuda, own.cubin.image, kernel)
        left, content = launched(cuda, made.probed_image, kernel, size)
        _, expected = launched(cuda, expected_images[kernel], kernel, size)
        found, wanted = sums(content, probe), sums(expected, probe)
        changed |= {kernel} if left != native else set()
        different |= {kernel} if found != wanted else set()
        same = "equal" if found == wanted else "DIFFERENT"
        print(f"GPU-GRAFT\t{name}\t{kernel}\t{same}\tmemory {left == native}\tgraft {found}\tptx {wanted}")
        assert ON_PAPER.get((name, kernel), {}).items() <= found.items()
    assert changed <= UNORDERED
    assert different <= DIFFERENT
    assert {kernel for of, kernel in ON_PAPER if of == name} <= grafts.keys()


@pytest.mark.parametrize("name", BY_LINE)
def test_counts_of_lines_add_up_to_those_of_warps(name: str, images: dict[str, Images], cuda: CudaContext) -> None:
    whole, by_line, own = load_probe(name), load_probe(f"{name}_by_line"), images[BY_LINE[name]]
    of_warps, of_lines = grafted(own, whole), grafted(own, by_line)
    counted = 0
    for kernel, made in of_warps.items():
        native, content = launched(cuda, made.probed_image, kernel, WARPS * whole.maps[0].record_bytes)
        left, records = launched(cuda, of_lines[kernel].probed_image, kernel, SITE_BYTES)
        by_site = site_sums(records, by_line, of_lines[kernel].info)
        wanted = by_line_fields(sums(content, whole))
        print(f"GPU-GRAFT-LINES\t{name}\t{kernel}\t{by_site == wanted}\tby line {by_site}\tby warp {wanted}")
        assert by_site == wanted
        assert left == native or kernel in UNORDERED
        counted += bool(by_site)
    assert counted == len(of_warps) or (counted and name not in SOURCES)


def by_line_fields(counts: Counter[str]) -> Counter[str]:
    """The sums that the probe by line has: no threads, and what is above the ideal in the place of the ideal."""
    fields = {key: value for key, value in counts.items() if key != "threads" and not key.endswith("_ideal")}
    ideal = [key for key in counts if key.endswith("_ideal")]
    excess = sum(counts[key.replace("_ideal", "_sectors")] - counts[key] for key in ideal)
    return +Counter({**fields, "excess": excess})


def site_sums(content: bytes, probe: Probe, info: str) -> Counter[str]:
    """The sums over all sites and copies, as kernel.info says how they lie."""
    (line,) = (text for text in info.splitlines() if text.startswith("storage 0 sites"))
    fields = line.split()
    record, count, copies = int(fields[4]), int(fields[6]), int(fields[8])
    pitch = -(-count * record // 256) * 256
    found: Counter[str] = Counter()
    for copy in range(copies):
        found += sums(content[copy * pitch : copy * pitch + count * record], probe)
    return found


def patterns(folder: Path, code: str, name: str = "memory_patterns") -> str:
    """A program, that of access patterns, with ``code`` in it."""
    program = folder / name
    built_for = f"-gencode=arch=compute_{ARCH},code={code}"
    command = [tool("nvcc"), built_for, "-cudart=static", "-o", str(program), str(PROGRAMS / f"{name}.cu")]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return str(program)


@pytest.fixture(scope="module")
def without_ptx(tmp_path_factory: pytest.TempPathFactory) -> str:
    """The program as machine code only."""
    return patterns(tmp_path_factory.mktemp("patterns"), f"sm_{ARCH}")


@pytest.fixture(scope="module")
def with_ptx(tmp_path_factory: pytest.TempPathFactory) -> str:
    """The program as PTX only."""
    return patterns(tmp_path_factory.mktemp("patterns_ptx"), f"compute_{ARCH}")


@pytest.mark.parametrize("name", ["memory_patterns", "tiled_matmul"])
@pytest.mark.parametrize("suffix", ["", "_by_line"])
def test_fused_probes_count_in_machine_code_as_single_ones(
    name: str, suffix: str, tmp_path: Path, runner: Runner
) -> None:
    """Sums of warps, which exits add up, and those of sites."""
    without_ptx = patterns(tmp_path, f"sm_{ARCH}", name)
    probes = [f"{probe}{suffix}" for probe in ("gmem_sectors", "smem_conflicts", "divergence")]
    together = runner.profiled([without_ptx], *(word for probe in probes for word in ("-p", probe)))
    assert together.outcome.status == 0, together.outcome.stderr
    trace = open_trace(together.trace)
    assert {kernel.fused for kernel in trace.kernels} != {None}
    fused_values = {
        (kernel.name, result.probe.name): {
            metric_value.key: metric_value.value for metric_value in result.metric_values
        }
        for kernel in trace.kernels
        for result in analyse_results(trace, kernel)
    }
    for probe in probes:
        grafted = open_trace(runner.profiled([without_ptx], "-p", probe).trace)
        for kernel in grafted.kernels:
            for result in analyse_results(grafted, kernel):
                values = {metric_value.key: metric_value.value for metric_value in result.metric_values}
                assert fused_values[kernel.name, probe] == values, f"{kernel.name} under {probe}"


def counts_of(kernel: TracedKernel) -> list[Counted]:
    """Return the counts of ``gmem_sectors`` in each launch, under the names of the hardware's counters here."""
    launches = [gmem_sectors.analyse(read_result(path)) for path in kernel.results]
    assert all(counts.threads_missing == 0 for counts in launches)
    return [{name: getattr(counts, name) for name in METRICS.values()} for counts in launches]


def leaves_out(kernel: TracedKernel) -> int:
    """Accesses without a space, which the probe counts by threads only, and says so."""
    return sum(gmem_sectors.analyse(read_result(path)).generic_accesses for path in kernel.results)


@pytest.mark.exclusive
def test_access_patterns_equal_the_counters(without_ptx: str, runner: Runner) -> None:
    unprofiled = runner.unprofiled([without_ptx])
    profiled = runner.profiled([without_ptx], "-p", "gmem_sectors")
    assert (profiled.outcome.status, profiled.outcome.stdout) == (unprofiled.status, unprofiled.stdout)
    probed = {}
    for kernel in open_trace(profiled.trace).kernels:
        assert (kernel.status, kernel.mode) == ("probed", "graft"), f"{kernel.name}: {kernel.reason}"
        (probed[kernel.name],) = counts_of(kernel)
    counters = dict(counters_of([without_ptx]))
    assert probed.keys() == counters.keys()
    for name, measured in counters.items():
        equal = "equal" if probed[name] == measured else "DIFFERENT"
        print(f"GPU-SECTORS\t{name}\t{equal}\tncu {measured}\tgraft {probed[name]}")
    different = {name for name, counts in probed.items() if counts != counters[name]}
    assert different <= {"generic_copy"}, "accesses without a space are left out, and the probe says so"


def sectors_of(kernel: TracedKernel) -> Counter[str]:
    """Accesses, requests and sectors by kind, as the records of ``dmat`` tell, of all launches."""
    found: Counter[str] = Counter()
    for path in kernel.results:
        accesses = read_accesses(read_result(path), compact=False, memory=LaunchMemory(), simulated=False)
        table = by_line(accesses, kernel.folder)
        assert table.kept == table.accesses, f"{kernel.name}: {table.kept} of {table.accesses} accesses kept"
        for row in table.rows:
            assert row.code is not None, f"{kernel.name}: an access at {row.line}, where the probe is not"
            found[f"{row.code.kind} accesses"] += row.accesses
            found[f"{row.code.kind} sectors"] += row.sectors
    return found


def test_records_of_accesses_are_those_of_ptx(without_ptx: str, with_ptx: str, runner: Runner) -> None:
    """The same accesses of the same program in both ways, and the memory is as without a probe."""
    found: dict[str, dict[str, Counter[str]]] = {}
    for way, program in (("graft", without_ptx), ("ptx", with_ptx)):
        unprofiled = runner.unprofiled([program])
        profiled = runner.profiled([program], "-p", "dmat")
        assert (profiled.outcome.status, profiled.outcome.stdout) == (unprofiled.status, unprofiled.stdout)
        kernels = [kernel for kernel in open_trace(profiled.trace).kernels if kernel.status == "probed"]
        assert {kernel.mode for kernel in kernels} == {way}
        found[way] = {kernel.name: sectors_of(kernel) for kernel in kernels}
    assert len(found["ptx"]) > 20
    assert found["graft"].keys() == found["ptx"].keys()
    for name, wanted in found["ptx"].items():
        graft = found["graft"][name]
        print(f"GPU-RECORDS\t{name}\t{graft == wanted}\tgraft {graft}\tptx {wanted}")
    assert {name for name, wanted in found["ptx"].items() if found["graft"][name] != wanted} <= DIFFERENT


def test_records_of_a_library_equal_the_counts_of_sectors(runner: Runner) -> None:
    """Kernels of PyTorch without PTX: the sectors of the records are those that ``gmem_sectors`` counts in them."""
    _, counted = profiled_library(runner, "counts", "gmem_sectors")
    _, recorded = profiled_library(runner, "counts", "dmat")
    wanted = {kernel.name: counts_of(kernel)[-1] for kernel in counted if not leaves_out(kernel)}
    compared = 0
    for kernel in recorded:
        accesses = read_accesses(read_result(kernel.results[-1]), compact=False, memory=LaunchMemory(), simulated=False)
        table = by_line(accesses, kernel.folder)
        if kernel.name not in wanted or table.kept != table.accesses:
            continue
        recorded_sectors = {kind: table.total(kind)[1] for kind in ("load", "store")}
        same = {kind: wanted[kernel.name][f"{kind}_sectors"] for kind in recorded_sectors}
        print(f"GPU-LIBRARY-RECORDS\t{recorded_sectors == same}\t{recorded_sectors}\t{same}\t{kernel.name[:90]}")
        assert recorded_sectors == same, kernel.name
        compared += 1
    assert compared


@pytest.mark.parametrize("program", sorted(set(SOURCES.values())))
def test_limiter_probe_counts_like_other_probes(program: str, images: dict[str, Images], cuda: CudaContext) -> None:
    """By blocks and by instructions; the memory is as without a probe."""
    probe, own = load_probe("what_limits"), images[program]
    others = {name: load_probe(name) for name, of in SOURCES.items() if of == program}
    by_others = {name: grafted(own, other) for name, other in others.items()}
    for kernel, made in grafted(own, probe).items():
        native, _ = launched(cuda, own.cubin.image, kernel)
        left, content = launched(cuda, made.probed_image, kernel, WARPS * probe.maps[0].record_bytes)
        counted = sums(content, probe)
        counted["multiply_adds"] = sum(counted[f"tensor_{kind}"] for kind in ("half", "tf32", "byte", "double"))
        wanted: Counter[str] = Counter()
        for name, other in others.items():
            _, records = launched(
                cuda, by_others[name][kernel].probed_image, kernel, WARPS * other.maps[0].record_bytes
            )
            wanted.update(sums(records, other))
        for kind in ("requests", "sectors", "ideal"):
            wanted[f"load_{kind}"] += wanted.pop(f"copy_{kind}", 0)
        compared = {f"{way}_{kind}" for way in ("load", "store") for kind in ("requests", "sectors", "ideal")}
        compared = compared if "gmem_sectors" in others and not wanted["generic_accesses"] else set()
        compared |= {"multiply_adds"} if "tensorop_count" in others else set()
        same = {name: (counted[name], wanted[name]) for name in sorted(compared)}
        equal = all(one == another for one, another in same.values())
        print(f"GPU-LIMITS\t{program}\t{kernel}\t{equal}\tmemory {left == native}\t{same}\t{counted}")
        assert equal, kernel
        assert counted["instructions"] > counted["memory_instructions"] > 0
        assert left == native or kernel in UNORDERED


@pytest.mark.exclusive
def test_instructions_and_operations_equal_the_counters(tmp_path: Path, runner: Runner) -> None:
    """Of kernels that are limited by different units, branches that part lanes among them."""
    program = built(tmp_path, str(ARCH), without_ptx=True)
    profiled = runner.profiled([str(program), "1"], "-p", "what_limits", "--machine-code", "all")
    assert profiled.outcome.status == 0, profiled.outcome.stderr
    counters = dict(counters_of([str(program), "1"], metrics=EXECUTED))
    compared = 0
    for kernel in open_trace(profiled.trace).kernels:
        print(f"GPU-EXECUTED\t{kernel.name}\t{kernel.status}\t{kernel.mode}\t{kernel.reason}")
        if kernel.status != "probed" or not kernel.results:  # blocks that may wait, and would not all be there
            continue
        own, ncu = what_limits.analyse(read_result(kernel.results[-1])).sums, counters[base(kernel.demangled)]
        wanted = {
            "instructions": ncu["instructions"],
            "fp32_operations": 2 * ncu["ffma"] + ncu["fadd"] + ncu["fmul"],
            "fp64_operations": 2 * ncu["dfma"] + ncu["dadd"] + ncu["dmul"],
        }
        print(f"GPU-EXECUTED\t{kernel.name}\tncu {wanted}\tgraft { {name: own[name] for name in wanted} }")
        for name, number in wanted.items():
            assert own[name] == pytest.approx(number, rel=NEARLY), (kernel.name, name)
        compared += 1
    assert compared > 12


def libraries(kernel: str) -> set[str]:
    return {library for library, parts in LIBRARIES.items() if any(part in kernel.lower() for part in parts)}


def profiled_library(runner: Runner, what: str, probe: str) -> tuple[str, list[TracedKernel]]:
    """Return the program's output and its probed kernels; print why others were not probed."""
    if importlib.util.find_spec("torch") is None:
        pytest.skip("torch is not installed")
    command = [sys.executable, str(PROGRAMS / "library_kernels.py"), what]
    profiled = runner.profiled(command, "-p", probe, "--machine-code", "all", "--capture-range")
    assert profiled.outcome.status == 0, profiled.outcome.stderr
    kernels = [kernel for kernel in open_trace(profiled.trace).kernels if kernel.status != "excluded"]
    for kernel in kernels:
        print(f"GPU-LIBRARY\t{probe}\t{kernel.status}\t{kernel.mode}\t{kernel.reason}\t{kernel.name[:90]}")
    return profiled.outcome.stdout, [kernel for kernel in kernels if kernel.status == "probed" and kernel.results]


@pytest.mark.exclusive
def test_kernels_of_libraries_equal_the_counters(runner: Runner) -> None:
    _, kernels = profiled_library(runner, "counts", "gmem_sectors")
    command = [sys.executable, str(PROGRAMS / "library_kernels.py"), "counts"]
    counters: dict[str, list[Counted]] = {}
    for name, counted in counters_of(command, "--profile-from-start", "off", "--print-kernel-base", "mangled"):
        counters.setdefault(name, []).append(counted)
    seen, different = set(), []
    for kernel in kernels:
        assert kernel.mode == "graft", kernel.name
        found, wanted = counts_of(kernel), counters.get(kernel.name)
        without = leaves_out(kernel)
        print(f"GPU-LIBRARY-SECTORS\t{found == wanted}\t{without}\tncu {wanted}\tgraft {found}\t{kernel.name[:90]}")
        seen |= libraries(kernel.name) if wanted is not None else set()
        different += [kernel.name] if wanted is not None and found != wanted and not without else []
    assert not different
    assert seen == LIBRARIES.keys()


def test_products_of_a_library_are_2_m_n_k(runner: Runner) -> None:
    """Needs a library all of whose kernels can be probed: those that give registers away leave none to a probe."""
    printed, kernels = profiled_library(runner, "products", "tensorop_count")
    per_product = int(printed.split()[-1]) // 2
    counts = [tensorop_count.analyse(read_result(path)) for kernel in kernels for path in kernel.results]
    operations = [count.operations for count in counts if count.operations]
    print(f"GPU-LIBRARY-TENSOR\t{per_product}\t{counts}")
    assert operations
    assert set(operations) == {per_product}


@pytest.mark.parametrize("code", ["[sm_90,compute_90]", "sm_90"])
def test_bulk_copies_are_counted_as_on_paper(code: str, tmp_path: Path, runner: Runner) -> None:
    """A warp of each of 4 blocks copies 1024 bytes under a predicate, 16 in each lane, stores 512, prefetches 128."""
    program = nvcc_program(PROGRAMS / "bulk_forms.cu", tmp_path / "bulk_forms", f"-gencode=arch=compute_90,code={code}")
    unprofiled = runner.unprofiled([program])
    probes = [word for name in ("gmem_bytes", "what_limits", "gmem_sectors") for word in ("-p", name)]
    profiled = runner.profiled([program], *probes, "--launches", "all", "--wait")
    assert (profiled.outcome.status, profiled.outcome.stdout) == (0, unprofiled.stdout), profiled.outcome.stderr
    (kernel,) = open_trace(profiled.trace).kernels
    assert kernel.mode == ("graft" if code == "sm_90" else "ptx")
    analyses = {
        probed.probe: [found.analysis for found in analyse_results(probed.trace, probed)]
        for probed in kernel.by_probe()
    }
    found, limits, sectors = (analyses[name][0] for name in ("gmem_bytes", "what_limits", "gmem_sectors"))
    print(f"GPU-BULK\t{kernel.mode}\t{found}")
    assert (found.bulk_loaded, found.bulk_stored) == (4 * (1024 + 32 * 16 + 128), 4 * 512)
    assert (found.loaded, found.stored, found.copied, found.tensor_loads, found.tensor_stores) == (0, 0, 0, 0, 0)
    assert (limits.sums["loaded"], limits.sums["stored"]) == (found.read, found.written)
    assert (sectors.bulk_load_sectors, sectors.bulk_store_sectors) == (4 * (32 + 32 + 4), 4 * 16)
    assert (sectors.bulk_copies, sectors.unsized_copies) == (4 * (1 + 32 + 1 + 2), 0)


def test_bulk_copies_in_sass_are_recorded_as_on_paper(tmp_path: Path, runner: Runner) -> None:
    """The lanes of a warp start copies of their own one after another, so each has a record."""
    program = nvcc_program(PROGRAMS / "bulk_forms.cu", tmp_path / "bulk_forms", "-gencode=arch=compute_90,code=sm_90")
    unprofiled = runner.unprofiled([program])
    profiled = runner.profiled([program], "-p", "dmat", "--launches", "all", "--wait")
    assert (profiled.outcome.status, profiled.outcome.stdout) == (0, unprofiled.stdout), profiled.outcome.stderr
    (kernel,) = open_trace(profiled.trace).kernels
    assert kernel.mode == "graft"
    for path in kernel.results:
        boxes = read_boxes(read_accesses(read_result(path), compact=False, memory=LaunchMemory(), simulated=False))
        assert boxes is not None
        print(f"GPU-BULK-BOXES\t{boxes.text}")
        assert Counter(boxes.bytes.tolist()) == {1024: 4, 16: 4 * 32, 128: 4, 256: 4 * 2}
        assert (boxes.total_copies, boxes.unsized_copies) == (4 * (1 + 32 + 1 + 2), 0)
        own_lanes = sorted(int(record["start"]) for record in boxes.records if record["row"] == 16)
        first = own_lanes[0]
        assert own_lanes == sorted([first + 16 * lane for lane in range(32)] * 4)
