"""Traces and files of other profilers whose names hold what a terminal, a spreadsheet or an XML parser would obey."""

from __future__ import annotations

import json
import shutil
import sqlite3
import unicodedata
from pathlib import Path

from tests.importers.files import details, identity, real, write
from tests.recorded import H200, unpacked

EVIL = "=1+1\x1b]0;title\x07\x1b[2J\x9b5m\x85\u202e\u2066\u200b\ufffe``` <b>&#27;|evil"
"""A name: a formula, sequences of 7 and of 8 bits, marks of direction, what is not a character, Markdown and markup."""
_STEERS = {"Cc", "Cf", "Cs", "Zl", "Zp"}


def obeyed(text: str) -> set[str]:
    """The characters in ``text`` that do something other than being shown; a newline ends a line of tui-probe."""
    return {c for c in set(text) if c != "\n" and (unicodedata.category(c) in _STEERS or c == "\ufffe")}


def planted_trace(folder: Path, name: str, kernel: str) -> Path:
    """A recorded trace in a folder of such a name, whose kernel, command, range, file and reasons have it, too."""
    copy = folder / f"{EVIL.replace('/', '')}_{name}"
    shutil.copytree(unpacked(H200 / name, folder / "unpacked"), copy)
    evil, plain = EVIL.encode(), kernel.encode()
    for path in (copy / "event.log", *copy.rglob("kernel.info"), *copy.rglob("process.log")):
        path.write_bytes(path.read_bytes().replace(plain, evil + plain))
    # Lines of source are known only while original.ptx is the text that the cubin has.
    for path in (path for path in copy.rglob("*.ptx") if path.name != "original.ptx"):
        path.write_bytes(path.read_bytes().replace(b"\n}", b"\n// " + evil + b"\n}").replace(b'"/', b'"/' + evil))
    for path in copy.glob("source/*"):
        path.write_bytes(path.read_bytes().replace(b"\n", b" # " + evil + b"\n"))
    (copy / "stderr.log").write_bytes(evil + b"\n")
    with (copy / "event.log").open("ab") as log:
        log.write(b"[kernel] 90 skipped registers 8 local 0 shared 0 blocks 8 name %s reason %s\n" % (evil, evil))
        log.write(b"[nvtx] range 7 in 0 thread 3 start 1795358279690084800 end - launches 0 domain - text %s\n" % evil)
        log.write(b"[%s] %s\n[exec] failed %s\n" % (evil, evil, evil))
    run = json.loads((copy / "run.json").read_text())
    run |= {"command": [f"{EVIL}\n{EVIL}"], "engine_failure": EVIL, "messages": [EVIL]}
    (copy / "run.json").write_text(json.dumps(run))
    return copy


def planted_sqlite(folder: Path) -> Path:
    """An export of Nsight Systems in which all names are such ones."""
    path = folder / f"{EVIL.replace('/', '')}.sqlite"
    path.write_bytes(real(folder, "nsys/sample.sqlite").read_bytes())
    with sqlite3.connect(path) as base:
        base.execute("UPDATE StringIds SET value = ? || value", (EVIL,))
    base.close()
    return path


def planted_csv(folder: Path) -> Path:
    """A page of Nsight Compute with such a kernel."""
    metrics = {("", "dram__bytes_read.sum", "byte"): "4096", ("", "gpu__time_duration.sum", "ns"): "1000"}
    return write(folder, details([(identity(0, EVIL), metrics)]), f"{EVIL.replace('/', '')}.csv")
