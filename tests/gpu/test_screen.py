"""The screen on the GPU machine, key by key on a pseudo-terminal, as over SSH: home, live, watch, a kernel's pages."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from pathlib import Path

import pytest

from tests.ui.terminal import Terminal
from tests.ui.test_pty import CTRL_Q, assert_restored

from .conftest import PROGRAMS

CTRL_S, CTRL_A, CTRL_K = "\x13", "\x01", "\x0b"
TOOL = (
    sys.executable,
    "-c",
    "import os, sys; os.chdir(sys.argv[1]); from tui_probe.cli.main import main; sys.exit(main(sys.argv[2:]))",
)


def tool(folder: Path, *words: str) -> list[str]:
    """The command that runs tui-probe in a folder."""
    return [*TOOL, str(folder), *words]


def resident_megabytes(pid: int) -> float:
    """Return the memory of a process now."""
    pages = int(Path(f"/proc/{pid}/statm").read_text().split()[1])
    return pages * os.sysconf("SC_PAGE_SIZE") / 1e6


def seconds_until(terminal: Terminal, keys: str, text: str, timeout: float = 60) -> float:
    """From the keys to a text on the screen that was not there before."""
    begin = time.perf_counter()
    terminal.type(keys)
    terminal.wait(text, timeout)
    return time.perf_counter() - begin


@pytest.fixture(scope="session")
def products(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The tiled product with tiles of 16, whose full record of accesses takes 2 GB per launch."""
    program = tmp_path_factory.mktemp("products") / "product"
    command = ["nvcc", "-std=c++17", "-DTILE=16", "-gencode=arch=compute_90,code=[sm_90,compute_90]"]
    subprocess.run([*command, "-o", str(program), str(PROGRAMS / "tiled_matmul.cu")], check=True, env=nvcc_path())
    return program


def nvcc_path() -> dict[str, str]:
    return {**os.environ, "PATH": f"/usr/local/cuda/bin:{os.environ['PATH']}"}


def test_from_home_through_an_attention_kernel_and_back(tmp_path: Path) -> None:
    pytest.importorskip("triton")
    program = [sys.executable, str(PROGRAMS / "attention.py"), "triton"]
    # The first run on a machine tries machine code out, and its eight launches may be over before they can be probed.
    subprocess.run(tool(tmp_path, "run", "--no-ui", "--", *program), check=True, capture_output=True)
    with Terminal(tool(tmp_path), (120, 40)) as terminal:
        terminal.wait("✔ driver")
        terminal.type("\t")
        terminal.wait("Enter next field")
        terminal.type(f"{CTRL_A}{CTRL_K}{' '.join(program)}{CTRL_S}")
        terminal.wait("flash_attention", 90)
        terminal.wait("exit 0 after", 90)
        terminal.type("/flash_attention\r\r")
        terminal.wait("1 Sum")
        terminal.wait("✔ probed")
        terminal.type("4")
        terminal.wait(lambda: "what_limits" in terminal.shown and "changes" in terminal.shown)
        terminal.type("7")
        terminal.wait("busy block slots", 30)
        print(terminal.text)
        terminal.type(CTRL_Q)
        terminal.wait("Recent traces")
        terminal.type("q")
        assert terminal.wait_for_end() == 0
        assert_restored(terminal)


def test_a_result_is_drawn_while_the_program_runs_and_another_terminal_watches(tmp_path: Path, products: Path) -> None:
    run = tool(tmp_path, "run", "--launches", "all", "-p", "block_sched", "--", str(products), "1000", "100")
    with Terminal(run, (120, 40)) as first:
        first.wait("tiled_matmul", 30)
        first.type("\r7")
        first.wait("busy block slots", 30)
        with Terminal(tool(tmp_path, "watch"), (80, 24)) as second:
            second.wait("tiled_matmul", 30)
            second.wait("running")
            second.type("0r")
            second.wait("results")
            before = second.text
            second.wait(lambda: second.shown != before)
            second.type(CTRL_Q)
            assert second.wait_for_end() == 0
            assert_restored(second)
        assert "running" in first.text
        first.type("}")
        first.wait("launch")
        print(first.text)
        first.type("\x03\x03")
        first.wait("the program has ended", 20)
        first.type(CTRL_Q)
        assert first.wait_for_end() == 130
        assert_restored(first)


def test_two_gigabytes_of_accesses_open_while_keys_act(tmp_path: Path, products: Path) -> None:
    limits = ("--max-trace-bytes", "8G", "--max-probe-memory", "8G")
    run = tool(tmp_path, "run", "--launches", "all", "-p", "dmat", *limits, "--", str(products), "3", "1500")
    with Terminal(run, (200, 50)) as terminal:
        terminal.wait("exit 0 after", 150)
        largest = max(path.stat().st_size for path in tmp_path.glob("trace/*/result/*.bin"))
        assert largest > 2e9
        terminal.type("\r1")
        terminal.wait("✔ probed")
        begin = time.perf_counter()
        terminal.type("0d")
        terminal.wait("reading", 5)
        key = seconds_until(terminal, "?", "Everywhere", 5)
        terminal.type("?")
        terminal.wait("accesses", 60)
        drawn = time.perf_counter() - begin
        terminal.quiet()
        zoomed = seconds_until(terminal, "w", "accesses per cell", 60)
        print(f"GPU-DMAT\t{largest}\tdrawn {drawn:.2f} s\ta key while reading {key * 1e3:.0f} ms\t"
              f"zoom {zoomed:.2f} s\tresident {resident_megabytes(terminal.pid):.0f} MB")  # fmt: skip
        print(terminal.text)
        terminal.type(CTRL_Q)
        assert terminal.wait_for_end() == 0


def test_processes_of_one_program_are_shown_one_by_one(tmp_path: Path) -> None:
    pytest.importorskip("triton")
    run = tool(tmp_path, "run", "-p", "gmem_bytes", "--", sys.executable, str(PROGRAMS / "distributed.py"))
    with Terminal(run, (120, 40)) as terminal:
        terminal.wait("exit 0 after", 150)
        assert len(list(tmp_path.glob("trace/*/event.log"))) == 2
        terminal.type("P")
        terminal.quiet()
        print(terminal.text)
        terminal.type("\x1b")
        terminal.quiet()
        for _ in range(2):
            terminal.wait("scale")
            terminal.type("p")
            terminal.quiet()
        print(terminal.text)
        terminal.type(CTRL_Q)
        assert terminal.wait_for_end() == 0
