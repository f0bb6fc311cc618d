"""Small traces as existing systems leave them: no kernel next to a result, no probe, no epoch, no run.json."""

from __future__ import annotations

import hashlib
from typing import TYPE_CHECKING, Any, Literal

import numpy as np

from tests.trace.make import EPOCH_NS, TraceWriter, result_bytes, write_kernel_folder
from tui_probe.probes.block_sched.analysis import RECORD

if TYPE_CHECKING:
    from pathlib import Path

NAME = "_Z4fillPf"
COMMAND = "python block_sched/raw.py"
BLOCKS = 8
PROBE = """\
{head}
[{table}]
position = "kernel"
datamodel = "warp:16"
before = \"\"\".reg .b64 %first;
mov.u64 %first, %clock64;\"\"\"
after = \"\"\".reg .b64 %last;
.reg .b64 %long;
.reg .b32 %cycles;
mov.u64 %last, %clock64;
sub.u64 %long, %last, %first;
cvt.u32.u64 %cycles, %long;
SAVE.u64 {{%first}};
SAVE.u32 {{%cycles, %smid}};\"\"\"
"""
PRUNED = [".visible .entry _Z4fillPf(", ".param .u64 _Z4fillPf_param_0", ")", "{", "mov.u32 %r1, %tid.x;", "ret;", "}"]
ADDED = ["mov.u64 %rd9, %clock64;", "mov.u32 %r9, %smid;", "st.global.u64 [%rd10], %rd9;"]
HEADS = {
    "old": ["[pid] 1860576", "[cmd] {}", "[info] dl 0x26aa350", "[info] init success"],
    "new": ["[init] pid 1860576", "[init] cmd {}", "[init] dl 0x26aa350", "[init] success"],
}


def write_unnamed(
    directory: Path,
    *,
    log: Literal["old", "new"] = "old",
    sections: Literal["older", "current"] = "older",
    launches: int = 3,
    garbage: str = "",
    first_sm: int = 0,
) -> TraceWriter:
    """One kernel with a result per launch, whose ``kernel.info`` has no callback line, and no ``probe.toml``."""
    writer = TraceWriter(directory)
    tag = "jit" if log == "old" else "probe"
    writer.lines(*(line.format(f"{len(COMMAND)} {COMMAND}{garbage}") for line in HEADS[log]))
    folder = directory / "kernel" / f"0_{hashlib.sha1(NAME.encode()).hexdigest()}"
    folder.mkdir()
    write_kernel_folder(folder, NAME, (18, 24), (0, 0), ptxas=True, failed=False)
    (folder / "kernel.info").write_text(f"{NAME}\n2\n1\n1,16\n")
    writer.lines(
        "[exec] funcmap-not-find 0x10",
        f"[{tag}] find 0x10 name {NAME} bin 0x7000 size 1234",
        f"[{tag}] rename {NAME} {folder.name}",
        f"[{tag}] python succeed",
        f"[{tag}] finish 0x10 name {NAME} n_param 2",
    )
    for number in range(launches):
        write_launch(writer, number, sections, first_sm)
    return writer


def write_launch(writer: TraceWriter, number: int, sections: Literal["older", "current"], first_sm: int = 0) -> None:
    """The lines of a probed launch, and its result."""
    content = result_bytes((BLOCKS, 1, 1), (32, 1, 1), [(32, records(first_sm))], dialect=sections)
    path = writer.directory / "result" / f"{number}.250000.bin"
    path.write_bytes(content)
    writer.lines(
        "[exec] funcmap-find 0x10 success",
        f"[exec] {EPOCH_NS + 1_000_000 * number} param 7f0000000000 {number:x} ",
        f"[exec] grid {BLOCKS} 1 1 block 32 1 1 shared 0",
        f"[exec] grid {BLOCKS} warp  1 probe 16 total {16 * BLOCKS}",
        f"[exec] probe-mem {16 * BLOCKS} (bytes)",
        "[exec] succeed 0",
        f"[exec] save /home/someone/trace/{writer.directory.name}/result/{path.name} size {len(content)}",
    )


def records(first_sm: int = 0) -> np.ndarray[Any, np.dtype[np.uint8]]:
    """Two blocks on each of four SMs, 100 cycles each, 20 between them; numbers of SMs start at ``first_sm``."""
    made = np.zeros(BLOCKS, dtype=RECORD)
    made["start"] = [1000 + 120 * (block // 4) for block in range(BLOCKS)]
    made["elapsed"], made["sm"] = 100, first_sm + np.arange(BLOCKS) % 4
    return made.view(np.uint8).reshape(BLOCKS, 1, RECORD.itemsize)


def write_probe(writer: TraceWriter, *, head: str = "", table: str = "own") -> None:
    (writer.directory / "probe.toml").write_text(PROBE.format(head=head, table=table))


def write_ptx(writer: TraceWriter, parameter: str = "", added: list[str] | None = None) -> None:
    """``pruned.ptx`` and ``probed.ptx`` of the kernel."""
    folder = next((writer.directory / "kernel").iterdir())
    (folder / "pruned.ptx").write_text("\n".join(PRUNED))
    more = [f".param .u64 {parameter}"] if parameter else []
    probed = [*PRUNED[:2], *more, *PRUNED[2:5], *(ADDED if added is None else added), *PRUNED[5:]]
    (folder / "probed.ptx").write_text("\n".join(probed))


def write_sized_only(directory: Path, launches: int = 64) -> None:
    """A run that sized the maps of each launch, and launched the original."""
    writer = write_unnamed(directory, launches=0)
    for number in range(launches):
        writer.lines(
            "[exec] funcmap-find 0x10 success",
            f"[exec] {EPOCH_NS + number} param 10 ",
            "[exec] grid 2 1 1 block 32 1 1 shared 0",
            "[exec] grid 2 warp  1 probe 16 total 32",
            "[exec] probe-mem 32 (bytes)",
            "[exec] backup 2 1 1 block 32 1 1 shared 0",
        )
