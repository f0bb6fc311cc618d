"""Images whose PTX and SASS were compiled for different targets: what the device runs is probed."""

from __future__ import annotations

import struct
from typing import TYPE_CHECKING

import pytest

from tests.ptx.corpus import DATA
from tests.ptx.images import ptx
from tui_probe.engine.grafting.graft_gate import OpenGate
from tui_probe.engine.image_kernels import read_kernel_file
from tui_probe.engine.kernel_cache import PrepareOptions
from tui_probe.engine.preparer import Preparer
from tui_probe.probe_files.loading import load_probe

if TYPE_CHECKING:
    from pathlib import Path

    from tui_probe.engine.reception import Answer

SASS = (DATA / "image.no_ptx.cubin").read_bytes()
PTX_KIND, SASS_KIND, SPECIFIC, FAMILY = 1, 2, 0x100000, 0x200000


def image(*targets: str, sass: str = "sm_90") -> bytes:
    """A fatbin with PTX of ``zero`` for these targets and SASS of it for another."""
    entries = [_entry(SASS_KIND, sass, SASS)]
    entries += [_entry(PTX_KIND, target, ptx(target, "zero").encode() + b"\0") for target in targets]
    body = b"".join(entries)
    return struct.pack("<IHHQ", 0xBA55ED50, 1, 16, len(body)) + body


def _entry(kind: int, target: str, content: bytes) -> bytes:
    flags = {"a": SPECIFIC, "f": FAMILY}.get(target[-1], 0)
    arch = int(target.removeprefix("sm_").rstrip("af"))
    padded = content + bytes(-len(content) % 8)
    header = struct.pack("<HHIQIIHHIIIQQQ", kind, 257, 64, len(padded), 0, 0, 8, 1, arch, 0, 0, flags | 0x11, 0, 0)
    return header + padded


def prepared(folder: Path, content: bytes, **options: str) -> Answer:
    (folder / "original.bin").write_bytes(content)
    preparer = Preparer(load_probe("block_sched"), PrepareOptions(**options), gate=OpenGate())  # type: ignore[arg-type]
    answer = preparer.prepare(folder, "sm_90", "zero")
    preparer.close()
    return answer


@pytest.mark.parametrize(
    ("targets", "sass", "mode"),
    [
        (["sm_90"], "sm_90", "PTX for sm_90"),
        (["sm_90"], "sm_90a", "SASS for sm_90"),
        (["sm_90a"], "sm_90a", "PTX for sm_90"),
        (["sm_90a"], "sm_90", "SASS for sm_90"),
        (["sm_80"], "sm_90", "SASS for sm_90"),
        (["sm_80", "sm_90"], "sm_90", "PTX for sm_90"),
        (["sm_90", "sm_90a"], "sm_90a", "PTX for sm_90"),
    ],
)
def test_code_that_the_device_runs_is_probed(tmp_path: Path, targets: list[str], sass: str, mode: str) -> None:
    content = image(*targets, sass=sass)
    (tmp_path / "kernel").mkdir()
    answer = prepared(tmp_path / "kernel", content)
    assert answer.outcome == "ok", answer.text
    assert mode in (tmp_path / "kernel" / "process.log").read_text()
    pruned = tmp_path / "kernel" / "pruned.ptx"
    assert pruned.exists() == mode.startswith("PTX")
    assert not pruned.exists() or f".target {sass if sass in targets else 'sm_90'}\n" in pruned.read_text()
    (tmp_path / "image.fatbin").write_bytes(content)
    (found,) = (k for k in read_kernel_file(tmp_path / "image.fatbin").kernels(90) if k.name == "zero")
    assert found.mode == ("ptx" if mode.startswith("PTX") else "graft")


def test_kernel_whose_sass_may_not_be_probed_is_refused(tmp_path: Path) -> None:
    answer = prepared(tmp_path, image("sm_90", sass="sm_90a"), machine_code="off")
    assert (answer.outcome, answer.reason and answer.reason.code) == ("skipped", "machine-code-off")


def test_kernel_without_sass_is_probed_in_ptx(tmp_path: Path) -> None:
    others = SASS.replace(b"zero", b"orez")
    assert prepared(tmp_path, image("sm_80").replace(SASS, others)).outcome == "ok"
    assert "PTX for sm_80" in (tmp_path / "process.log").read_text()


def test_simulated_gpu_runs_the_ptx(tmp_path: Path) -> None:
    answer = prepared(tmp_path, image("sm_90", sass="sm_90a"), load="ptx")
    assert (answer.outcome, answer.text) == ("ok", "probed.ptx")
