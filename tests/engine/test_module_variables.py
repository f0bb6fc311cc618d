"""Module variables of a probed kernel are those of the original module."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from tests.engine.kernels import HEADER, entry, inserted, probed_and_shared, without_insertions, words
from tui_probe.engine.kernel import Kernel
from tui_probe.engine.module_variables import replay_hazard
from tui_probe.errors import UnsupportedKernelError
from tui_probe.ptx.parser import parse
from tui_probe.ptx.tree import REPLACED_MARK
from tui_probe.reasons import because

if TYPE_CHECKING:
    from collections.abc import Callable

MODULE = """
.visible .global .align 4 .u32 visits;
.global .align 4 .b8 table[64] = {1, 2, 3};
.visible .const .align 4 .f32 scale[4];
.global .align 8 .u64 unused;
"""
REGISTERS = """
.reg .pred %p1;
.reg .b32 %r<4>;
.reg .f32 %f<4>;
.reg .b64 %rd<9>;
"""


def rewritten(instruction: str) -> tuple[list[str], list[str]]:
    """Return the text that replaces an instruction, with that in front of it, and the shared variables."""
    text, shared = probed_and_shared(entry(f"{REGISTERS}{instruction}\nret;", module=MODULE))
    lines = [line.strip() for line in text.splitlines()]
    (index,) = (i for i, line in enumerate(lines) if f"{REPLACED_MARK}{instruction}" in line)
    start = index
    while "module variables" in lines[start - 1]:
        start -= 1
    return [line.partition(" // tui-probe")[0] for line in lines[start : index + 1]], list(shared.variables)


LOAD = "ld.param.u64 %tp__variable0, [tp_variable_{}];"


@pytest.mark.parametrize(
    ("instruction", "variable", "expected"),
    [
        ("mov.u64 %rd1, visits;", "visits", ["mov.u64 %rd1, %tp__variable0;"]),
        (
            "mov.u64 %rd1, visits+8;",
            "visits",
            ["add.s64 %tp__variable0, %tp__variable0, 8;", "mov.u64 %rd1, %tp__variable0;"],
        ),
        ("cvta.global.u64 %rd1, visits;", "visits", ["cvta.global.u64 %rd1, %tp__variable0;"]),
        ("ld.global.u32 %r1, [visits];", "visits", ["ld.global.u32 %r1, [%tp__variable0];"]),
        (
            "ld.global.nc.v2.u32 {%r1, %r2}, [table+16];",
            "table",
            ["ld.global.nc.v2.u32 {%r1, %r2}, [%tp__variable0+16];"],
        ),
        ("@%p1 st.global.u32 [visits], %r1;", "visits", ["@%p1 st.global.u32 [%tp__variable0], %r1;"]),
        ("atom.global.add.u32 %r1, [visits], 1;", "visits", ["atom.global.add.u32 %r1, [%tp__variable0], 1;"]),
        ("@!%p1 red.global.add.u32 [visits], %r1;", "visits", ["@!%p1 red.global.add.u32 [%tp__variable0], %r1;"]),
        ("ld.const.f32 %f1, [scale+4];", "scale", ["ld.global.f32 %f1, [%tp__variable0+4];"]),
        ("mov.u64 %rd1, scale;", "scale", ["mov.u64 %rd1, %tp__variable0;"]),
        ("cvta.const.u64 %rd1, scale;", "scale", ["mov.u64 %rd1, %tp__variable0;"]),
        ("st.global.u64 [%rd1], visits;", "visits", ["st.global.u64 [%rd1], %tp__variable0;"]),
        ("prefetch.global.L2 [table];", "table", ["prefetch.global.L2 [%tp__variable0];"]),
    ],
)
def test_uses_become_addresses_passed_as_parameters(instruction: str, variable: str, expected: list[str]) -> None:
    lines, shared = rewritten(instruction)
    assert shared == [variable]
    assert lines == [LOAD.format(variable), *expected]


def test_parameters_follow_the_maps_in_the_order_of_the_declarations(accepts: Callable[[str], int]) -> None:
    body = f"{REGISTERS}ld.const.f32 %f1, [scale];\natom.global.add.u32 %r1, [visits], 1;\nret;"
    text, shared = probed_and_shared(entry(body, ".param .u64 x", module=MODULE))
    assert shared.variables == ("visits", "scale")
    names = [parameter.name for parameter in parse(text).entries()[0].parameters]
    assert names == ["x", "tp_map_block_sched", "tp_variable_visits", "tp_variable_scale"]
    accepts(text)


def test_a_variable_may_have_the_name_of_a_map(accepts: Callable[[str], int]) -> None:
    body = f"{REGISTERS}ld.global.u32 %r1, [block_sched];\nret;"
    accepts(probed_and_shared(entry(body, module=".global .u32 block_sched;"))[0])


def test_the_probed_module_has_no_copies() -> None:
    text, _ = probed_and_shared(entry(f"{REGISTERS}ld.global.u32 %r1, [visits];\nret;", module=MODULE))
    assert ".global .align 4 .u32 visits" not in text
    assert "// tui-probe: the original module has visits" in text


def test_constants_are_read_through_registers_too(accepts: Callable[[str], int]) -> None:
    body = f"""{REGISTERS}
mov.u64 %rd1, scale;
add.s64 %rd2, %rd1, 4;
ld.const.f32 %f1, [%rd2];
cvta.const.u64 %rd3, %rd2;
cvta.to.const.u64 %rd4, %rd3;
ld.const.v2.f32 {{%f2, %f3}}, [%rd4];
ret;"""
    text, _ = probed_and_shared(entry(body, module=MODULE))
    code = text.replace("instead of: ", "")
    assert "ld.global.f32 %f1, [%rd2];" in code
    assert "mov.u64 %rd3, %rd2;" in code
    assert "mov.u64 %rd4, %rd3;" in code
    assert "ld.global.v2.f32 {%f2, %f3}, [%rd4];" in code
    accepts(text)


def test_previous_content_can_be_read_back() -> None:
    source = entry(f"{REGISTERS}@%p1 st.global.u32 [visits+0], %r1; // count\n\tmov.u32 %r1, 2;\nret;", module=MODULE)
    text, _ = probed_and_shared(source)
    kernel = Kernel.of(parse(source), "kernel")
    restored, pruned = words(without_insertions(text)), words(kernel.pruned)
    assert restored[restored.index("{") :] == pruned[pruned.index("{") :]


PRINT = """
.extern .func (.param .b32 r) vprintf (.param .b64 a, .param .b64 b);
.global .align 1 .b8 $str[3] = {37, 100};
"""
PRINTING = """
.reg .b64 %rd<9>;
.reg .b32 %r<3>;
mov.u64 %rd1, $str;
cvta.global.u64 %rd2, %rd1;
{
.param .b64 a;
.param .b64 b;
.param .b32 r;
st.param.b64 [a], %rd2;
st.param.b64 [b], 0;
call.uni (r), vprintf, (a, b);
ld.param.b32 %r1, [r];
}
"""


def test_text_that_is_only_printed_stays_private(accepts: Callable[[str], int]) -> None:
    text, shared = probed_and_shared(entry(PRINTING + "ret;", module=PRINT))
    assert shared.variables == ()
    assert ".global .align 1 .b8 $str[3] = {37, 100};" in text
    accepts(text)


@pytest.mark.parametrize(
    "use",
    [
        "ld.global.u8 %r1, [$str];",
        "st.global.u64 [%rd3], %rd2;",
        "ld.global.u8 %r1, [%rd1];",
        "add.s64 %rd3, %rd2, 1;",
    ],
)
def test_text_that_is_used_otherwise_is_shared(use: str) -> None:
    _, shared = probed_and_shared(entry(f"{PRINTING}{use}\nret;", module=PRINT))
    assert shared.variables == ("$str",)


def test_text_passed_to_another_function_is_shared() -> None:
    other = PRINT.replace("vprintf", "keep")
    _, shared = probed_and_shared(entry(PRINTING.replace("vprintf", "keep") + "ret;", module=other))
    assert shared.variables == ("$str",)


TWICE = """
.visible .global .align 8 .u64 chosen;
.func twice() { ret; }
"""


@pytest.mark.parametrize("use", ["st.global.u64 [%rd2], %rd1;", "mov.u64 %rd2, %rd1;", "st.param.b64 [p0], %rd1;"])
def test_the_address_of_a_function_is_not_handed_on(use: str) -> None:
    """A kernel that calls it would run the probed module's copy."""
    body = f"{REGISTERS}{{ .param .b64 p0;\nmov.u64 %rd1, twice;\n{use} }}\nret;"
    with pytest.raises(UnsupportedKernelError, match=r"stores the address of function twice"):
        probed_and_shared(entry(body, module=TWICE))


def test_a_function_whose_address_is_only_called_is_this_modules_affair() -> None:
    call = "prototype: .callprototype _ ();\ncall %rd1, prototype;"
    _, shared = probed_and_shared(entry(f"{REGISTERS}mov.u64 %rd1, twice;\n{call}\ncall twice;\nret;", module=TWICE))
    assert shared.variables == ()


def test_an_address_out_of_memory_is_not_called() -> None:
    """It is a function of the original module's, which the probed module was compiled without."""
    body = f"{REGISTERS}ld.global.u64 %rd1, [chosen];\nprototype: .callprototype _ ();\ncall %rd1, prototype;\nret;"
    with pytest.raises(UnsupportedKernelError, match=r"calls a function through a pointer in memory"):
        probed_and_shared(entry(body, module=TWICE))


def test_tables_of_the_mathematical_library_stay_private() -> None:
    module = """
.global .align 4 .b8 __cudart_i2opi_f[8] = {65, 144};
.func helper() { .reg .b32 %r1; ld.global.u32 %r1, [__cudart_i2opi_f]; ret; }
"""
    text, shared = probed_and_shared(entry("call helper;\nret;", module=module))
    assert shared.variables == ()
    assert "__cudart_i2opi_f[8] = {65, 144};" in text


@pytest.mark.parametrize(
    ("module", "body", "reason"),
    [
        (
            ".func f() { ret; }\n.global .u64 handlers[1] = {f};",
            ".reg .b64 %rd1; ld.global.u64 %rd1, [handlers]; ret;",
            "module variable handlers holds the address of function f",
        ),
        (
            ".global .texref image;",
            ".reg .f32 %f<9>; .reg .b32 %r1; tex.1d.v4.f32.s32 {%f1, %f2, %f3, %f4}, [image, {%r1}]; ret;",
            "module variable image is a texture",
        ),
        (
            ".const .u32 c;\n.func f() { .reg .pred %p1; .reg .b64 %rd1; isspacep.const %p1, %rd1; ret; }",
            ".reg .b32 %r1; ld.const.u32 %r1, [c]; call f; ret;",
            "constant variable c may be accessed by isspacep in f",
        ),
        (
            ".const .u32 c;",
            ".reg .pred %p1; .reg .b64 %rd1; mov.u64 %rd1, c; isspacep.const %p1, %rd1; ret;",
            "constant variable c may be accessed by isspacep in kernel",
        ),
        ("", ".global .u32 inner; ret;", "kernel declares inner in global memory"),
    ],
)
def test_unshareable_variables_are_refused(module: str, body: str, reason: str) -> None:
    with pytest.raises(UnsupportedKernelError, match=reason):
        probed_and_shared(entry(body, module=module))


def test_constant_parameters_with_constant_variables_are_refused() -> None:
    text = entry(
        ".reg .b32 %r1; ld.const.u32 %r1, [c]; ret;", ".param .u64 .ptr .const .align 4 x", module=".const .u32 c;"
    )
    with pytest.raises(UnsupportedKernelError, match="pointer parameter to constant memory"):
        probed_and_shared(text)


def test_shared_memory_is_kept() -> None:
    module = ".extern .shared .align 16 .b8 pool[];\n.shared .align 4 .b8 tile[64];"
    body = ".reg .b32 %r<3>; mov.u32 %r1, pool; ld.shared.u32 %r2, [tile+4]; ret;"
    text, shared = probed_and_shared(entry(body, module=module))
    assert shared.variables == ()
    assert REPLACED_MARK not in text
    assert "module variables" not in "".join(inserted(text))


@pytest.mark.parametrize("callee", ["vprintf", "malloc", "free"])
def test_kernels_that_must_not_run_twice(callee: str) -> None:
    text = f"{HEADER}.extern .func {callee};\n.func f() {{ call {callee}; ret; }}\n.entry kernel() {{ call f; ret; }}"
    assert replay_hazard(Kernel.of(parse(text), "kernel")) == because("calls-host", function=callee)
    assert replay_hazard(Kernel.of(parse(f"{HEADER}.entry kernel() {{ ret; }}"), "kernel")) is None


INSIDE = ".const .align 4 .u32 fixed[2] = {3, 4};"


def test_constants_inside_a_function_are_copied_with_it() -> None:
    """No program finds them by name, so that nothing can tell a copy."""
    text, shared = probed_and_shared(entry(f"{REGISTERS}{INSIDE}\nld.const.u32 %r1, [fixed+4];\nret;"))
    assert INSIDE in text
    assert not shared.variables


@pytest.mark.parametrize(
    ("body", "space"),
    [
        (f"{INSIDE}\nld.const.u32 %r1, [fixed];\nld.const.f32 %f1, [scale];", "const"),
        (".global .u32 fixed;\nld.global.u32 %r1, [fixed];", "global"),
    ],
    ids=["next to shared constants, whose loads change", "that last from launch to launch"],
)
def test_variables_inside_a_function_are_refused_where_a_copy_would_differ(body: str, space: str) -> None:
    with pytest.raises(UnsupportedKernelError, match=f"kernel declares fixed in {space} memory in its body"):
        probed_and_shared(entry(f"{REGISTERS}{body}\nret;", module=MODULE))


def test_an_element_of_a_variable_is_refused() -> None:
    with pytest.raises(UnsupportedKernelError, match=r"'table\[%r1\]'"):
        probed_and_shared(entry(f"{REGISTERS}ld.global.u8 %r2, table[%r1];\nret;", module=MODULE))
