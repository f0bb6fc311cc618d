"""Kernels in SASS whose warps have too few registers for a probe: their bulk copies are recorded, and nothing else."""

from __future__ import annotations

import re
import struct
from dataclasses import replace
from typing import TYPE_CHECKING

import pytest

from tests.bench.assembling import assembler
from tests.engine.test_bulk_copies import LAYOUT, LOAD
from tests.engine.test_grafts import prepared
from tests.engine.test_sass_phases import CYCLES_UNTIL_READ
from tests.sass.conftest import code_texts
from tests.sass.test_wait_probe import code_at
from tui_probe.binaries.cubin import Cubin
from tui_probe.cli.main import main
from tui_probe.engine.grafting.graft_gate import GraftGate, OpenGate, TrialOutcome, TrialPart
from tui_probe.engine.grafting.grafts import Grafter
from tui_probe.engine.grafting.record_grafts import COPIES, copies_form
from tui_probe.engine.trial import record_trials
from tui_probe.engine.trial.record_trials import ENTRY_BYTES, RECORD_WARPS
from tui_probe.engine.trial.trial_kernel import TRIAL_KERNEL, TrialFailedError
from tui_probe.errors import UnsupportedKernelError
from tui_probe.probe_files.loading import load_probe
from tui_probe.probe_model.storage import QUEUE_HEADER
from tui_probe.reasons import because
from tui_probe.sass.bulk_copies import UNIFORM_COPIES
from tui_probe.sass.target import GraftTarget
from tui_probe.sass.words import PT, WORD_BYTES
from tui_probe.trace.sites import Site, SiteCopy, parse_sites

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from tui_probe.engine.grafting.grafts import GraftedKernel
    from tui_probe.reasons import Reason
    from tui_probe.sass.words import Word

pytestmark = pytest.mark.usefixtures("ptxas")

ROLES = """
.version 8.6
.target sm_90a
.address_size 64
.visible .entry roles(.param .u64 x, .param .u32 n, .param .align 64 .b8 maps[320], .param .u64 list)
.maxnreg 64
{
	.reg .b32 %r<9>; .reg .b64 %d<9>; .reg .pred %p<3>; .reg .f32 %f<60>;
	.shared .align 128 .b8 buffer[1024]; .shared .align 8 .b64 barrier;
	ld.param.u64 %d1, [x]; ld.param.u32 %r3, [n]; mov.u32 %r1, buffer; mov.u32 %r2, barrier;
	mov.b64 %d2, maps; cvta.param.u64 %d2, %d2; mov.u32 %r5, %ctaid.x; ld.param.u64 %d3, [list];
	add.u64 %d4, %d2, 64; add.u64 %d5, %d2, 192;
	setmaxnreg.dec.sync.aligned.u32 40;
	cp.async.bulk.tensor.2d.LOAD [%r1], [%d4, {%r5, %r3}], [%r2];
	cp.async.bulk.tensor.3d.LOAD [%r1], [%d5, {%r5, %r3, %r5}], [%r2];
	cp.async.bulk.tensor.5d.LOAD [%r1], [%d3, {%r5, %r3, %r5, %r3, %r5}], [%r2];
	cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [%r1], [%d1], 1024, [%r2];
	cp.async.bulk.tensor.2d.global.shared::cta.tile.bulk_group [%d4, {%r5, %r3}], [%r1];
	st.global.u32 [%d1], %r5;
	ret;
}
""".replace("LOAD", LOAD.format("tile."))
PROBES = ("dmat", "gmem_bytes", "gmem_sectors")
COORDINATES = (-3, 1 << 20, 7, 11, -1)


@pytest.fixture(scope="module")
def roles(tmp_path_factory: pytest.TempPathFactory) -> Cubin:
    folder = tmp_path_factory.mktemp("roles")
    (folder / "roles.ptx").write_text(ROLES)
    assembler().assemble(folder / "roles.ptx", folder / "roles.bin", "sm_90a", "roles")
    return Cubin.read((folder / "roles.bin").read_bytes())


def grafted(cubin: Cubin, probe: str) -> GraftedKernel:
    return Grafter(load_probe(probe), assembler(), samples_blocks=False).graft(cubin, cubin.kernels[0], LAYOUT)


@pytest.mark.parametrize("probe", PROBES)
def test_kernels_that_exchange_registers_have_records_of_copies(roles: Cubin, probe: str) -> None:
    kernel = grafted(roles, probe)
    target = GraftTarget.from_cubin(roles, "roles")
    assert kernel.copies_only
    assert kernel.grafted.registers == target.registers
    maps = ["1,24", "1,32768", "1,4"][probe != "dmat" :]
    assert kernel.info.splitlines()[2 : 3 + len(maps)] == [str(len(maps)), *maps]
    assert "note " + because("graft-copies", probe=probe, copies=5).written in kernel.info.splitlines()
    (own,) = parse_sites(kernel.sites.encode())
    assert [site.copy for site in own.sites] == [
        SiteCopy(True, False, 2, (2, 64)),
        SiteCopy(True, False, 3, (2, 192)),
        SiteCopy(True, False, 5),
        SiteCopy(True, True, 0),
        SiteCopy(False, False, 2, (2, 64)),
    ]


@pytest.mark.parametrize("probe", ["what_limits", "gmem_bytes_by_line"])
def test_other_probes_are_refused_as_before(roles: Cubin, probe: str) -> None:
    with pytest.raises(UnsupportedKernelError) as caught:
        grafted(roles, probe)
    assert caught.value.reason.code == "graft-registers"


def test_form_for_copies_takes_one_record_at_the_entry(roles: Cubin) -> None:
    """Its uniform registers are for the records of copies, so a map of several records needs others."""
    target, probe = GraftTarget.from_cubin(roles, "roles"), load_probe("dmat").without_optional_maps()
    form = copies_form(probe, target)
    assert form is not None
    *begun, copies = form.maps
    assert ([own_map.cap for own_map in begun], copies) == ([1], COPIES)
    several = [replace(own_map, cap=2) if own_map in begun else own_map for own_map in probe.maps]
    assert copies_form(replace(probe, maps=tuple(several)), target) is None


def test_check_counts_the_copies(roles: Cubin, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "roles.cubin").write_bytes(roles.image)
    assert main(["check", "gmem_bytes", str(tmp_path / "roles.cubin")]) == 0
    text = capsys.readouterr().out
    assert re.search(r"registers 64 → 64\n", text)
    assert re.search(r"matched   bulk copies: 5\n", text)
    assert "note      gmem_bytes records only the bulk copies of this kernel (instructions: 5)" in text


# The code of a record, executed: registers, uniform registers and memory are numbers by name.


def results(operation: str, guard: str | None, parts: Sequence[str], values: dict[str, int]) -> dict[str, int]:
    """Return the registers that an instruction writes, with their values."""
    numbers = [values[part] if part in values else int(part, 0) for part in parts[1:] if re.match(r"U?R\d|0x", part)]
    match operation:
        case "MOV":
            return {parts[0]: numbers[0]}
        case "CS2R":
            return {parts[0]: values["CLOCK"]}
        case "VIMNMX":
            return {parts[0]: min(numbers)}
        case "UIADD3":
            return {parts[0]: values[parts[0]] + numbers[1] * (guard is None or values[guard])}
        case _:
            assert operation == "IMAD"
            total = numbers[0] * numbers[1] + (values[parts[3]] | values[upper(parts[3])] << 32)
            return {parts[0]: total & 0xFFFFFFFF, upper(parts[0]): total >> 32}


def upper(register: str) -> str:
    return f"R{int(register[1:]) + 1}"


def store(parts: Sequence[str], values: dict[str, int], memory: dict[int, int]) -> set[str]:
    """Store a pair of registers; return all that the store reads."""
    at = re.fullmatch(r"\[(R\d+)(?:\.64)?(?:\+(0x[0-9a-f]+))?\]", parts[0])
    assert at is not None
    address = (values[at[1]] | values[upper(at[1])] << 32) + int(at[2] or "0", 16)
    for half, register in enumerate((parts[1], upper(parts[1]))):
        memory[address + 4 * half] = values[register]
    return {at[1], upper(at[1]), parts[1], upper(parts[1])}


def execute(texts: Sequence[str], code: Sequence[Word], values: dict[str, int], memory: dict[int, int]) -> None:
    """Run the code of a record. A result that is read too early, or a register that is written while a store may still
    read it, fails.
    """
    written_at: dict[str, tuple[int, str]] = {}
    stored: set[str] = set()
    clock = 0
    for word, text in zip(code, texts, strict=True):
        guard, name, operands = re.match(r"(?:@(!?UP\d) )?(\S+)\s*(.*)", text).groups()  # type: ignore[union-attr]
        parts, operation = [part.strip() for part in operands.split(",")], name.partition(".")[0]
        stored = set() if word.wait_mask else stored
        reads = {register for part in parts[1:] for register in re.findall(r"U?R\d+", part)}
        if operation == "STG":
            reads = store(parts, values, memory)
            stored |= reads
        for register in reads & written_at.keys():
            since, writer = written_at[register]
            assert clock - since >= CYCLES_UNTIL_READ[writer, operation], f"{text}: {register} is read too early"
        if operation not in ("STG", "NOP"):
            written = results(operation, guard, parts, values)
            assert not written.keys() & stored, f"{text}: a store may still read it"
            values |= written
            written_at |= dict.fromkeys(written, (clock, operation))
        clock += word.stall


def record_code(kernel: GraftedKernel, offset: int) -> list[Word]:
    """The code in front of a copy at an offset."""
    target = GraftTarget.from_cubin(Cubin.read(kernel.probed_image), Cubin.read(kernel.probed_image).kernels[0])
    begin = code_at(kernel.probed_image, target.name, offset) // WORD_BYTES
    end = next(index for index in range(begin, len(target.words)) if target.words[index].operation in UNIFORM_COPIES)
    return list(target.words[begin:end])


@pytest.fixture(scope="module")
def recorded_copies(roles: Cubin) -> list[tuple[Site, list[Word], list[str]]]:
    """The sites of the copies, with the code of their records and its text by nvdisasm, started once for all."""
    kernel = grafted(roles, "gmem_bytes")
    sites = parse_sites(kernel.sites.encode())[0].sites
    codes = [record_code(kernel, int(site.instruction.line)) for site in sites]
    return [*zip(sites, codes, code_texts(90, *codes), strict=True)]


@pytest.mark.parametrize(("count", "place"), [(0, 0), (5, 5), (2048, 2048), (4000, 2048)])
def test_code_of_records_stores_what_the_instruction_has(
    roles: Cubin, recorded_copies: list[tuple[Site, list[Word], list[str]]], count: int, place: int
) -> None:
    assert len(recorded_copies) == 5
    target = GraftTarget.from_cubin(roles, "roles")
    for site, code, texts in recorded_copies:
        copy, at = site.copy, int(site.instruction.line)
        assert copy is not None
        sources = [re.findall(r"\bUR\d+", text)[0] for text in texts if re.match(r"MOV R\d+, UR", text)]
        counter, high, low, *own = sources
        values = {counter: count, high: 0x7F, low: 0xFFFFFFF0, "CLOCK": 1234}
        operands = [value & 0xFFFFFFFF for value in COORDINATES[: 3 if copy.is_sized else copy.dimensions]]
        assert len(own) == len(operands)
        values |= dict(zip(own, operands, strict=True))
        memory: dict[int, int] = {}
        execute(texts, code, values, memory)
        start = 0x7FFFFFFFF0 + 16 * place
        expected = [1234, at, *operands[:2]]
        if copy.records == 2:
            expected += [operands[2], at | 1, *operands[3:]]
        assert [memory[start + 4 * index] for index in range(len(expected))] == expected
        assert set(memory) <= set(range(start, start + 16 * copy.records, 4))
        assert values[counter] == count + copy.records
        assert target.words[at // WORD_BYTES].operation in UNIFORM_COPIES


def trial_content(places: Sequence[int], base: int = 0x7F0000000000) -> bytes:
    """The records that each warp of the self-test must leave."""
    begun = struct.pack("<QIxxxxI12x", 9, 3, 1) * RECORD_WARPS
    content, storage = bytearray(begun), record_trials.storage_of_copies()
    for warp in range(RECORD_WARPS):
        copies = list(record_trials.expected_copies(warp, places)) if warp < RECORD_WARPS - 1 else []
        records = b""
        for place, offset, size in copies:
            address = base + offset
            fields = 5, place, address & 0xFFFFFFFF, address >> 32, size // 16, place | 1, 0, 0
            records += struct.pack("<8I", *fields)
        slot = struct.pack("<I12x", 1 + 2 * len(copies)) + records
        content += slot.ljust(storage, b"\0")
    return bytes(content)


def test_self_test_has_a_kernel_with_copies() -> None:
    cubin = record_trials.copies_cubin(90, assembler())
    trial = record_trials.copies_trial(cubin)
    kernel = Grafter(trial.probe, assembler(), samples_blocks=False).graft(cubin, TRIAL_KERNEL)
    assert kernel.copies_only
    places = [int(site.instruction.line) for site in parse_sites(kernel.sites.encode())[0].sites]
    target = GraftTarget.from_cubin(cubin, TRIAL_KERNEL)
    assert [target.words[place // WORD_BYTES].guard == PT for place in places] == [True, False]
    guarded = record_code(kernel, places[1])
    assert [word.guard for word in guarded if word.guard != PT] == [target.words[places[1] // WORD_BYTES].guard]
    content = trial_content(places)
    assert sum(trial.map_bytes) == len(content)
    trial.check(content)


@pytest.mark.parametrize(
    ("at", "value", "words"),
    [
        (0, 3, "saved 2 records of bulk copies, not 6"),
        (QUEUE_HEADER, 0, "saved a record of a bulk copy without a time"),
        (QUEUE_HEADER + 4, 0x7770, "saved a record of a bulk copy at 0x7770 that it did not make"),
        (QUEUE_HEADER + 16, 2, "saved a record of a bulk copy at 0x100 that it did not make"),
    ],
)
def test_self_test_refuses_wrong_copies(at: int, value: int, words: str) -> None:
    content = bytearray(trial_content([0x100, 0x200]))
    struct.pack_into("<I", content, ENTRY_BYTES + 2 * record_trials.storage_of_copies() + at, value)
    with pytest.raises(TrialFailedError, match=f"warp 2 {words}"):
        record_trials.check_copies(bytes(content), [0x100, 0x200])


class GateWithoutCopies(OpenGate):
    """A GPU on which records of bulk copies went wrong."""

    def refusal(self, _arch: int, part: TrialPart) -> Reason | None:
        return because("graft-instructions-fail", words="other copies") if part is TrialPart.COPIES else None


def test_failed_self_test_refuses_kernels_with_copies_only(roles: Cubin, tmp_path: Path) -> None:
    assert prepared(tmp_path / "before", roles.image, "roles", "dmat").outcome == "ok"
    after = prepared(tmp_path / "after", roles.image, "roles", "dmat", gate=GateWithoutCopies())
    assert (after.outcome, after.code) == ("skipped", "graft-instructions-fail")
    gate, passed = GraftGate(None, []), dict.fromkeys(("instructions", "records", "short_records"), "passed")
    gate._outcomes[90] = TrialOutcome("passed", **passed, copies="other copies")
    assert gate.refusal(90, TrialPart.SHORT_RECORDS) is None
    assert gate.refusal(90, TrialPart.COPIES) == because("graft-instructions-fail", words="other copies")
