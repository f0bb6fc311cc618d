"""Code at exits does without uniform registers."""

from __future__ import annotations

import functools
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.sass.conftest import code_texts
from tui_probe.binaries.cubin import Cubin
from tui_probe.engine.assembler import Assembler
from tui_probe.engine.grafting.snippet_ptx import EXIT_KERNEL, LEADING_BYTES, snippet_ptx
from tui_probe.errors import UnsupportedKernelError
from tui_probe.probe_files.loading import load_probe
from tui_probe.sass.snippets import Snippet
from tui_probe.sass.uniform_replacement import without_uniform
from tui_probe.sass.words import Word

ExitCode = Callable[..., tuple[Snippet, list[str]]]


@pytest.fixture(scope="module")
def exit_code(tmp_path_factory: pytest.TempPathFactory) -> ExitCode:
    """``exit_code(arch, sampled=False)``: the code at exits, and its instructions as nvdisasm writes them.

    That of both is disassembled together, once: nvdisasm takes 0.4 s of CPU to start.
    """
    folder = tmp_path_factory.mktemp("exits")

    @functools.cache
    def both(arch: int) -> list[tuple[Snippet, list[str]]]:
        snippets = [assembled(arch, folder, sampled=sampled) for sampled in (False, True)]
        return list(zip(snippets, code_texts(arch, *(snippet.words for snippet in snippets)), strict=True))

    return lambda arch, *, sampled: both(arch)[sampled]


def assembled(arch: int, folder: Path, *, sampled: bool) -> Snippet:
    source, binary = folder / "exit.ptx", folder / "exit.cubin"
    source.write_text(snippet_ptx(load_probe("block_sched"), arch, samples_blocks=sampled).text)
    Assembler().assemble(source, binary, f"sm_{arch}", EXIT_KERNEL)
    return Snippet.from_cubin(Cubin.read(binary.read_bytes()), EXIT_KERNEL, LEADING_BYTES, may_exit=True)


@pytest.mark.parametrize("sampled", [False, True])
@pytest.mark.parametrize("arch", [80, 86, 89, 90, 100, 120])
def test_only_a_wide_clock_stays_uniform(arch: int, sampled: bool, exit_code: ExitCode) -> None:
    snippet, code = exit_code(arch, sampled=sampled)
    assert len(snippet.uniform_pairs()) <= (arch >= 120)
    makers = {line.split()[0].partition(".")[0] for line in code if " UR" in line[: line.find(",")]}
    assert makers <= ({"CS2UR"} if arch >= 120 else set())
    assert not [line for line in code if line.startswith(("UIMAD", "USHF", "UMOV", "VOTEU", "S2UR"))]


@pytest.mark.parametrize("arch", [90, 100])
def test_constant_memory_is_read_from_the_same_places(arch: int, exit_code: ExitCode) -> None:
    code = "\n".join(exit_code(arch, sampled=False)[1])
    map_address = 0x250 if arch == 90 else 0x3C0
    sizes = (0x0, 0x4, 0x8, 0xC, 0x10) if arch == 90 else (0x360, 0x364, 0x368, 0x370, 0x374)
    for offset in (*sizes, map_address):
        assert f"c[0x0][{offset:#x}]" in code or (offset == 0 and "c[0x0][RZ]" in code)


@pytest.mark.parametrize("arch", [90, 100, 120])
def test_from_sm_90_on_constants_are_loaded_and_waited_for(arch: int, exit_code: ExitCode) -> None:
    """No other instruction takes a constant there: the GPU calls it illegal, though nvdisasm prints it."""
    snippet, code = exit_code(arch, sampled=False)
    assert {line.split()[0].partition(".")[0] for line in code if "c[0x0]" in line} <= {"LDC"}
    awaited: dict[str, int] = {}
    for line, word in zip(code, snippet.words, strict=True):
        names = line.replace(",", " ").replace(".64", "").split()
        for name in names[2:]:
            assert awaited.get(name, 7) == 7 or word.wait_mask >> awaited.pop(name) & 1, line
        if names[0] in ("LDC", "S2R"):
            awaited[names[1]] = word.write_barrier
            assert word.write_barrier != 7, line


@pytest.mark.parametrize("predicate", [7, 0])
def test_uniform_predicates_have_no_ordinary_form(predicate: int) -> None:
    """Its variant would write the ordinary predicate of that number, which may hold what the code still needs."""
    unguarded = 7 << 12
    both = Word(0x292 | unguarded | 4 << 16 | 5 << 24 | 6 << 32).with_field(81, 3, predicate)  # ULOP3 UR4, UR5, UR6
    used = Word(0xC02 | unguarded | 8 << 16 | 4 << 32 | 1 << 91)  # MOV R8, UR4
    if predicate == 7:
        words, _ = without_uniform([both, used], registers=16, arch=90)
        assert [word.opcode for word in words] == [0x212, 0x202]
    else:
        with pytest.raises(UnsupportedKernelError, match="uniform predicate"):
            without_uniform([both, used], registers=16, arch=90)


@pytest.mark.parametrize("arch", [80, 90, 100])
def test_sums_of_an_exit_can_share_a_uniform_register(arch: int) -> None:
    """Each move has the sum of its own registers, although one uniform register holds all, one after another."""
    begun = [redux(20 + number, 4 + number, barrier=number % 4) for number in range(8)]
    used = [moved_sum(40 + number, 4 + number, wait=1 << number % 4) for number in reversed(range(8))]
    words, registers = without_uniform([*begun, *used], registers=48, arch=arch, moves_redux=True)
    sums = [word for word in words if word.operation == 0x1C4]
    assert [word.ra for word in sums] == [20 + number for number in range(8)]
    assert len({word.rd for word in sums}) == 1
    for index, word in enumerate(words):
        if word in sums:
            move = words[index + 1]
            assert (move.opcode, move.field(32, 8)) == (0xC02, word.rd)
            assert move.wait_mask >> word.write_barrier & 1
            assert word.stall >= 2, "the barrier is set by then"
    held = {words[index + 1].rd: word.ra for index, word in enumerate(words) if word in sums}
    uses = words[2 * len(sums) :]
    assert [(word.rd, held[word.rb]) for word in uses] == [(40 + number, 20 + number) for number in reversed(range(8))]
    assert max(held) < registers
    kept, _ = without_uniform([*begun, *used], registers=48, arch=arch)
    assert [word.opcode for word in kept] == [0x3C4] * 8 + [0xC02] * 8, "where enough uniform registers are free"


def redux(register: int, uniform: int, barrier: int) -> Word:
    """``REDUX.SUM UR, R``."""
    return Word(0x3C4 | 7 << 12 | uniform << 16 | register << 24).with_stall(1).with_write_barrier(barrier)


def moved_sum(register: int, uniform: int, wait: int) -> Word:
    """``MOV R, UR``."""
    return Word(0xC02 | 7 << 12 | register << 16 | uniform << 32 | 1 << 91).with_wait_mask(wait)
