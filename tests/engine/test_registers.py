"""A form that fits is taken if a probe needs more registers than a kernel can spare, and the log names it."""

from __future__ import annotations

import re
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest

from tests.engine.kernels import HEADER, entry, probed, toml_probe
from tests.engine.test_execution import INDEX, run_probed
from tests.ptx.corpus import corpus
from tui_probe.engine.assembler import Assembler, AssemblyReport
from tui_probe.engine.cache import Cache
from tui_probe.engine.kernel import Kernel
from tui_probe.engine.kernel_cache import PrepareOptions
from tui_probe.engine.kernel_texts import note_in
from tui_probe.engine.preparer import Preparer
from tui_probe.engine.probed_forms import ChosenForm, FormChooser, KernelForm, max_registers_for
from tui_probe.errors import ProbeFileError, ToolchainError
from tui_probe.probe_files.loading import load_probe
from tui_probe.ptx.parser import parse
from tui_probe.toolchain import Tool
from tui_probe.trace.kernel_files import parse_process_log

if TYPE_CHECKING:
    from tui_probe.engine.reception import Answer
    from tui_probe.probe_model.probe import Probe

TOOL = Tool(Path("ptxas"), (13, 0), "13.0")
LEAN = load_probe("gmem_sectors")
"""A probe with a lean variant; "own" has none."""
OWN = toml_probe(
    """
[map.n]
level = "warp"
[map.n.regs]
n = "u32"
[probe.frame]
position = "kernel"
before = ".reg .b32 %n; mov.u32 %n, 0;"
after = "SAVE [ n ] {%n};"
"""
)


LOOP = "$again:\nbra $again;"


def report(registers: int, spilled: int = 0, code: int | None = None) -> AssemblyReport:
    return AssemblyReport("", "", registers, spilled, 0, 0, 0, 0.0, TOOL, code)


def chosen(
    made: dict[KernelForm, AssemblyReport],
    probe: Probe = LEAN,
    *,
    before: int = 32,
    threads: int = 0,
    header: str = "",
    body: str = LOOP,
) -> ChosenForm:
    """The choice where ptxas makes of each form what is listed, and fails for others."""
    text = f"{HEADER}.visible .entry kernel() {header}\n{{\n{body}\nret;\n}}\n"
    failure = ToolchainError("no such form")
    chooser = FormChooser(Kernel.of(parse(text), "kernel"), probe, threads, lambda form: made.get(form, failure))
    return chooser.choose(report(before), made[KernelForm()])


@pytest.mark.parametrize(("threads", "most"), [(1024, 64), (1000, 64), (512, 128), (768, 80), (256, 255), (1, 255)])
def test_the_registers_of_a_block_are_shared_by_its_threads(threads: int, most: int) -> None:
    assert max_registers_for(threads) == most


def test_few_more_registers_are_left_as_they_are() -> None:
    choice = chosen({KernelForm(): report(40)})
    assert (choice.trial.form, choice.log_text, choice.note, choice.threads) == (KernelForm(), "", None, 1024)


def test_more_are_limited_where_nothing_spills() -> None:
    choice = chosen({KernelForm(): report(48), KernelForm(40): report(40)})
    assert choice.trial.form == KernelForm(40)
    assert choice.note is None
    assert choice.log_text == (
        "[registers] 40 per thread, limited to 40 (32 without the probe, 48 with the probe by default;"
        " variants tried: 1)"
    )


def test_the_lean_form_is_taken_where_the_limit_spills() -> None:
    choice = chosen({KernelForm(): report(48), KernelForm(40): report(40, 8), KernelForm(40, is_lean=True): report(38)})
    assert choice.trial.form == KernelForm(40, is_lean=True)
    assert choice.note
    assert (
        choice.note.text == "gmem_sectors uses its variant with fewer registers: the probed kernel has 38 instead of 48"
    )


SMALLER = {KernelForm(): report(20, code=4096), KernelForm(is_lean=True): report(16, code=3200)}
"""Of a kernel that has 10 registers without the probe."""


def test_the_lean_form_is_taken_where_each_access_comes_once_and_it_is_less_of_everything() -> None:
    choice = chosen(SMALLER, before=10, body="")
    assert choice.trial.form == KernelForm(is_lean=True)
    assert choice.log_text == (
        "[registers] 16 per thread, without a limit, in the probe's variant with fewer registers (10 without the probe,"
        " 20 with the probe by default; variants tried: 1)"
    )
    assert choice.note
    assert (
        choice.note.text == "gmem_sectors uses its variant with fewer registers: the probed kernel has 16 instead of 20"
    )


@pytest.mark.parametrize(
    ("lean", "body"),
    [
        (report(16, code=3200), LOOP),
        (report(16, code=4112), ""),
        (report(16), ""),
        (report(16, 8, code=3200), ""),
        (report(20, code=3200), ""),
        (report(25, code=3200), ""),
    ],
    ids=["loop", "more code", "unknown code", "spills", "no fewer registers", "too many registers"],
)
def test_the_lean_form_is_not_taken_where_it_is_more_of_anything(lean: AssemblyReport, body: str) -> None:
    choice = chosen(SMALLER | {KernelForm(is_lean=True): lean}, before=10, body=body)
    assert choice.trial.form == KernelForm()


def test_eight_registers_more_are_no_reason_for_another_form() -> None:
    assert chosen(SMALLER, before=12, body="").log_text == ""


def test_a_kernel_without_loops_can_be_limited_all_the_same() -> None:
    made = {
        KernelForm(): report(48, code=4096),
        KernelForm(is_lean=True): report(44, code=4096),
        KernelForm(40): report(40),
    }
    assert chosen(made, body="").trial.form == KernelForm(40)


def test_spilling_kernel_keeps_its_registers_if_the_block_fits() -> None:
    spilling = {KernelForm(40): report(40, 8), KernelForm(40, is_lean=True): report(40, 4)}
    choice = chosen({KernelForm(): report(48)} | spilling)
    assert choice.trial.form == KernelForm()
    assert choice.note is None


def test_a_probe_that_spills_within_its_registers_is_tried_in_its_lean_form() -> None:
    choice = chosen({KernelForm(): report(40, 16), KernelForm(40, is_lean=True): report(40)})
    assert choice.trial.form == KernelForm(40, is_lean=True)


def test_a_block_that_fitted_without_the_probe_fits_with_it() -> None:
    choice = chosen({KernelForm(): report(72), KernelForm(64): report(64)}, before=60)
    assert choice.note
    assert choice.note.text == (
        "with gmem_sectors the kernel was compiled for 64 registers instead of 72, so that blocks of 1024 threads fit"
    )
    assert choice.threads == 1024


def test_a_block_that_cannot_fit_otherwise_spills_as_little_as_can_be() -> None:
    made = {KernelForm(): report(72), KernelForm(64): report(64, 24), KernelForm(64, is_lean=True): report(64, 12)}
    choice = chosen(made, before=60)
    assert choice.trial.form == KernelForm(64, is_lean=True)
    assert choice.note
    assert choice.note.written == (
        "with gmem_sectors the kernel has 64 registers, the maximum for a block of 1024 threads, and spills 12 bytes"
        " code registers-spilled"
    )


def test_nothing_spills_for_blocks_larger_than_the_one_that_is_launched() -> None:
    spilling = {KernelForm(64): report(64, 24), KernelForm(64, is_lean=True): report(64, 24)}
    choice = chosen({KernelForm(): report(72), KernelForm(68): report(68)} | spilling, before=60, threads=512)
    assert choice.trial.form == KernelForm(68)
    assert choice.threads == 512, "a larger block is to be looked at again"


def test_the_text_tells_how_large_a_block_can_be() -> None:
    choice = chosen({KernelForm(): report(72), KernelForm(68): report(68)}, OWN, before=60, header=".maxntid 128, 2, 1")
    assert choice.trial.form == KernelForm(68)
    assert choice.note is None
    assert choice.threads == 1024


def test_a_kernel_that_no_block_of_1024_threads_could_have_is_limited_all_the_same() -> None:
    choice = chosen({KernelForm(): report(128), KernelForm(108): report(108)}, before=100)
    assert choice.trial.form == KernelForm(108)
    assert choice.note is None


def test_a_little_more_is_better_than_no_limit() -> None:
    spilling = {
        KernelForm(40): report(40, 64),
        KernelForm(40, is_lean=True): report(40, 16),
        KernelForm(48): report(48, 8),
    }
    choice = chosen({KernelForm(): report(64), KernelForm(48, is_lean=True): report(46)} | spilling)
    assert choice.trial.form == KernelForm(48, is_lean=True)


def test_much_less_is_better_than_no_limit() -> None:
    spilling = {KernelForm(most, lean): report(most, 8) for most in (40, 48, 64) for lean in (False, True)}
    calm = {KernelForm(64, is_lean=True): report(60)}
    assert chosen({KernelForm(): report(80)} | spilling | calm).trial.form == KernelForm(64, is_lean=True)


def test_the_lean_form_is_no_better_than_one_that_has_no_more_registers() -> None:
    spilling = {KernelForm(most, lean): report(most, 8) for most in (40, 48) for lean in (False, True)}
    calm = {KernelForm(64, is_lean=True): report(55)}
    assert chosen({KernelForm(): report(55)} | spilling | calm).trial.form == KernelForm()


def test_a_kernel_with_nearly_all_registers_is_not_given_fewer() -> None:
    assert chosen(
        {KernelForm(): report(255, 8), KernelForm(255, is_lean=True): report(255)}, before=248
    ).trial.form == KernelForm(255, is_lean=True)


@pytest.mark.parametrize("header", [".maxnreg 48", ""])
def test_registers_that_a_kernel_settles_by_itself_stay(header: str) -> None:
    body = "" if header else "setmaxnreg.dec.sync.aligned.u32 40;"
    text = f"{HEADER}.visible .entry kernel() {header}\n{{\n{body}\nret;\n}}\n"
    chooser = FormChooser(Kernel.of(parse(text), "kernel"), LEAN, 0, lambda _: report(40))
    assert chooser.choose(report(32), report(200)).trial.form == KernelForm()


HEAVY = toml_probe(
    '[map.n]\nlevel = "warp"\n[map.n.regs]\n'
    + "".join(f'n{index} = "u32"\n' for index in range(200))
    + '[probe.frame]\nposition = "kernel"\nbefore = """\n.reg .b32 '
    + ", ".join(f"%n{index}" for index in range(200))
    + ";\n"
    + "".join(f"mov.u32 %n{index}, %clock;\n" for index in range(200))
    + '"""\nafter = "SAVE [ n ] {'
    + ", ".join(f"%n{index}" for index in range(200))
    + '};"\n',
    "heavy",
)
"""Holds two hundred registers across a kernel: a block of 1 024 threads has 64 for each."""
STORE = entry("st.global.u32 [out], 1;\nbar.sync 0;\nret;", module=".global .u32 out;")


def prepare(
    folder: Path,
    probe: Probe,
    threads: int,
    assembler: Assembler | None = None,
    cache: Cache | None = None,
    *,
    image: str = STORE,
    name: str = "kernel",
) -> Answer:
    folder.mkdir()
    (folder / "original.bin").write_text(image)
    preparer = Preparer(probe, PrepareOptions(), assembler, cache)
    try:
        return preparer.prepare(folder, "sm_90", name, threads)
    finally:
        preparer.close()


@pytest.mark.usefixtures("ptxas")
def test_a_prepared_kernel_can_be_launched_with_its_block(tmp_path: Path) -> None:
    folder = tmp_path / "kernel"
    assert prepare(folder, HEAVY, 1024).outcome == "ok"
    log = (folder / "process.log").read_text()
    made = parse_process_log(log.splitlines())
    assert made.probed
    assert made.probed.registers <= 64
    assert "\t.maxnreg 64 // tui-probe: heavy\n" in (folder / "probed.ptx").read_text()
    note = note_in((folder / "kernel.info").read_text())
    assert "the maximum for a block of 1024 threads, and spills" in note
    assert f"[note] {note}" in log
    assert {path.suffix for path in folder.iterdir()} <= {".ptx", ".bin", ".info", ".json", ".log"}
    assert not list(folder.glob(".l*")), "forms that were tried are gone"


@pytest.mark.usefixtures("ptxas")
def test_a_sum_of_vectors_is_counted_in_few_registers(tmp_path: Path) -> None:
    """Two loads and a store, once each: what they take is added to memory immediately."""
    folder = tmp_path / "kernel"
    assert prepare(folder, LEAN, 128, image=corpus("triton_add.sm_80.ptx"), name="add").outcome == "ok"
    log = (folder / "process.log").read_text()
    made = parse_process_log(log.splitlines())
    assert made.probed
    assert made.pruned
    assert made.probed.registers <= made.pruned.registers + 8
    note = note_in((folder / "kernel.info").read_text())
    assert note.startswith("gmem_sectors uses its variant with fewer registers")
    assert re.search(
        rf"\[registers\] {made.probed.registers} per thread, .*, in the probe's variant with fewer"
        f" registers",
        log,
    )
    assert "redux" not in (folder / "probed.ptx").read_text()


@pytest.mark.usefixtures("ptxas")
def test_kept_kernel_is_used_for_fitting_blocks(tmp_path: Path) -> None:
    cache = Cache(tmp_path / "cache")
    for name, threads, cached in (("a", 256, False), ("b", 128, True), ("c", 1024, False), ("d", 256, True)):
        prepare(tmp_path / name, HEAVY, threads, cache=cache)
        assert ("[cache]" in (tmp_path / name / "process.log").read_text()) == cached, name


def test_driver_keeps_to_the_block_without_an_assembler(tmp_path: Path) -> None:
    assert prepare(tmp_path / "kernel", HEAVY, 768, Assembler([])).text == "probed.ptx"
    text = (tmp_path / "kernel" / "probed.ptx").read_text()
    assert "\t.maxnreg 80 // tui-probe: heavy\n" in text
    (probed_entry,) = parse(text).entries()
    assert probed_entry.attributes == {"maxnreg": "80"}


BODY = f"""{INDEX}
ld.param.u64 %rd4, [values];
add.s64 %rd4, %rd4, %rd2;
ld.global.u32 %r8, [%rd4];
and.b32 %r9, %r8, 3;
setp.eq.u32 %p1, %r9, 1;
@%p1 ret;
ld.global.u32 %r9, [%rd4+4];
st.global.u32 [%rd3], %r9;
ret;"""


@pytest.mark.parametrize("name", ["dmat", "dmat_compact"])
def test_the_lean_form_keeps_the_same_records(name: str) -> None:
    """All but clocks."""
    probe, text = load_probe(name), entry(BODY, ".param .u64 out, .param .u64 values")
    fields = {field.name: field for field in probe.maps[1].fields}

    def records(form: Probe) -> list[np.ndarray[Any, Any]]:
        values = np.arange(65, dtype=np.uint32)
        raw = run_probed(text, form, np.zeros(64, np.uint32), values, block=(48,), caps={"dmat": 4})
        clock = fields["clock"].offset
        slots = raw[1].reshape(-1, probe.maps[1].record_bytes)
        slots[:, clock : clock + 4] = 0
        return [slots, *raw[2:]]

    for plain, lean in zip(records(probe), records(probe.lean_form()), strict=True):
        np.testing.assert_array_equal(plain, lean)


def test_the_lean_form_of_dmat_has_no_wide_stores() -> None:
    wide, lean = (probed(entry(BODY, ".param .u64 out, .param .u64 values"), probe=form) for form in
                  (load_probe("dmat"), load_probe("dmat").lean_form()))  # fmt: skip
    assert "st.global.cs.v2.b64" in wide
    assert "st.global.cs.v2.b64" not in lean


POINT = """
[map.n]
level = "warp"
[map.n.regs]
n = "u32"
[probe.load]
position = "ld.global"
{keys}
"""


@pytest.mark.parametrize(
    ("keys", "words"),
    [
        ("lean = 'ADD [ n ] {1};'", "before"),
        ("after = 'ADD [ n ] {1};'\nlean = 'ADD [ n ] {1};'", "lean is a variant of 'before'"),
        ("before = 'ADD [ n ] {1};'\nlean = 'st.global.u32 [ADDR], 1;'", "writes memory"),
    ],
)
def test_a_lean_snippet_is_held_to_what_others_are(keys: str, words: str) -> None:
    with pytest.raises(ProbeFileError, match=words):
        toml_probe(POINT.format(keys=keys))
