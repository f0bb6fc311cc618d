"""A directory with the files that commands on the help pages name."""

from __future__ import annotations

import contextlib
import gzip
import lzma
import os
import shutil
import signal
import subprocess
import sys
from pathlib import Path
from typing import Final

from tests.help.pages import blocks, commands
from tests.recorded import DATA, H200, SIMULATED
from tui_probe.simgpu.examples import demo

ROOT: Final = Path(__file__).resolve().parents[2]
EXAMPLE: Final = demo.__file__
FILL: Final = """import contextlib, runpy, sys

def fill(stride):
    sys.argv = ["faulty.py", str(stride)]
    with contextlib.suppress(SystemExit):
        runpy.run_path({faulty!r})
"""
FAULTY: Final = str(ROOT / "tests" / "integrations" / "faulty.py")

TRACES: Final = {
    "trace": H200 / "demo",
    "before": H200 / "demo",
    "after": H200 / "demo_bytes",
    "TRACE": H200 / "attention_blocks",
    "OTHER_TRACE": SIMULATED / "block_sched",
}
STATUSES: Final = {"doctor": (0, 3), "compare": (0, 1, 5), "gate": (0, 5)}
"""Exit statuses of commands that depend on the machine or the traces; of all others 0."""


def prepare(folder: Path) -> None:
    """Fill a directory for the commands of all pages."""
    for name, trace in TRACES.items():
        shutil.copytree(trace, folder / name)
    for name in ("FILE.csv", "gemm.csv"):
        shutil.copy(DATA / "ncu" / "vec_metrics.csv", folder / name)
    (folder / "run.sqlite").write_bytes(lzma.decompress((DATA / "nsys" / "sample.sqlite.xz").read_bytes()))
    chrome = (DATA / "chrome" / "torch.json.gz").read_bytes()
    (folder / "trace.json.gz").write_bytes(chrome)
    for name in ("rank0.json", "rank1.json"):
        (folder / name).write_bytes(gzip.decompress(chrome))
    shutil.copy(DATA / "ptx" / "numba_saxpy.sm_80.ptx", folder / "kernels.ptx")
    (folder / "my_probe.toml").write_text(blocks("probe-language", "toml")[0])


def add_programs(folder: Path) -> None:
    """Add programs that launch kernels, under the names that the pages use, and a repository around them."""
    program = f"import runpy, sys\nsys.argv[1:] = ['--repeat', '2']\nrunpy.run_path({EXAMPLE!r}, run_name='__main__')\n"
    shutil.rmtree(folder / "before")  # the name of a run, which a directory would hide
    (folder / "old").mkdir()
    for name in ("train.py", "gemm.py", "program.py", "old/train.py"):
        (folder / name).write_text(program)
    (folder / "shift.py").write_text(blocks("sanitizer", "python")[0])
    (folder / "kernels.py").write_text(FILL.format(faulty=FAULTY))
    (folder / "test_kernels.py").write_text(blocks("ci", "python")[0])
    (folder / "a.out").write_text(f"#!/bin/sh\nexec {sys.executable} train.py\n")
    (folder / "a.out").chmod(0o755)
    (folder / "store_lines").mkdir()
    (folder / "store_lines" / "probe.toml").write_text(blocks("probe-folders", "toml")[0])
    (folder / "store_lines" / "__init__.py").write_text(blocks("probe-folders", "python")[0])
    for words in ("init -q", "add train.py", "-c user.name=a -c user.email=a@b commit -q -m first"):
        subprocess.run(["git", *words.split()], cwd=folder, check=True, stdout=subprocess.DEVNULL)


def needed_tool(block: str) -> str | None:
    """Return the program of another vendor that a block uses and this machine lacks."""
    tokens = [word for command in commands(block) for word in command.split()]
    needed = ["ncu"] if {"ncu", "--ncu"} & {*tokens} else []
    needed += [word for word in ("nsys",) if block.startswith(f"$ {word}")]
    return next((word for word in needed if shutil.which(word) is None), None)


def run_console(block: str, folder: Path, *, simulated: bool = False) -> None:
    """Run the commands of a block one after another in a shell. Raises AssertionError with the output of a failed one.

    A switch of a run (``ctl``) needs one, which lasts as long as the block.
    """
    scripts = [str(Path(sys.executable).parent), os.environ["PATH"]]
    environment = os.environ | {"PATH": os.pathsep.join(scripts), "PYTHONPATH": str(ROOT), "COLUMNS": "100"}
    with contextlib.ExitStack() as ending:
        if "tui-probe ctl" in block:
            ending.callback(stop, start_run(folder, environment, simulated=simulated))
        if "extract trace:" in block:
            shutil.rmtree(folder / "trace")  # a trace, where the block's run makes a directory of traces
        for command in commands(block):
            script = command.replace("tui-probe run ", "tui-probe run --sim ") if simulated else command
            if command.startswith("pytest "):  # that of another environment may come first
                script = f"{sys.executable} -m {command}"
            ended = subprocess.run(["bash", "-c", script], cwd=folder, env=environment, stdin=subprocess.DEVNULL,
                                   capture_output=True, text=True, timeout=300)  # fmt: skip
            name = command.split()[1]
            assert ended.returncode in STATUSES.get(name, (0,)), f"{command}\n{ended.stdout}\n{ended.stderr}"


def start_run(folder: Path, environment: dict[str, str], *, simulated: bool) -> subprocess.Popen[str]:
    """Start a run that launches kernels until it is killed, and wait for its trace."""
    shutil.rmtree(folder / "trace")  # an ended one
    (folder / "train.py").write_text((folder / "train.py").read_text().replace("'2'", "'1000000'"))
    command = ["tui-probe", "run", "--no-ui", *(["--sim"] if simulated else []), "--", "python", "train.py"]
    run = subprocess.Popen(command, cwd=folder, env=environment, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE,
                           text=True, start_new_session=True)  # fmt: skip
    assert run.stderr is not None
    while "trace in" not in run.stderr.readline():
        assert run.poll() is None
    return run


def stop(run: subprocess.Popen[str]) -> None:
    """End a run as Ctrl-C does."""
    os.killpg(run.pid, signal.SIGINT)
    run.communicate(timeout=60)
