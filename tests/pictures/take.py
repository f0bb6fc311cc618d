"""Run a command in a terminal, press keys, and save the screen as SVG, or several screens as a recording.

    python -m tests.pictures.take --size 120x34 --keys '6 sleep:1 Down' --out live.svg -- COMMAND...

``--keys`` are tmux key names in order; ``sleep:S`` waits S seconds, ``until:TEXT`` waits until TEXT is on the screen,
``frame:S`` adds the screen to a recording, for S seconds. Without frames, the last screen is the picture.
"""

from __future__ import annotations

import argparse
import io
import os
import shlex
import subprocess
import time
from pathlib import Path

from rich.console import Console
from rich.terminal_theme import TerminalTheme
from rich.text import Text

from tests.pictures.animation import animated, without_fonts

SOCKET = f"tui-probe-pictures-{os.getpid()}"
PATIENCE = 240.0
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
    frames: list[tuple[str, float]] = []
    try:
        for key in shlex.split(options.keys):
            if key.startswith("frame:"):
                frames.append((picture(int(columns), int(rows), options.title), float(key.partition(":")[2])))
            else:
                act(key)
        shown = animated(frames) if frames else picture(int(columns), int(rows), options.title)
        options.out.parent.mkdir(parents=True, exist_ok=True)
        options.out.write_text(shown, encoding="utf-8")
    finally:
        tmux("kill-server")


def tmux(*words: str) -> str:
    """Run a tmux command on a server of our own; returns what it prints."""
    environment = {**os.environ, "COLORTERM": "truecolor"}
    result = subprocess.run(["tmux", "-L", SOCKET, *words], capture_output=True, text=True, check=True, env=environment)
    return result.stdout


def act(key: str) -> None:
    """Press a key, or wait."""
    kind, _, value = key.partition(":")
    if kind == "sleep":
        time.sleep(float(value))
    elif kind == "until":
        wait_for(value)
    else:
        tmux("send-keys", key)
        time.sleep(0.7)


def wait_for(text: str) -> None:
    """Wait until the screen shows ``text``."""
    deadline = time.monotonic() + PATIENCE
    while text not in (screen := tmux("capture-pane", "-N", "-p")):
        if time.monotonic() > deadline:
            raise SystemExit(f"{text!r} never appeared; the screen shows:\n{screen}")
        time.sleep(0.2)


def picture(columns: int, rows: int, title: str) -> str:
    """The screen as SVG."""
    screen = tmux("capture-pane", "-N", "-e", "-p").rstrip("\n").split("\n")
    console = Console(record=True, width=columns, file=io.StringIO(), force_terminal=True, color_system="truecolor")
    for line in [*screen, *[""] * (rows - len(screen))]:
        console.print(Text.from_ansi(line), no_wrap=True, crop=True, end="\n")
    # Some viewers drop the spaces at the start of a text otherwise.
    return without_fonts(console.export_svg(title=title, theme=THEME)).replace("<text ", '<text xml:space="preserve" ')


if __name__ == "__main__":
    main()
