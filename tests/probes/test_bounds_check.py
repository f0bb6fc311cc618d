"""Accesses outside of allocations are faults where nothing else can be there, and to unknown memory elsewhere."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from tests.probes.running import example
from tests.probes.specimens import Specimen
from tui_probe.probes.bounds_check import OutsideAccess

SPECIMEN = Specimen(example("zero_fill"), (np.ones(64, np.uint32), np.uint32(64)), (1, 1, 1), (64, 1, 1))
START = 0x7000_0000_0000
ACCESS = OutsideAccess(
    block=(0, 0, 0), thread=(3, 0, 0), address=START + 1000, bytes=4, below=START, limit=START + 1000,
    above=START + 4096, is_freed=False, line=7, opcode="ld.global.u32", source=None,
)  # fmt: skip


@pytest.mark.parametrize(
    ("address", "is_freed", "fault"),
    [
        (START + 998, False, "out of bounds"),  # its last two bytes
        (START + 1023, False, "out of bounds"),
        (START + 1024, False, "out of bounds"),
        (START + 1511, False, "out of bounds"),
        (START + 1512, False, ""),
        (START + 16, True, "use after free"),
        (START + 1000, True, ""),
        (8, False, "null pointer"),
    ],
)
def test_access_is_a_fault_where_nothing_else_can_be(address: int, is_freed: bool, fault: str) -> None:
    assert replace(ACCESS, address=address, is_freed=is_freed).fault == fault


@pytest.mark.parametrize("size", [512, 1024, 4096])
def test_first_element_past_an_allocation_without_padding_is_out_of_bounds(size: int) -> None:
    access = replace(ACCESS, address=START + size, limit=START + size, above=START + (1 << 20))
    assert access.fault == "out of bounds"


def test_access_below_all_allocations_is_to_unknown_memory() -> None:
    access = replace(ACCESS, address=START - 64, below=0, limit=0, above=START)
    assert (access.fault, access.where) == ("", f"{START - 64:#x}")


def test_nearest_allocation_is_named() -> None:
    assert ACCESS.where == "0x7000000003e8, 0 bytes past 1000 bytes at 0x700000000000"
    assert replace(ACCESS, address=START + 4092).where == "0x700000000ffc, 4 bytes before 0x700000001000"
    freed = replace(ACCESS, address=START + 16, is_freed=True)
    assert freed.where == "0x700000000010, byte 16 of 1000 bytes at 0x700000000000, which was freed"
    behind = replace(freed, address=START + 1000)
    assert behind.where == "0x7000000003e8, 0 bytes past 1000 bytes at 0x700000000000, which was freed"
