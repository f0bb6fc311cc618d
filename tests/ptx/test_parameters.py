"""Addresses of copies, loads and stores lead back to the parameters that they come from."""

from __future__ import annotations

from collections import Counter

import pytest

from tests.engine.kernels import DATA, entry
from tui_probe.ptx.parameters import address_parameters, barrier_names
from tui_probe.ptx.parser import parse
from tui_probe.ptx.phase_names import ACCESSES, work_of
from tui_probe.ptx.tree import instructions_in


def counted(text: str, name: str) -> dict[tuple[str, tuple[int, ...]], int]:
    (kernel,) = (own for own in parse(text).entries() if own.name == name)
    parameters = address_parameters(kernel)
    return Counter(
        (work, parameters(own)) for own in instructions_in(kernel.body or ()) if (work := work_of(own)) in ACCESSES
    )


@pytest.mark.parametrize(
    ("file", "name", "expected"),
    [
        ("transactions.sm_90a", "producer_consumer",
         {("bulk copy", (0,)): 5, ("bulk copy", (1,)): 5, ("global store", (2,)): 2}),
        ("triton_attention.sm_90a", "flash_attention",
         {("global load", (0,)): 8, ("async copy", (1,)): 12, ("async copy", (2,)): 12, ("global store", (3,)): 8}),
        ("triton_matmul.sm_80", "matmul",
         {("async copy", (0,)): 3, ("async copy", (1,)): 3, ("global store", (2,)): 1}),
    ],
)  # fmt: skip
def test_parameters_of_pipelines(file: str, name: str, expected: dict[tuple[str, tuple[int, ...]], int]) -> None:
    """Tensor maps in parameters, and pointers that grow in loops."""
    assert counted((DATA / f"{file}.ptx").read_text(), name) == expected


def test_offsets_and_loaded_pointers_are_not_followed() -> None:
    text = entry(
        """.reg .b64 %rd<8>;
    .reg .b32 %r<3>;
    ld.param.u64 %rd1, [a];
    mul.lo.s64 %rd2, %rd1, 4;
    ld.global.u64 %rd3, [%rd1];
    ld.global.u32 %r1, [%rd2];
    ld.global.u32 %r1, [%rd3];
    mad.lo.s64 %rd4, %rd2, 8, %rd1;
    ld.global.u32 %r1, [%rd4+16];
    ret;""",
        ".param .u64 a",
    )
    assert counted(text, "kernel") == {("global load", (0,)): 2, ("global load", ()): 2}


def names_of_barriers(text: str, name: str) -> list[tuple[str, ...]]:
    (kernel,) = (own for own in parse(text).entries() if own.name == name)
    names = barrier_names(kernel)
    return [names(own) for own in instructions_in(kernel.body or ()) if "try_wait" in own.modifiers]


def test_waits_name_the_shared_variable_of_their_barrier() -> None:
    """Four barriers of each kind in C++, and one."""
    text = (DATA / "transactions.sm_90a.ptx").read_text()
    assert Counter(names_of_barriers(text, "producer_consumer")) == {("empty[4]",): 5, ("full[4]",): 3}
    assert names_of_barriers(text, "ring") == [("barrier",)]


def test_barriers_are_found_through_generic_addresses() -> None:
    text = entry(
        """.shared .align 8 .b8 _ZZ1kE5ready[24];
    .reg .pred %p; .reg .b32 %r<4>; .reg .b64 %rd<5>;
    mov.u64 %rd1, _ZZ1kE5ready;
    cvta.shared.u64 %rd2, %rd1;
    cvta.to.shared.u64 %rd3, %rd2;
    cvt.u32.u64 %r1, %rd3;
    mov.u32 %r2, %tid.x;
    shl.b32 %r3, %r2, 3;
    add.s32 %r1, %r1, %r3;
    mbarrier.try_wait.parity.shared::cta.b64 %p, [%r1], %r2;
    mbarrier.try_wait.parity.shared::cta.b64 %p, [%r3], %r2;
    ret;""",
        ".param .u64 a",
    )
    assert names_of_barriers(text, "kernel") == [("ready[3]",), ()]


@pytest.mark.parametrize(
    ("symbol", "name"),
    [
        ("_ZN7cutlass4smemE", "cutlass::smem"),
        ("_ZN3one3twoL5stateE", "one::two::state"),
        ("_ZZN7cutlass4copyEvE4full", "full"),
        ("_ZN7cutlass4smem", "smem"),
        ("_ZN4tileIiE4dataE", "_ZN4tileIiE4dataE"),
        ("smem", "smem"),
    ],
)
def test_barriers_in_shared_memory_of_a_namespace_have_its_name(symbol: str, name: str) -> None:
    text = entry(
        f""".reg .pred %p; .reg .b32 %r<3>;
    mov.u32 %r1, {symbol};
    mbarrier.init.shared::cta.b64 [%r1+16], 1;
    mbarrier.init.shared::cta.b64 [%r1+24], 1;
    mbarrier.try_wait.parity.shared::cta.b64 %p, [%r1+16], %r2;
    ret;""",
        module=f".extern .shared .align 128 .b8 {symbol}[];",
    )
    assert names_of_barriers(text, "kernel") == [(f"{name}+16[2]",)]


def test_barriers_in_a_variable_with_other_data_are_named_by_their_offset() -> None:
    """In each stage: an array of barriers is one name, also where code names its second barrier."""
    text = (DATA / "kv_pipeline.sm_90a.ptx").read_text()
    (kernel,) = (own for own in parse(text).entries() if own.name == "dynamic_barriers")
    names, counts = barrier_names(kernel), Counter[tuple[str, tuple[str, ...]]]()
    for instruction in instructions_in(kernel.body or ()):
        if name := names(instruction):
            counts[" ".join((instruction.opcode, *instruction.modifiers[:2])), name] += 1
    full_k, empty_k, full_v, empty_v = (f"memory+{2048 + 16 * number}[2]" for number in range(4))
    copies = {("cp async bulk", (name,)): 1 for name in (full_k, full_v)}
    begun = {("mbarrier arrive expect_tx", (name,)): 1 for name in (full_k, full_v)}
    freed = {("mbarrier arrive shared::cta", (name,)): 1 for name in (empty_k, empty_v)}
    names = (full_k, empty_k, full_v, empty_v)
    made = {("mbarrier init shared::cta", (name,)): 2 for name in names}
    waits = {("mbarrier try_wait parity", (name,)): 1 for name in names}
    assert counts == copies | begun | freed | made | waits


@pytest.mark.parametrize(("size", "name"), [(4096, ()), (64, ("pool[8]",))])
def test_pointer_that_a_loop_increments_is_of_any_barrier(size: int, name: tuple[str, ...]) -> None:
    """Its offsets are not counted up without end."""
    text = entry(
        f""".shared .align 16 .b8 pool[{size}];
    .reg .pred %p; .reg .b32 %r<4>;
    mov.u32 %r1, pool;
    $loop:
    mbarrier.try_wait.parity.shared::cta.b64 %p, [%r1], %r2;
    add.u32 %r1, %r1, 8;
    @%p bra $loop;
    ret;""",
        ".param .u64 a",
    )
    assert names_of_barriers(text, "kernel") == [name]
