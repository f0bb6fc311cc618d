"""Run a command in a terminal, press keys, and save the screen as SVG, or several screens as a recording.

    python -m tests.pictures.take --size 120x34 --keys '6 sleep:1 Down' --out live.svg -- COMMAND...

``--keys`` are tmux key names in order; ``sleep:S`` waits S seconds, ``until:TEXT`` waits until TEXT is on the screen.
Without other words, the last screen is the picture. These words make a recording: ``type:TEXT`` types a command into
a shell, ``prompt`` waits until it has ended, ``film:TEXT`` adds screens until TEXT is there, ``frame:S`` adds the
screen for S seconds.
"""

from __future__ import annotations

import argparse
import dataclasses
import io
import os
import re
import shlex
import subprocess
import time
from pathlib import Path

from rich.console import Console
from rich.terminal_theme import TerminalTheme

from tests.pictures.animation import Frame, animated, decoded, without_fonts

SOCKET = f"tui-probe-pictures-{os.getpid()}"
PATIENCE = 240.0
CHECKOUT = re.compile(rf"{re.escape(str(Path(__file__).parents[2]))}/(\S*)")
THEME = TerminalTheme(
    (18, 18, 18),
    (220, 220, 220),
    [
        (0, 0, 0),
        (213, 94, 0),
        (0, 158, 115),
        (230, 159, 0),
        (0, 114, 178),
        (204, 121, 167),
        (86, 180, 233),
        (220, 220, 220),
    ],
)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--size", default="120x34", help="columns x rows")
    parser.add_argument("--keys", default="", help="keys and waits, in order")
    parser.add_argument("--title", default="tui-probe")
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("command", nargs="+")
    options = parser.parse_args()
    columns, rows = options.size.split("x")
    shell = shlex.join(options.command) + "; sleep 600"
    tmux("-f", "/dev/null", "new-session", "-d", "-x", columns, "-y", rows, shell)
    tmux("set", "-g", "status", "off")
    tmux("resize-window", "-x", columns, "-y", rows)
    recorder = Recorder()
    try:
        for key in shlex.split(options.keys):
            recorder.act(key)
        if recorder.frames:
            shown = animated(recorder.frames, int(columns), options.title, THEME)
        else:
            shown = picture(int(columns), int(rows), options.title)
        options.out.parent.mkdir(parents=True, exist_ok=True)
        options.out.write_text(shown, encoding="utf-8")
    finally:
        tmux("kill-server")


def tmux(*words: str) -> str:
    """Run a tmux command on a server of our own; returns what it prints."""
    environment = {**os.environ, "COLORTERM": "truecolor"}
    result = subprocess.run(["tmux", "-L", SOCKET, *words], capture_output=True, text=True, check=True, env=environment)
    return result.stdout


class Recorder:
    """Presses keys, and keeps the screens of a recording."""

    def __init__(self) -> None:
        self.frames: list[Frame] = []
        self.keys: list[str] = []
        """Pressed since the last frame."""

    def act(self, word: str) -> None:
        """Press a key, wait, or add screens."""
        kind, _, value = word.partition(":")
        if kind == "sleep":
            time.sleep(float(value))
        elif kind == "until":
            wait_for(value)
        elif word == "prompt":
            wait_for_prompt()
        elif kind == "frame":
            self.add(steady_screen(), float(value))
        elif kind == "film":
            self.film(value)
        elif kind == "type":
            self.type(value)
        else:
            tmux("send-keys", word)
            self.keys.append(word)
            time.sleep(0.7)

    def add(self, lines: tuple[str, ...], seconds: float) -> None:
        """Add a screen; the last frame is shown longer if it is the same."""
        last = self.frames[-1] if self.frames else None
        if last and last.lines == lines and not self.keys:
            self.frames[-1] = dataclasses.replace(last, seconds=last.seconds + seconds)
        else:
            self.frames.append(Frame(lines, seconds, " ".join(self.keys)))
        self.keys = []

    def film(self, text: str) -> None:
        """Add each new screen until it has ``text``; each is shown for half a second."""
        deadline = time.monotonic() + PATIENCE
        while True:
            lines = steady_screen()
            if not self.frames or lines != self.frames[-1].lines:
                self.add(lines, 0.5)
            if text in tmux("capture-pane", "-N", "-p"):
                return
            if time.monotonic() > deadline:
                raise SystemExit(f"{text!r} never appeared; the screen shows:\n{tmux('capture-pane', '-p')}")
            time.sleep(0.5)

    def type(self, text: str) -> None:
        """Type a command into a shell that waits for one, word by word, and press Enter."""
        wait_for_prompt()
        for word in re.findall(r"\S+\s*", text):
            tmux("send-keys", "-l", "--", word)
            self.add(steady_screen(), 0.2)
        self.add(steady_screen(), 0.6)
        tmux("send-keys", "Enter")


def steady_screen() -> tuple[str, ...]:
    """Return the screen when two looks agree: a frame may arrive in parts. Paths are relative to the checkout."""
    before: tuple[str, ...] | None = None
    while (screen := tuple(tmux("capture-pane", "-N", "-e", "-p").rstrip("\n").split("\n"))) != before:
        before = screen
        time.sleep(0.1)
    return tuple(CHECKOUT.sub(lambda path: path[1] + " " * (len(path[0]) - len(path[1])), line) for line in screen)


def wait_for(text: str) -> None:
    """Wait until the screen shows ``text``."""
    deadline = time.monotonic() + PATIENCE
    while text not in (screen := tmux("capture-pane", "-N", "-p")):
        if time.monotonic() > deadline:
            raise SystemExit(f"{text!r} never appeared; the screen shows:\n{screen}")
        time.sleep(0.2)


def wait_for_prompt() -> None:
    """Wait until a shell waits for a command."""
    deadline = time.monotonic() + PATIENCE
    while not tmux("capture-pane", "-p").rstrip().endswith("$"):
        if time.monotonic() > deadline:
            raise SystemExit("the shell has no prompt")
        time.sleep(0.2)


def picture(columns: int, rows: int, title: str) -> str:
    """The screen as SVG."""
    screen = tmux("capture-pane", "-N", "-e", "-p").rstrip("\n").split("\n")
    console = Console(record=True, width=columns, file=io.StringIO(), force_terminal=True, color_system="truecolor")
    for line in decoded([*screen, *[""] * (rows - len(screen))]):
        console.print(line, no_wrap=True, crop=True, end="\n")
    # Some viewers drop the spaces at the start of a text otherwise.
    return without_fonts(console.export_svg(title=title, theme=THEME)).replace("<text ", '<text xml:space="preserve" ')


if __name__ == "__main__":
    main()
