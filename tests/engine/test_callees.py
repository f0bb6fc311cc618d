"""Functions that a kernel calls: probed as the kernel is, with what the kernel holds, or refused with a reason."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import pytest

from tests.engine.kernels import HEADER, counting_probe, probed, probed_and_shared, probed_with_sites, toml_probe
from tests.engine.test_same_results import memory_after
from tests.probes.running import result_of
from tests.ptx.corpus import corpus
from tests.turns import due_pairs
from tui_probe.engine.call_state import live_registers
from tui_probe.engine.insertion import build_probed_ptx
from tui_probe.engine.kernel import Kernel
from tui_probe.engine.site_file import site_file
from tui_probe.errors import UnsupportedKernelError
from tui_probe.probe_files.loading import built_in_names, load_probe
from tui_probe.probes.gmem_bytes import analyse
from tui_probe.ptx.parser import parse
from tui_probe.ptx.references import prune_to_kernel
from tui_probe.trace.sites import parse_sites

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

BUILDS = ("callees.sm_80.ptx", "callees.rdc.sm_80.ptx", "callees.debug.sm_80.ptx")
KERNELS = ("nested", "leaves", "variables_in_function")
THREADS, N = 64, 100
CALLS = f"""{HEADER}
.func (.param .b32 result) half(.param .b32 number)
{{
	.reg .b32 %r<3>;
	ld.param.u32 %r1, [number];
	shr.u32 %r2, %r1, 1;
	st.param.b32 [result], %r2;
	ret;
}}
.func (.param .b32 result) quarter(.param .b32 number)
{{
	.reg .pred %p1;
	.reg .b32 %r<4>;
	ld.param.u32 %r1, [number];
	st.param.b32 [result], 0;
	setp.lt.u32 %p1, %r1, 4;
	@%p1 ret;
	{{ .param .b32 a; .param .b32 b; st.param.b32 [a], %r1; call (b), half, (a); ld.param.b32 %r2, [b]; }}
	{{ .param .b32 a; .param .b32 b; st.param.b32 [a], %r2; call (b), half, (a); ld.param.b32 %r3, [b]; }}
	st.param.b32 [result], %r3;
	ret;
}}
.visible .entry kernel(.param .u64 out)
{{
	.reg .b32 %r<4>;
	.reg .b64 %rd<4>;
	ld.param.u64 %rd1, [out];
	mov.u32 %r1, %tid.x;
	{{ .param .b32 a; .param .b32 b; st.param.b32 [a], %r1; call (b), quarter, (a); ld.param.b32 %r2, [b]; }}
	mul.wide.u32 %rd2, %r1, 4;
	add.s64 %rd3, %rd1, %rd2;
	st.global.u32 [%rd3], %r2;
	shr.u32 %r3, %r2, 1;
	ret;
}}
"""


@pytest.mark.parametrize(("name", "build"), due_pairs(built_in_names(), BUILDS))
def test_memory_is_the_same_with_functions_of_each_build(build: str, name: str) -> None:
    source = corpus(build)
    module, probe = parse(source), load_probe(name)
    for kernel in KERNELS:
        text = prune_to_kernel(module, kernel)
        try:
            after = memory_after(text, kernel, "float", probe)
        except UnsupportedKernelError as error:
            assert "the kernel has no waits" in str(error), error  # noqa: PT017 - only a probe of waits refuses them
            continue
        assert after == memory_after(text, kernel, "float"), kernel


@pytest.mark.parametrize("name", ["inst_mix", "dmat", "gmem_sectors"])
def test_memory_is_the_same_with_double_precision_mathematics(name: str) -> None:
    text = prune_to_kernel(parse(corpus(BUILDS[0])), "double_math")
    assert memory_after(text, "double_math", "float", load_probe(name)) == memory_after(text, "double_math", "float")


@pytest.mark.parametrize("build", BUILDS)
def test_bytes_that_functions_load_are_counted(build: str, tmp_path: Path) -> None:
    """``nested`` calls ``gather`` once or twice, which loads one to four numbers."""
    x, y = np.arange(N, dtype=np.float32), np.zeros(N, np.float32)
    result = result_of(
        tmp_path, "gmem_bytes", corpus(build), x, y, np.int32(N), grid=(2,), block=(THREADS,), name="nested"
    )
    calls = [(i + k, j) for i in range(N) for k in range(3) for j in ((0,) if (i + k) & 1 else (0, 7))]
    loads = sum(((i + j) & 3) + 1 for i, j in calls)
    sums = analyse(result)
    assert (sums.loaded, sums.stored, sums.threads_missing) == (4 * loads, 4 * N, 0)


def test_threads_that_leave_in_a_function_are_counted(tmp_path: Path) -> None:
    y = np.zeros(N, np.float32)
    result = result_of(
        tmp_path, "gmem_bytes", corpus(BUILDS[0]), y, np.int32(N), grid=(2,), block=(THREADS,), name="leaves"
    )
    assert analyse(result).threads_missing == 0


def test_a_register_is_counted_on_in_functions_and_behind_them(tmp_path: Path) -> None:
    out = np.zeros(THREADS, np.uint32)
    probe = counting_probe("shr", "add.u64 %n, %n, 1;")
    result = result_of(tmp_path, probe, CALLS, out, block=(THREADS,))
    expected = [1 if thread < 4 else 3 for thread in range(THREADS)]
    assert result.records(0, np.dtype("<u8")).ravel().tolist() == expected


@pytest.mark.parametrize("kind", ["b32", "pred", "b16", "f64"])
def test_registers_of_any_type_are_passed_on(kind: str, accepts: Callable[[str], int]) -> None:
    begin = {"pred": "setp.eq.u32 %m, 0, 0;", "f64": "mov.f64 %m, 0d3FF0000000000000;"}.get(kind, f"mov.{kind} %m, 1;")
    use = {"pred": "selp.u32 %n, 1, 0, %m;", "f64": "cvt.rzi.u32.f64 %n, %m;"}.get(kind, f"cvt.u32.u{kind[1:]} %n, %m;")
    probe = toml_probe(
        f'[map.n]\nlevel = "thread"\nregs = {{ n = "u32" }}\n'
        f'[probe.frame]\nposition = "kernel"\nbefore = ".reg .{kind} %m; .reg .b32 %n; {begin} mov.u32 %n, 0;"\n'
        f'after = "SAVE [ n ] {{%n}};"\n[probe.use]\nposition = "shr"\nbefore = "{use}"\n'
    )
    accepts(probed(CALLS, probe=probe))


def test_only_what_one_snippet_hands_to_another_is_passed_on() -> None:
    assert live_registers(load_probe("gmem_bytes"))[:2] == ["%loaded", "%stored"]
    assert not {"%size", "%is_global"} & set(live_registers(load_probe("gmem_bytes")))
    assert "%is_lowest" in live_registers(load_probe("inst_mix"))
    assert live_registers(load_probe("gmem_bytes_by_line")) == []


def test_functions_in_which_nothing_is_probed_stay_as_they_are() -> None:
    text = probed(CALLS, probe=counting_probe("st.global", "add.u64 %n, %n, 1;"))
    function = CALLS[CALLS.index(".func") : CALLS.index(".visible")].strip()
    assert function.partition(".func (.param .b32 result) quarter")[2].strip() in text
    assert "call (b), quarter, (a);" in text


def test_variables_of_the_original_module_are_passed_to_functions(accepts: Callable[[str], int]) -> None:
    source = corpus(BUILDS[0])
    text, shared = probed_and_shared(source, "variables_in_function", load_probe("block_sched"))
    assert sorted(shared.variables) == ["counted", "factors"]
    assert "the original module has counted" in text
    accepts(text)


def test_sites_in_functions_have_their_lines_and_sources() -> None:
    kernel = Kernel.of(parse(corpus("calls.lineinfo.sm_90.ptx")), "calls_plain")
    probe = load_probe("inst_mix_by_line")
    lines = kernel.pruned.splitlines()
    (found,) = parse_sites(site_file(probe.name, kernel, build_probed_ptx(kernel, probe).notes, b"").encode())
    assert len({site.instruction.line for site in found.sites}) == len(found.sites)
    for site in found.sites:
        assert site.instruction.opcode in lines[site.instruction.line - 1]
    functions = [number for number, line in enumerate(lines, 1) if ".entry" in line]
    called = [site for site in found.sites if site.instruction.line < functions[0]]
    assert called
    assert all(site.instruction.source or site.following for site in called)


def test_blocks_end_at_calls_of_probed_functions() -> None:
    """So that the time behind a call is not given to the function called."""
    _, _, sites = probed_with_sites(CALLS, probe=load_probe("inst_mix_by_line"))
    lines = prune_to_kernel(parse(CALLS), "kernel").splitlines()
    begun = [lines[line - 1].strip() for line in sites["sites"]]
    assert "mul.wide.u32 %rd2, %r1, 4;" in begun
    assert not any("ld.param.b32 %r2, [b]" in line and "call" not in line for line in begun)


@pytest.mark.parametrize(
    ("module", "body", "reason"),
    [
        (
            ".func f();\n.func g() { call f; ret; }\n.func f() { .reg .b32 %r1; shr.u32 %r1, 4, 1; call g; ret; }",
            "call f; ret;",
            "function f is recursive",
        ),
        (
            ".func f() { .reg .b32 %r1; shr.u32 %r1, 4, 1; ret; }",
            ".reg .b64 %rd1; mov.u64 %rd1, f; p: .callprototype _ (); call %rd1, p; ret;",
            "function f is called through a pointer",
        ),
    ],
)
def test_unpassable_registers_are_refused(module: str, body: str, reason: str) -> None:
    text = f"{HEADER}{module}\n.visible .entry kernel() {{ {body} }}\n"
    with pytest.raises(UnsupportedKernelError, match=reason):
        probed(text, probe=counting_probe("shr", "add.u64 %n, %n, 1;"))
    assert "tp_state" not in probed(text)


def test_an_alias_is_the_function_that_it_names(accepts: Callable[[str], int]) -> None:
    module = ".func other();\n.func f() { .reg .b32 %r1; shr.u32 %r1, 4, 1; ret; }\n.alias other, f;"
    text = f"{HEADER}{module}\n.visible .entry kernel() {{ call other; ret; }}\n"
    accepts(probed(text, probe=counting_probe("shr", "add.u64 %n, %n, 1;")))
