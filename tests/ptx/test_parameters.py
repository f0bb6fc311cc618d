"""Addresses of copies, loads and stores lead back to the parameters that they come from."""

from __future__ import annotations

from collections import Counter

import pytest

from tests.engine.kernels import DATA, entry
from tui_probe.ptx.parameters import address_parameters
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
