"""A probe does not make ptxas serialise matrix products that run asynchronously without it."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

import pytest

from tests.engine.kernels import DATA, probed, toml_probe
from tests.engine.test_assemble import tool
from tui_probe.engine.assembler import Assembler, count_serialised
from tui_probe.engine.kernel import Kernel
from tui_probe.engine.kernel_cache import PrepareOptions
from tui_probe.engine.kernel_texts import note_in
from tui_probe.engine.preparer import Preparer
from tui_probe.engine.ptx_preparation import yielding_sites
from tui_probe.ptx.parser import parse
from tui_probe.toolchain import Tool

if TYPE_CHECKING:
    from pathlib import Path

    from tui_probe.engine.kernel_cache import LoadKind
    from tui_probe.engine.reception import Answer

PROBE = """
[map.sites]
level = "site"
regs = { waited = "u64" }
[probe.copies]
position = "cp.async.wait_group"
before = "ADD [ sites ] {1};"
[probe.wgmma]
position = "wgmma.wait_group"
yields = true
before = ".reg .b32 %a; mov.u32 %a, %clock; ADD [ sites ] {%a};"
"""
ATTENTION = DATA / "attn_fwd.sm_90a.ptx"
REMARK = (
    "ptxas info    : (C7510) Potential Performance Loss: wgmma.mma_async instructions are serialized due to "
    "insufficient register resources for the wgmma pipeline in function 'attn_fwd'\n"
)
INJECTED = (
    "ptxas info    : (C7517) warpgroup.wait is injected in around line 111 by compiler to allow use of registers\n"
)
FAKE = """#!{python}
import sys
if "--version" in sys.argv:
    print("Cuda compilation tools, release 13.0, V13.0.1")
    sys.exit(0)
text = open([word for word in sys.argv if word.endswith(".ptx")][0]).read()
open(sys.argv[-1], "w").write(text)
remark = '''{remark}'''
sys.stderr.write(remark * ({always} + text.count("mov.u32 %tp_a, %clock")))
"""


def speaking(folder: Path, remark: str, always: int) -> Tool:
    """A ptxas that remarks on each clock that a probe reads, and ``always`` times on any kernel."""
    path = folder / "ptxas"
    path.write_text(FAKE.format(python=sys.executable, remark=remark, always=always))
    path.chmod(0o755)
    return tool(path, "13.0.1")


def prepared(folder: Path, tools: list[Tool], load: LoadKind = "bin") -> Answer:
    folder.mkdir()
    (folder / "original.bin").write_bytes(ATTENTION.read_bytes() + b"\0")
    preparer = Preparer(toml_probe(PROBE), PrepareOptions(load=load), Assembler(tools))
    try:
        return preparer.prepare(folder, "sm_90", "attn_fwd")
    finally:
        preparer.close()


@pytest.mark.parametrize(("remark", "always"), [(REMARK, 0), (INJECTED, 0), (REMARK, 2)])
@pytest.mark.parametrize("load", ["bin", "ptx"])
def test_serialising_forms_are_excluded(tmp_path: Path, remark: str, always: int, load: LoadKind) -> None:
    folder = tmp_path / "kernel"
    answer = prepared(folder, [speaking(tmp_path, remark, always)], load)
    assert (answer.outcome, answer.text) == ("ok", f"probed.{load}")
    note = "own left out 2 wgmma.wait_group: with a probe there, wgmma would run serially, or the kernel would wait"
    note += f" for wgmma {always + 2} times instead of {always} times"
    info = (folder / "kernel.info").read_text()
    assert note_in(info).startswith(note)
    assert f"[note] {note}" in (folder / "process.log").read_text()
    for file in ("probed.ptx", "probed.bin"):
        text = (folder / file).read_text()
        assert "%clock" not in text
        assert text.count("red.global.add.u64") == 2, "the other point stays"
    (sites,) = (line for line in info.splitlines() if line.startswith("sites "))
    assert len(sites.split()) == 2 + 2


@pytest.mark.parametrize(("remark", "always"), [("", 0), ("ptxas info    : something else\n", 3)])
def test_other_forms_stay(tmp_path: Path, remark: str, always: int) -> None:
    folder = tmp_path / "kernel"
    prepared(folder, [speaking(tmp_path, remark, always)])
    assert not note_in((folder / "kernel.info").read_text())
    assert (folder / "probed.bin").read_text().count("%tp_a, %clock") == 2


def test_without_ptxas_nobody_can_tell(tmp_path: Path) -> None:
    folder = tmp_path / "kernel"
    answer = prepared(folder, [])
    assert (answer.outcome, answer.text) == ("ok", "probed.ptx")
    assert "without ptxas it is unknown" in note_in((folder / "kernel.info").read_text())
    assert "%clock" not in (folder / "probed.ptx").read_text()


def test_the_real_ptxas_remarks_on_nothing(tmp_path: Path, ptxas: Tool) -> None:
    folder = tmp_path / "kernel"
    prepared(folder, [ptxas])
    assert not note_in((folder / "kernel.info").read_text())
    assert "%tp_a, %clock" in (folder / "probed.ptx").read_text()


def test_remarks_of_ptxas() -> None:
    assert count_serialised(REMARK + "ptxas info    : Used 114 registers\n" + INJECTED) == 2
    assert count_serialised("ptxas info    : (C7508) Potential Performance Loss: 'setmaxnreg' ignored") == 0


def test_sites_of_yielding_points() -> None:
    kernel = Kernel.of(parse(ATTENTION.read_text()), "attn_fwd")
    assert yielding_sites(kernel, toml_probe(PROBE)) == {"wgmma.wait_group": 2}
    assert "%clock" in probed(ATTENTION.read_text(), "attn_fwd", toml_probe(PROBE))
