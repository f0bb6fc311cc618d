"""Kernels without PTX: grafted, refused with a reason, kept for the next run, and only where a trial went well."""

from __future__ import annotations

import json
import re
import stat
import struct
import subprocess
from typing import TYPE_CHECKING

import pytest

from tests.engine.cubin_entries import kernels_in
from tests.ptx.corpus import DATA
from tests.sass.conftest import ARCHITECTURES, assembled, code_texts, disassembled
from tests.sass.kernels import NO_PARAMETERS, SAXPY, SEVERAL, VARIABLES
from tests.turns import due_pairs
from tui_probe.binaries.cubin import Cubin
from tui_probe.binaries.line_tables import cut_table
from tui_probe.engine.assembler import Assembler
from tui_probe.engine.cache import Cache
from tui_probe.engine.grafting import graft_gate
from tui_probe.engine.grafting.graft_gate import GraftGate, OpenGate, TrialPart, trial_part
from tui_probe.engine.grafting.grafts import Grafter
from tui_probe.engine.grafting.snippet_ptx import snippet_ptx
from tui_probe.engine.image_kernels import find_cubin
from tui_probe.engine.kernel_cache import PrepareOptions
from tui_probe.engine.preparer import Preparer
from tui_probe.engine.trial import count_trials, graft_trial, record_trials
from tui_probe.engine.trial.trial_kernel import (
    ACTIVE_THREADS,
    THREADS,
    THREADS_OF_GRID,
    TRIAL_KERNEL,
    TrialFailedError,
    trial_cubin,
)
from tui_probe.errors import ImageError, UnsupportedKernelError
from tui_probe.probe_files.loading import load_probe, read_probe
from tui_probe.reasons import because
from tui_probe.sass.accesses import LDG, LDS
from tui_probe.sass.prune import prune_cubin
from tui_probe.sass.target import GraftTarget
from tui_probe.sass.uniform_registers import named_uniform_registers

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from pathlib import Path

    from tui_probe.engine.reception import Answer
    from tui_probe.reasons import Reason
    from tui_probe.sass.words import Word

__all__ = ["assembled", "disassembled"]
IMAGE = (DATA / "image.no_ptx.cubin").read_bytes()


class ClosedGate:
    """A GPU on which grafts went wrong, those at ``instructions`` only or all."""

    def __init__(self, *, but_entries: bool = False) -> None:
        self.but_entries = but_entries

    def refusal(self, _arch: int, part: TrialPart) -> Reason | None:
        if self.but_entries:
            return None if part is TrialPart.ENTRIES else because("graft-instructions-fail", words="other sums")
        return because("graft-fails", words="everything is different")

    def is_known(self, _arch: int) -> bool:
        return True

    def allows_slots(self, _arch: int) -> bool:
        return False

    def pruning_fault(self, _arch: int) -> str:
        return ""


def prepared(
    folder: Path, image: bytes = IMAGE, kernel: str = "zero", probe: str = "block_sched", **given: object
) -> Answer:
    folder.mkdir(exist_ok=True)
    (folder / "original.bin").write_bytes(image)
    given.setdefault("gate", OpenGate())
    preparer = Preparer(load_probe(probe), **given)  # type: ignore[arg-type]
    answer = preparer.prepare(folder, "sm_90", kernel)
    preparer.close()
    return answer


def test_a_kernel_without_ptx_is_grafted(tmp_path: Path) -> None:
    answer = prepared(tmp_path)
    assert (answer.outcome, answer.text) == ("ok", "probed.bin")
    assert find_cubin(IMAGE, "zero", 90)[0].kernels == ("zero_strided", "zero")
    assert Cubin.read((tmp_path / "pruned.bin").read_bytes()).kernels == ("zero",)
    before, after = (
        GraftTarget.from_cubin(Cubin.read((tmp_path / f"{name}.bin").read_bytes()), "zero")
        for name in ("pruned", "probed")
    )
    info = (tmp_path / "kernel.info").read_text().splitlines()
    assert info[:4] == ["zero", "2", "1", "1,16"]
    assert "way graft" in info
    places = " ".join(str(at) for at in (0, *before.exits()))
    assert f"grafted {places} appended {before.code.size}" in info
    assert after.parameters == before.parameters + 1
    log = (tmp_path / "process.log").read_text()
    assert "SASS for sm_90" in log
    assert "[graft] replaced 3 of 24 instructions: 0x0000, 0x0070, 0x00c0" in log
    assert not list(tmp_path.glob("*.ptx"))


def test_the_cubin_stays_whole_where_the_trial_of_pruned_ones_failed(tmp_path: Path) -> None:
    class Careful(OpenGate):
        wrong = ""

        def pruning_fault(self, _arch: int) -> str:
            return self.wrong

    gate, cache = Careful(), Cache(tmp_path / "cache")
    for number, wrong in enumerate(("", "other sums")):
        gate.wrong, folder = wrong, tmp_path / str(number)
        assert prepared(folder, gate=gate, cache=cache).outcome == "ok"
        assert ((folder / "pruned.bin").read_bytes() == IMAGE) == bool(wrong)
        log = (folder / "process.log").read_text()
        failed = (
            "[prune] pruned.bin is the whole cubin, because the self-test of pruned cubins failed on this GPU: other"
            " sums"
        )
        assert (failed in log) == bool(wrong)
        assert ("[prune] pruned.bin contains one of 2 kernels: " in log) != bool(wrong)
        assert "[cache]" not in log, "the one of the cache is pruned"


def test_the_cubin_stays_whole_where_it_holds_something_unknown(tmp_path: Path) -> None:
    image = IMAGE.replace(b".nv.callgraph\0", b".nv.undergrow\0")
    assert prepared(tmp_path, image).outcome == "ok"
    assert (tmp_path / "pruned.bin").read_bytes() == image
    log = (tmp_path / "process.log").read_text()
    assert "[prune] pruned.bin is the whole cubin: unknown section .nv.undergrow" in log


def test_ptx_comes_first(tmp_path: Path) -> None:
    answer = prepared(tmp_path, (DATA / "attn_fwd.sm_90a.cubin").read_bytes(), "attn_fwd")
    assert answer.outcome == "ok"
    assert (tmp_path / "probed.ptx").exists()
    assert "way graft" not in (tmp_path / "kernel.info").read_text()


def test_sass_is_used_where_ptx_is_newer_than_ptxas(tmp_path: Path) -> None:
    """Packages bring compilers that are newer than the CUDA toolkit, and the machine code of the image runs."""
    image = (DATA / "attn_fwd.sm_90a.cubin").read_bytes()
    newer = re.sub(rb"\.version 8\.\d", b".version 9.9", image, count=1)
    assert newer != image
    cache = Cache(tmp_path / "cache")
    for folder in (tmp_path / "first", tmp_path / "again"):
        answer = prepared(folder, newer, "attn_fwd", cache=cache)
        assert (answer.outcome, answer.text) == ("ok", "probed.bin")
        assert "way graft" in (folder / "kernel.info").read_text().splitlines()
        assert not list(folder.glob("*.ptx"))
    log = (tmp_path / "first" / "process.log").read_text()
    assert "Unsupported .version 9.9" in log
    answer = prepared(tmp_path / "closed", newer, "attn_fwd", gate=ClosedGate())
    assert (answer.outcome, answer.code) == ("skipped", "graft-fails")
    assert "Unsupported .version 9.9" in (tmp_path / "closed" / "process.log").read_text()


@pytest.mark.parametrize(
    ("given", "code"),
    [
        ({"options": PrepareOptions(machine_code="off")}, "machine-code-off"),
        ({"options": PrepareOptions(load="ptx")}, "no-ptx"),
        ({"gate": ClosedGate()}, "graft-fails"),
        ({"gate": ClosedGate(but_entries=True), "probe": "gmem_sectors"}, "graft-instructions-fail"),
        ({"probe": "nan_check"}, "needs-instructions"),
        ({"image": IMAGE.replace(b"\x04\x5a\x00\x06", b"\x04\x50\x00\x06", 1)}, "no-ptx"),
    ],
    ids=["off", "given PTX", "trial", "trial of instructions", "instructions", "other GPU"],
)
def test_why_not(tmp_path: Path, given: dict[str, object], code: str) -> None:
    answer = prepared(tmp_path, **given)  # type: ignore[arg-type]
    assert (answer.outcome, answer.code) == ("skipped", code)
    assert not (tmp_path / "probed.bin").exists()
    assert (tmp_path / "process.log").read_text().splitlines()[-1].startswith("[skipped] ")


def test_one_from_the_cache_is_the_same(tmp_path: Path) -> None:
    cache = Cache(tmp_path / "cache")
    prepared(tmp_path / "first", cache=cache)
    assert prepared(tmp_path / "second", cache=cache).outcome == "ok"
    for file in ("pruned.bin", "probed.bin", "kernel.info"):
        assert (tmp_path / "second" / file).read_bytes() == (tmp_path / "first" / file).read_bytes()
    log = (tmp_path / "second" / "process.log").read_text()
    assert "[cache] prepared earlier" in log
    assert "[prune] pruned.bin contains one of 2 kernels: " in log


def test_entries_are_probed_where_only_instructions_failed(tmp_path: Path) -> None:
    assert prepared(tmp_path, gate=ClosedGate(but_entries=True)).outcome == "ok"


def test_counts_of_instructions_need_no_ptx(tmp_path: Path) -> None:
    cache = Cache(tmp_path / "cache")
    assert prepared(tmp_path / "first", probe="gmem_sectors", cache=cache).outcome == "ok"
    places = (tmp_path / "first" / "kernel.info").read_text()
    assert "way graft" in places
    cached = prepared(tmp_path / "second", probe="gmem_sectors", cache=cache, gate=ClosedGate(but_entries=True))
    assert cached.code == "graft-instructions-fail", "one from the cache neither"


def test_one_from_the_cache_is_not_used_where_grafts_are_off(tmp_path: Path) -> None:
    cache = Cache(tmp_path / "cache")
    prepared(tmp_path / "first", cache=cache)
    off = prepared(tmp_path / "second", cache=cache, options=PrepareOptions(machine_code="off"))
    closed = prepared(tmp_path / "third", cache=cache, gate=ClosedGate())
    assert (off.code, closed.code) == ("machine-code-off", "graft-fails")
    assert not (tmp_path / "second" / "probed.bin").exists()


@pytest.mark.parametrize(("arch", "sampled"), due_pairs(ARCHITECTURES, [False, True]))
def test_added_code_keeps_the_uniform_registers_of_the_kernel(
    assembled: Callable[[str, int], Cubin], arch: int, sampled: bool
) -> None:
    grafter = Grafter(load_probe("block_sched"), Assembler(), samples_blocks=sampled)
    added: list[Sequence[Word]] = []
    parameters = []
    for text, name in ((SAXPY, "saxpy"), (NO_PARAMETERS, "bare"), (VARIABLES, "varied")):
        cubin = assembled(text, arch)
        made = grafter.graft(cubin, name)
        before, after = GraftTarget.from_cubin(cubin, name), GraftTarget.from_cubin(Cubin.read(made.probed_image), name)
        mine, others = (
            {number for word in words for number in named_uniform_registers(word, arch) or ()}
            for words in (after.words[len(before.words) :], before.words)
        )
        assert mine
        assert not mine & others
        added.append(after.words[len(before.words) :])
        parameters.append(before.base + before.added_offset)
    for texts, parameter in zip(code_texts(arch, *added), parameters, strict=True):
        assert any(f"c[0x0][{parameter:#x}]" in text for text in texts), "the map's address where it lies"


@pytest.mark.parametrize("arch", ARCHITECTURES)
def test_values_kept_in_slots(
    assembled: Callable[[str, int], Cubin], disassembled: Callable[[bytes], dict[int, str]], arch: int
) -> None:
    """For kernels that leave no register: the clock of the entry lies behind the record until the exit."""
    start = GraftTarget.from_cubin(assembled(SAXPY, arch), "saxpy").code.size
    grafter = Grafter(load_probe("block_sched"), Assembler(), samples_blocks=False)
    made = grafter.graft(assembled(SAXPY, arch), "saxpy", in_slots=True)
    shown = [text for at, text in sorted(disassembled(made.probed_image).items()) if at >= start]
    back = next(index for index, text in enumerate(shown) if text.startswith("BRA"))
    entry, leaving = shown[:back], shown[back:]
    assert [text.split()[-2] for text in entry if text.startswith("STG.E")], "what the entry keeps"
    assert sum("+0x14]" in text for text in entry if text.startswith("STG")) == 1
    assert sum("+0x14]" in text for text in leaving if text.startswith("LDG")) == 1
    assert not any("UR" in text for text in leaving), "nor do exits need uniform registers"
    after = GraftTarget.from_cubin(Cubin.read(made.probed_image), "saxpy")
    waits = after.words[start // 16 + back - 2]
    assert waits.wait_mask >> 5 & 1, "the kernel continues once the operands of the store were read"


def test_values_are_kept_in_slots_where_no_register_is_left(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tui_probe.engine.grafting.grafts.used_uniform_registers", lambda *_: frozenset(range(4, 63)))
    monkeypatch.setattr("tui_probe.engine.grafting.grafts._first_free_register", lambda *_: None)
    assert prepared(tmp_path / "allowed").outcome == "ok"
    assert "values of the probe are in its slots" in (tmp_path / "allowed" / "process.log").read_text()

    class Careful(OpenGate):
        def allows_slots(self, _arch: int) -> bool:
            return False

    answer = prepared(tmp_path / "refused", gate=Careful())
    assert answer.code == "graft-uniform"


def test_kernels_with_values_in_slots_are_kept_for_where_that_is_allowed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("tui_probe.engine.grafting.grafts.used_uniform_registers", lambda *_: frozenset(range(4, 63)))
    monkeypatch.setattr("tui_probe.engine.grafting.grafts._first_free_register", lambda *_: None)
    cache = Cache(tmp_path / "cache")
    prepared(tmp_path / "first", cache=cache)
    assert prepared(tmp_path / "second", cache=cache).outcome == "ok"
    assert "[cache] prepared earlier" in (tmp_path / "second" / "process.log").read_text()
    assert prepared(tmp_path / "third", cache=cache, gate=ClosedGate()).code == "graft-uniform", "a miss"
    assert not (tmp_path / "third" / "probed.bin").exists()


def test_driver_learns_of_the_third_dimension(assembled: Callable[[str, int], Cubin]) -> None:
    """Attribute 4 of older architectures, without which it need not be there."""
    made = Grafter(load_probe("block_sched"), Assembler(), samples_blocks=False).graft(assembled(SAXPY, 80), "saxpy")
    before, after = (
        GraftTarget.from_cubin(cubin, "saxpy") for cubin in (assembled(SAXPY, 80), Cubin.read(made.probed_image))
    )
    assert 4 not in {attribute.number for attribute in before.attributes}
    assert [attribute.number for attribute in after.attributes].count(4) == 1


def test_the_probes_code_is_assembled_once_for_all_processes(
    assembled: Callable[[str, int], Cubin], tmp_path: Path
) -> None:
    class Counting(Assembler):
        runs = 0

        def assemble(self, *given: object, **named: object) -> object:  # type: ignore[override]
            self.runs += 1
            return super().assemble(*given, **named)  # type: ignore[arg-type]

    assembler = Counting()
    for _ in range(2):  # each with a memory of its own, as that of a process
        grafter = Grafter(load_probe("block_sched"), assembler, Cache(tmp_path), samples_blocks=False)
        for text, name in ((VARIABLES, "varied"), (SAXPY, "saxpy"), (VARIABLES, "varied")):
            grafter.graft(assembled(text, 90), name)
        grafter.close()
        assert assembler.runs == 4, "at two alignments, and each once more to see that it is the same code"


LANES = """
[map.m]
level = "warp"
size = 8
[map.m.regs]
a = "u32"
[probe.p]
position = "kernel"
level = "warp"
before = ".reg .b32 %kept;\\nmov.u32 %kept, %laneid;"
after = "SAVE [ m ] {%kept};"
"""


def test_lane_dependent_values_cannot_be_kept(assembled: Callable[[str, int], Cubin], tmp_path: Path) -> None:
    probe = read_probe(LANES.encode(), tmp_path / "lanes.toml")
    with pytest.raises(UnsupportedKernelError) as refused:
        Grafter(probe, Assembler(), samples_blocks=False).graft(assembled(SAXPY, 90), "saxpy")
    assert refused.value.reason.code == "graft-lanes"


def test_several_records_need_ptx() -> None:
    probe = load_probe("block_sched")
    many = type(probe.maps[0])(probe.maps[0].name, probe.maps[0].level, probe.maps[0].fields, 16, cap=4)
    from dataclasses import replace

    with pytest.raises(UnsupportedKernelError) as refused:
        snippet_ptx(replace(probe, maps=(many,)), 90, samples_blocks=False)
    assert refused.value.reason.code == "graft-many-records"


def test_cubin_choice_by_device() -> None:
    assert kernels_in(IMAGE) == {"zero_strided": 90, "zero": 90}
    assert kernels_in(IMAGE, 80) == {}
    cubin, note = find_cubin(IMAGE, "zero", 90)
    assert cubin.image == IMAGE
    assert "SASS for sm_90" in note
    for kernel, arch in (("zero", 80), ("zero", 100), ("other", 90)):
        with pytest.raises(ImageError) as refused:
            find_cubin(IMAGE, kernel, arch)
        assert refused.value.reason.code == "no-machine-code"


def fatbin_of(*entries: tuple[int, int, bytes]) -> bytes:
    """A container with uncompressed machine code: architecture, flags, content."""
    body = b"".join(
        struct.pack("<HHIQIIHHIIIQQQ", 2, 257, 64, len(content), 0, 0, 8, 1, arch, 0, 0, flags | 0x11, 0, 0) + content
        for arch, flags, content in entries
    )
    return struct.pack("<IHHQ", 0xBA55ED50, 1, 16, len(body)) + body


def test_code_for_a_single_architecture_comes_first() -> None:
    """As nvcc marks them: sm_90a with flag 0x100000, sm_100f with 0x200000."""
    plain, specific, older = (IMAGE + bytes(8 * number) for number in (1, 2, 3))
    for entries in ([(90, 0, plain), (90, 0x100000, specific)], [(90, 0x100000, specific), (90, 0, plain)]):
        cubin, _ = find_cubin(fatbin_of((80, 0, older), *entries), "zero", 90)
        assert cubin.image == specific
    family = fatbin_of((100, 0, plain), (100, 0x1200000, specific), (100, 0x1100000, older))
    assert find_cubin(family, "zero", 100)[0].image == older
    assert find_cubin(family, "zero", 103)[0].image == specific, "sm_100a runs on 10.0 only"
    assert find_cubin(fatbin_of((90, 0, plain)), "zero", 90)[0].image == plain


@pytest.mark.parametrize("arch", [80, 86, 89, 90, 100, 103, 120])
def test_the_kernel_of_the_trial_can_be_grafted(arch: int) -> None:
    assembler = Assembler()
    if not assembler.tools():
        pytest.skip("no ptxas on this machine: install nvidia-cuda-nvcc")
    cubin = trial_cubin(arch, assembler)
    made = Grafter(graft_trial.trial_probe(), assembler, samples_blocks=False).graft(cubin, TRIAL_KERNEL)
    assert [patch.name for patch in made.grafted.patches] == ["trial_total"]
    assert made.grafted.constants == (("trial_table", 16),)
    assert len(made.grafted.branches) == 4
    by_warp, by_site = (
        Grafter(trial.probe, assembler, samples_blocks=False).graft(cubin, TRIAL_KERNEL)
        for trial in count_trials.instruction_trials()
    )
    assert len(by_site.grafted.branches) == 5, "a load and two stores of global memory, a load and a store of shared"
    assert set(by_warp.grafted.branches) == {*by_site.grafted.branches, *made.grafted.branches}
    records = Grafter(record_trials.record_trial().probe, assembler, samples_blocks=False).graft(cubin, TRIAL_KERNEL)
    assert len(records.grafted.branches) == 9, "the entry, two exits and one of none, a load, two stores, two sums"
    target = GraftTarget.from_cubin(cubin, TRIAL_KERNEL)
    accesses = [
        next(at for at in by_site.grafted.branches if target.words[at // 16].operation == operation)
        for operation in (LDG, LDS)
    ]
    assert min(accesses) > min(target.exits()), "lanes that leave immediately load nothing, as the expected counts say"


@pytest.mark.parametrize("arch", [80, 86, 90, 100])
def test_the_kernel_of_the_trial_of_pruning_calls_a_function(arch: int) -> None:
    assembler = Assembler()
    if not assembler.tools():
        pytest.skip("no ptxas on this machine: install nvidia-cuda-nvcc")
    cubin = trial_cubin(arch, assembler, with_others=True)
    assert set(cubin.kernels) == {TRIAL_KERNEL, "other"}
    pruned = prune_cubin(cubin, TRIAL_KERNEL, cut_table)
    assert [symbol.name for symbol in pruned.symbols if symbol.kind == 2] == ["$trial$trial_mix", TRIAL_KERNEL]
    assert {symbol.name for symbol in pruned.symbols} >= {"trial_total", "other_total", "trial_table", "other_table"}
    made = Grafter(graft_trial.trial_probe(), assembler, samples_blocks=False).graft(pruned, TRIAL_KERNEL)
    assert [patch.name for patch in made.grafted.patches] == ["trial_total"]
    assert len(made.probed_image) < len(cubin.image)


@pytest.mark.parametrize("arch", [80, 90, 100])
def test_a_graft_in_a_pruned_cubin_is_that_in_the_whole(assembled: Callable[[str, int], Cubin], arch: int) -> None:
    grafter = Grafter(load_probe("block_sched"), Assembler(), samples_blocks=False)
    unpruned = assembled(SEVERAL, arch)
    for name in ("saxpy", "bare", "varied", "calling"):
        made = [grafter.graft(cubin, name) for cubin in (unpruned, prune_cubin(unpruned, name, cut_table))]
        files = [Cubin.read(graft.probed_image) for graft in made]
        before, after = (GraftTarget.from_cubin(file, name) for file in files)
        assert (after.words, after.registers) == (before.words, before.registers)
        assert made[1].info.partition("patch")[0] == made[0].info.partition("patch")[0]
        assert made[1].grafted.constants == made[0].grafted.constants
        places = [
            [
                (section.name, patch.offset - section.offset, patch.kind, patch.addend, patch.name)
                for patch in one.grafted.patches
                for section in file.sections
                if section.offset <= patch.offset < section.end
            ]
            for one, file in zip(made, files, strict=True)
        ]
        assert places[1] == places[0]
        assert bool(places[0]) == (name in ("varied", "bare"))


def test_pruned_cubins_have_an_outcome_of_their_own(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    outcome = {"outcome": "passed", "words": ""}
    for number, (pruned, wrong) in enumerate((("passed", ""), ("other sums", "other sums"), ("", "not run"))):
        FakeTrial(monkeypatch, json.dumps(outcome | {"pruned": pruned}))
        assert GraftGate(tmp_path / str(number), []).pruning_fault(90) == wrong


def test_counts_of_the_trial_are_those_of_its_lanes() -> None:
    """Worked out lane by lane, from what the kernel's text says."""
    lanes = range(ACTIVE_THREADS)
    loading = [lane for lane in lanes if lane % THREADS % 2]
    stored = [lane // 32 for lane in range(THREADS_OF_GRID)]
    assert {
        "load_requests": len({lane // 32 for lane in loading}),
        "load_sectors": len({(lane // 32, lane * 4 // 32) for lane in loading}),
        "load_bytes": 4 * len(loading),
        "store_bytes": 4 * len(lanes),
        "shared_requests": len(set(stored)) + len({lane // 32 for lane in lanes}),
        "shared_words": len(stored) + len(lanes),
        "shared_bytes": 4 * (len(stored) + len(lanes)),
        "threads": THREADS_OF_GRID,
    } == count_trials.EXPECTED_INSTRUCTION_COUNTS


def test_other_counts_fail_the_trial() -> None:
    record, expected = count_trials.INSTRUCTION_RECORD, list(count_trials.EXPECTED_INSTRUCTION_COUNTS.values())
    count_trials.check_counts(record.pack(*expected) + bytes(record.size))
    count_trials.check_counts_of_sites(record.pack(*expected[:-1], 0))
    with pytest.raises(TrialFailedError, match="counted 256 load requests, not 255"):
        count_trials.check_counts(record.pack(expected[0] + 1, *expected[1:]))


def test_records_of_the_trial() -> None:
    good = graft_trial._WARP_RECORD.pack(5, 7, 3, 1)
    graft_trial.check_warp_records(good * 4)
    for bad, words in (
        (good + bytes(32), "1 of 2 warps saved no record"),
        (graft_trial._WARP_RECORD.pack(5, 0, 3, 1), "0 cycles"),
        (graft_trial._WARP_RECORD.pack(5, 7, 1 << 20, 1), "SM 1048576"),
    ):
        with pytest.raises(TrialFailedError, match=words):
            graft_trial.check_warp_records(bad)


class FakeTrial:
    """Stands for the process of the trial."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, output: str) -> None:
        self.output, self.runs = output, 0
        monkeypatch.setattr(subprocess, "run", self.run)
        monkeypatch.setattr(graft_gate, "driver_version", lambda: "580.1")

    def run(self, command: list[str], **_: object) -> subprocess.CompletedProcess[bytes]:
        assert command[-2:] == ["--arch", "90"]
        self.runs += 1
        return subprocess.CompletedProcess(command, 0, self.output.encode(), b"Traceback\nImportError: no\n")


@pytest.mark.parametrize(
    ("output", "code", "kept"),
    [
        ({"outcome": "passed", "words": ""}, None, True),
        ({"outcome": "failed", "words": "other sums"}, "graft-fails", True),
        ({"outcome": "impossible", "words": "no device"}, "graft-untested", False),
        ("no JSON", "graft-untested", False),
    ],
)
def test_the_outcome_of_the_trial_decides_and_is_kept(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, output: object, code: str | None, *, kept: bool
) -> None:
    trial = FakeTrial(monkeypatch, output if isinstance(output, str) else json.dumps(output))
    for _ in range(2):
        gate = GraftGate(tmp_path, [])
        reason = gate.refusal(90, TrialPart.ENTRIES)
        assert (reason and reason.code) == code
        assert gate.refusal(90, TrialPart.ENTRIES) == reason
    assert trial.runs == (1 if kept else 2)


def test_values_in_slots_have_an_outcome_of_their_own(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    FakeTrial(monkeypatch, json.dumps({"outcome": "passed", "words": "", "slots": "cuCtxSynchronize: error"}))
    gate = GraftGate(tmp_path, [])
    assert gate.refusal(90, TrialPart.ENTRIES) is None
    assert not gate.allows_slots(90)
    FakeTrial(monkeypatch, json.dumps({"outcome": "passed", "words": "", "slots": "passed"}))
    assert GraftGate(tmp_path / "other", []).allows_slots(90)


def test_probes_at_instructions_have_an_outcome_of_their_own(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for number, (words, code) in enumerate((("passed", None), ("other sums", "graft-instructions-fail"))):
        FakeTrial(monkeypatch, json.dumps({"outcome": "passed", "instructions": words}))
        gate = GraftGate(tmp_path / str(number), [])
        reason = gate.refusal(90, TrialPart.INSTRUCTIONS)
        assert (reason and reason.code) == code
        assert gate.refusal(90, TrialPart.ENTRIES) is None


def test_records_have_an_outcome_of_their_own(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    parts = [trial_part(load_probe(name)) for name in ("block_sched", "gmem_sectors", "what_limits", "dmat")]
    assert parts == [part for part in TrialPart if part not in (TrialPart.SHORT_RECORDS, TrialPart.COPIES)]
    for number, (words, code) in enumerate((("passed", None), ("", "graft-instructions-fail"))):
        FakeTrial(monkeypatch, json.dumps({"outcome": "passed", "instructions": "passed", "records": words}))
        gate = GraftGate(tmp_path / str(number), [])
        reason = gate.refusal(90, TrialPart.RECORDS)
        assert (reason and reason.code) == code
        assert gate.refusal(90, TrialPart.INSTRUCTIONS) is None


def test_counts_of_blocks_have_an_outcome_of_their_own(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for number, (words, code) in enumerate((("passed", None), ("", "graft-instructions-fail"))):
        outcome = dict.fromkeys(("outcome", "instructions", "records"), "passed")
        FakeTrial(monkeypatch, json.dumps(outcome | {"blocks": words}))
        gate = GraftGate(tmp_path / str(number), [])
        reason = gate.refusal(90, TrialPart.BLOCKS)
        assert (reason and reason.code) == code
        assert gate.refusal(90, TrialPart.RECORDS) is None


OUTPUT, TOTAL = 0x7F00_0000_1000, 0x7F00_0000_0040


def threads_of_the_trial() -> list[list[record_trials.AccessRecord]]:
    """Worked out lane by lane, where the lowest lane of a warp adds for all."""
    by_thread = []
    for number in range(THREADS_OF_GRID):
        own = OUTPUT + 4 * number
        load = [record_trials.AccessRecord(own, 0xFFFF_FFF0, 0x150)] if number % 2 else []
        add = [record_trials.AccessRecord(TOTAL, 40, 0x1D0)] if number % 32 == 0 else []
        by_thread.append([*load, record_trials.AccessRecord(own, 10, 0x1B0), *add] if number < ACTIVE_THREADS else [])
    return by_thread


def recorded(threads: list[list[record_trials.AccessRecord]]) -> bytes:
    """As warps keep them: counts, then a record of each lane after another."""
    warps = struct.pack("<QIxxxxI12x", 5, 3, 1) * (THREADS_OF_GRID // 32)
    for at in range(0, THREADS_OF_GRID, 32):
        lanes = threads[at : at + 32]
        warps += b"".join(struct.pack("<I", 1 + len(lane)) for lane in lanes) + bytes(12 * 32)
        for index in range(record_trials.MAX_RECORDS):
            warps += b"".join(struct.pack("<QII", *lane[index]) if index < len(lane) else bytes(16) for lane in lanes)
    return warps


def test_records_of_single_accesses_of_the_trial() -> None:
    good = threads_of_the_trial()
    record_trials.check_access_records(recorded(good))
    assert len(recorded(good)) == sum(record_trials.record_trial().map_bytes)

    def changed(number: int, records: list[record_trials.AccessRecord]) -> bytes:
        return recorded([records if index == number else each for index, each in enumerate(good)])

    odd = good[5]
    for bad, words in (
        (bytes(32) + recorded(good)[32:], "a record of a warp has impossible values"),
        (changed(5, odd[:1]), "thread 5 saved 1 accesses"),
        (changed(5, odd[::-1]), "accesses in the wrong order"),
        (changed(5, [odd[0]._replace(address=OUTPUT), odd[1]]), "thread 5 saved 1 accesses"),
        (changed(5, [odd[0]._replace(address=TOTAL + 4), *odd[1:]]), "2 addresses"),
        (changed(5, [odd[0]._replace(place=0), *odd[1:]]), "with a wrong instruction offset"),
        (changed(32, good[32][:1]), "warp 1 .* no atomic access"),
        (changed(THREADS_OF_GRID - 1, [good[0][0]._replace(address=OUTPUT)]), "thread 8191"),
        (recorded(good)[:-2560] + bytes(2560), "counted -1"),
    ):
        with pytest.raises(TrialFailedError, match=words):
            record_trials.check_access_records(bad)


def test_trial_results_before_a_hang_hold(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def hang(command: list[str], **_: object) -> None:
        lines = [
            {"outcome": "passed", "slots": words, "instructions": "the test did not finish"} for words in ("", "passed")
        ]
        raise subprocess.TimeoutExpired(command, 60, "".join(json.dumps(line) + "\n" for line in lines).encode())

    monkeypatch.setattr(subprocess, "run", hang)
    gate = GraftGate(tmp_path, [])
    assert gate.refusal(90, TrialPart.ENTRIES) is None
    assert gate.allows_slots(90)
    reason = gate.refusal(90, TrialPart.INSTRUCTIONS)
    assert reason
    assert "the test did not finish" in reason.text


def test_parts_of_a_trial_that_go_wrong(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    """A device on which any graft at instructions changes the kernel's output."""

    def tried(_cuda: object, _cubin: object, _assembler: object, trial: object, **how: object) -> None:
        options = ", ".join(name for name, value in how.items() if value)
        if trial in trials or options:
            raise TrialFailedError("other sums" if trial in trials else f"other records: {options}")

    trials = count_trials.instruction_trials()
    monkeypatch.setattr(graft_trial, "instruction_trials", lambda: trials)
    monkeypatch.setattr(graft_trial, "CudaContext", lambda *_: None)
    monkeypatch.setattr(graft_trial, "trial_cubin", lambda *_, **__: None)
    monkeypatch.setattr(graft_trial, "block_cubin", lambda *_: None)
    monkeypatch.setattr(graft_trial, "phases_cubin", lambda *_, **__: None)
    monkeypatch.setattr(graft_trial, "phases_trial", lambda _: None)
    monkeypatch.setattr(graft_trial, "copies_cubin", lambda *_: None)
    monkeypatch.setattr(graft_trial, "copies_trial", lambda _: None)
    monkeypatch.setattr(graft_trial, "prune_cubin", lambda *_: "a cubin of its own")
    monkeypatch.setattr(graft_trial, "run_trial", tried)
    assert graft_trial.main(["--arch", "90"]) == 0
    outcomes = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
    records = {"slots": "other records: in_slots", "pruned": "other records: pruned_cubin"}
    records |= dict.fromkeys(("records", "blocks", "short_records", "copies"), "passed")
    assert outcomes[-1] == {"outcome": "passed", "words": "", "instructions": "other sums"} | records
    assert {line["instructions"] for line in outcomes[:-1]} & {"passed"} == set()
    assert {line["pruned"] for line in outcomes[:-1]} & {"passed"} == set()


def test_a_trial_for_every_driver(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    trial = FakeTrial(monkeypatch, json.dumps({"outcome": "passed", "words": ""}))
    GraftGate(tmp_path, []).refusal(90, TrialPart.ENTRIES)
    monkeypatch.setattr(graft_gate, "driver_version", lambda: "581.0")
    GraftGate(tmp_path, []).refusal(90, TrialPart.ENTRIES)
    assert trial.runs == 2


def test_without_a_gpu_there_is_no_trial(tmp_path: Path) -> None:
    tmp_path.chmod(stat.S_IRWXU)
    answer = prepared(tmp_path, gate=GraftGate(None, []))
    assert answer.code in ("graft-untested", None), "None where this machine has the GPU"
