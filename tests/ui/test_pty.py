"""The screen on a real terminal: what is sent, how much of it, and how the terminal is left."""

from __future__ import annotations

import re
import shutil
import signal
import subprocess
import time
from statistics import median
from typing import TYPE_CHECKING

import pytest

from tests.patience import HANG
from tests.ui.synthetic import TraceWriter, example
from tests.ui.terminal import ROOT, Terminal, on_screen
from tests.warm_start import COLD

if TYPE_CHECKING:
    from pathlib import Path

SLEEPER = "import time\ntime.sleep(600)\n"
STUBBORN = """
import signal, sys, time
def stop(*_):
    print("interrupted", flush=True)
    sys.exit(3)
signal.signal(signal.SIGINT, stop)
print("ready", flush=True)
time.sleep(600)
"""
# What must be undone at the end: alternate screen, hidden cursor, mouse, bracketed paste, line wrap, keyboard protocol.
RESTORED = (b"\x1b[?1049l", b"\x1b[?25h", b"\x1b[?1000l", b"\x1b[?1003l", b"\x1b[?2004l", b"\x1b[?7h", b"\x1b[<u")
CTRL_C, CTRL_Q = "\x03", "\x11"


@pytest.fixture
def root(tmp_path: Path) -> Path:
    """A folder with an example trace and a target that sleeps."""
    (tmp_path / "target.py").write_text(SLEEPER)
    example(tmp_path / "trace")
    return tmp_path


def assert_restored(terminal: Terminal) -> None:
    end = bytes(terminal.received[-2000:])
    missing = [sequence for sequence in RESTORED if sequence not in end]
    assert missing == []
    assert end.rindex(b"\x1b[?1049l") > end.rfind(b"\x1b[?1049h")


def test_screen_starts_resizes_and_restores_terminal(root: Path) -> None:
    with Terminal(on_screen(root), (80, 24), {"COLUMNS": "70", "LINES": "20", COLD: "1"}) as terminal:
        terminal.wait("6 kernels (3 probed)")
        terminal.wait("zero_fill(float*, int)")
        terminal.wait("● running")
        terminal.resize(120, 40)
        terminal.wait("7 Timeline")
        terminal.resize(40, 10)
        terminal.wait("40×10 is too small")
        terminal.resize(80, 24)
        terminal.wait("9 Log")
        terminal.type(CTRL_Q)
        terminal.wait("Still running:")
        terminal.type("l")
        assert terminal.wait_for_end() == 0
        assert_restored(terminal)
    assert (root / "left").read_text() == "None"
    assert (root / "was_left").exists()


def test_ctrl_c_reaches_the_target_and_not_the_screen(root: Path) -> None:
    (root / "target.py").write_text(STUBBORN)
    with Terminal(on_screen(root), (100, 30)) as terminal:
        terminal.wait("6 kernels")
        terminal.type("0o")
        terminal.wait("ready")
        terminal.type(CTRL_C)
        terminal.wait("✘ exit 3")
        terminal.wait("interrupted")
        terminal.type(CTRL_Q)
        assert terminal.wait_for_end() == 0
        assert_restored(terminal)


def test_signal_ends_screen_and_is_reported(root: Path) -> None:
    import os

    with Terminal(on_screen(root), (100, 30)) as terminal:
        terminal.wait("6 kernels")
        os.kill(terminal.pid, signal.SIGTERM)
        assert terminal.wait_for_end() == 128 + signal.SIGTERM
        assert_restored(terminal)
    assert (root / "left").read_text() == "None"


def test_a_crash_restores_the_terminal_and_names_its_report(root: Path) -> None:
    with Terminal(on_screen(root, "crash"), (100, 30), {"TMPDIR": str(root)}) as terminal:
        assert terminal.wait_for_end() == 1
        assert_restored(terminal)
        text = bytes(terminal.received).rpartition(b"\x1b[?1049l")[2].decode()
    (report,) = root.glob("tui-probe-crash-*.txt")
    assert "a planted failure" in report.read_text()
    assert report.name in text


def test_no_color_sends_no_colour(root: Path) -> None:
    with Terminal(on_screen(root), (80, 24), {"NO_COLOR": "1"}) as terminal:
        terminal.wait("6 kernels")
        terminal.type("0v\tj")
        terminal.quiet()
        colours = re.findall(rb"\x1b\[(?:[0-9;]*;)?(?:3[0-8]|4[0-8]|9[0-7]|10[0-7])(?:;[0-9;]*)?m", terminal.received)
        assert colours == []
        assert b"\x1b[7;" in terminal.received


def test_ascii_sends_only_ascii(root: Path) -> None:
    with Terminal(on_screen(root), (80, 24), {"LC_ALL": "C"}) as terminal:
        terminal.wait("6 kernels")
        terminal.type("0v\tt")
        terminal.wait("Tags to show")
        assert terminal.received.isascii()


def test_over_ssh_the_mouse_is_left_to_the_terminal(root: Path) -> None:
    with Terminal(on_screen(root), (80, 24), {"SSH_CONNECTION": "1.2.3.4 5 6.7.8.9 22"}) as terminal:
        terminal.wait("6 kernels")
        assert b"\x1b[?1003h" not in terminal.received


def test_byte_budgets(root: Path) -> None:
    """On a terminal with the clock of a program that runs; ``test_budgets.py`` has all steps, without a terminal."""
    shutil.rmtree(root / "trace")
    trace = TraceWriter(root / "trace")
    for number in range(20):
        trace.timed(number, trace.launch(trace.kernel(f"triton_poi_fused_kernel_number_{number}")), 10_000)
    with Terminal(on_screen(root), (200, 50)) as terminal:
        terminal.wait("20 launches")
        terminal.quiet(0.6, steady=True)
        assert terminal.count <= 60_000, "first paint"

        before = terminal.count
        trace.event(*(line for kernel in range(20) for line in trace.launch_lines(kernel)))
        terminal.wait("40 launches")
        assert terminal.quiet(0.6, steady=True) - before <= 2000, "20 rows changed"

        before = terminal.count
        began = _seconds(terminal)
        terminal.wait(lambda: _seconds(terminal, locked=True) >= began + 2)
        assert terminal.count - before <= 100 * (_seconds(terminal) - began + 1), "idle: 1 KB in 10 s"


def _seconds(terminal: Terminal, *, locked: bool = False) -> int:
    """Return the duration of the target on the screen."""
    match = re.search(r"running (?:(\d+) min )?(\d+)", terminal.shown if locked else terminal.text)
    assert match is not None
    return 60 * int(match[1] or 0) + int(match[2])


def test_on_a_slow_line_the_screen_is_current_and_keys_act(root: Path) -> None:
    """50 kB/s, while the log grows faster than could be sent: what is sent is 1 s old at most, a key acts in 0.3 s.

    Both count the bytes that the line takes in this time, so that a busy machine changes neither.
    """
    log, rate = root / "stdout.log", 50_000
    written: dict[int, int] = {}

    def write(number: int) -> None:
        with log.open("a") as file:
            file.writelines(f"seq {number} {'.' * 180}\n" for _ in range(100))
        written[number] = terminal.count

    with Terminal(on_screen(root), (200, 50), rate=rate) as terminal:
        terminal.wait("6 kernels")
        terminal.type("0o\t")
        terminal.wait(lambda: "stdout" in terminal.shown)
        ages, delays = [], []
        for number in range(40):
            write(number)
            time.sleep(0.1)
            if number == 15:
                terminal.wait("seq ")  # what it shows from then on has an age
            if number >= 15:
                seen = [int(found) for found in re.findall(r"seq (\d+)", terminal.text)]
                ages.append(terminal.count - written[max(seen)])
            if number % 10 == 9:
                zoomed = number % 20 == 9
                before = terminal.count
                terminal.type("z")
                terminal.wait(lambda zoomed=zoomed: ("  launches" in terminal.shown) is not zoomed)  # type: ignore[misc]
                delays.append(terminal.count - before)
        assert max(ages) < rate, ages
        assert median(delays) < 0.3 * rate, delays


def test_on_a_line_that_is_too_slow_fewer_frames_are_sent(root: Path) -> None:
    """A terminal buffers 64 KiB: a writer waits only once that is full."""
    log = root / "stdout.log"
    log.touch()
    with Terminal(on_screen(root), (200, 50)) as terminal:
        terminal.wait("6 kernels")
        terminal.type("0o\tz")
        terminal.wait("stdout")
        assert "low bandwidth" not in terminal.text
        terminal.rate = 2_000
        for number in range(60):
            with log.open("a") as file:
                file.writelines(f"seq {number} {str(number) * 90}\n" for _ in range(60))
            time.sleep(0.1)
        terminal.rate = None
        terminal.wait("· low bandwidth ·")


@pytest.mark.skipif(shutil.which("tmux") is None, reason="tmux is not installed")
def test_in_tmux(root: Path) -> None:
    server = ["tmux", "-L", f"tui-probe-test-{root.name}", "-f", "/dev/null"]

    def tmux(*words: str) -> str:
        return subprocess.run([*server, *words], capture_output=True, text=True, check=True, timeout=HANG).stdout

    def until(words: str) -> str:
        end = time.monotonic() + HANG
        while words not in (shown := tmux("capture-pane", "-p")):
            assert time.monotonic() < end, shown
            time.sleep(0.05)
        return shown

    command = " ".join(on_screen(root))
    tmux("new-session", "-d", "-x", "80", "-y", "24", f"cd {ROOT}; LC_ALL=C.UTF-8 {command}; echo status $?; cat")
    try:
        until("6 kernels (3 probed)")
        tmux("resize-window", "-x", "200", "-y", "50")
        until("7 Timeline")
        tmux("send-keys", "0", "v")
        until("following")
        until("[exec]")
        tmux("send-keys", "C-q")
        until("Still running:")
        tmux("send-keys", "i")
        assert "tui-probe  target.py" not in until("status 0")
    finally:
        tmux("kill-server")


def test_keys_typed_before_the_screen_are_kept(root: Path) -> None:
    with Terminal(on_screen(root), (110, 32)) as terminal:
        terminal.type("/softmax\r\r")
        terminal.wait(lambda: re.match(r" #\d+ .*softmax", terminal.shown) is not None)
