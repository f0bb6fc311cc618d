"""Checks of the terminal: its size, colours and characters, and the link to it."""

from __future__ import annotations

import os
import shutil
import sys

from tui_probe.cli.output import on_terminal

from . import Item

SMALL_SIZE = (80, 24)


def terminal_items() -> list[Item]:
    if not on_terminal():
        return [Item("terminal", "warn", _obstacle(), "without a terminal, run and open print text reports")]
    return [screen_item(), character_item(), *link_items()]


def _obstacle() -> str:
    """Return why there can be no screen."""
    names = ("stdin", "stdout", "stderr")
    elsewhere = [name for descriptor, name in enumerate(names) if not os.isatty(descriptor)]
    if elsewhere:
        *others, last = elsewhere
        return f"{', '.join(others)} and {last} are not terminals" if others else f"{last} is not a terminal"
    return f"TERM={os.environ.get('TERM', '')!r} cannot place text"


def screen_item() -> Item:
    columns, lines = shutil.get_terminal_size()
    finding = f"{os.environ['TERM']}, {columns}×{lines}, {colours()}"
    if columns < SMALL_SIZE[0] or lines < SMALL_SIZE[1]:
        return Item("terminal", "warn", finding, f"enlarge the terminal to at least {SMALL_SIZE[0]}×{SMALL_SIZE[1]}")
    return Item("terminal", "ok", finding)


def colours() -> str:
    """Return the number of colours of the terminal, as text."""
    if os.environ.get("NO_COLOR"):
        return "no colours (NO_COLOR is set)"
    if os.environ.get("COLORTERM") in ("truecolor", "24bit"):
        return "16 million colours"
    try:
        import curses  # not there on Windows
    except ImportError:
        return "colours unknown"
    try:
        curses.setupterm(fd=1)
    except curses.error:
        return "colours unknown"
    return f"{max(curses.tigetnum('colors'), 0)} colours"


def character_item() -> Item:
    stdout = sys.__stdout__  # under a screen ``sys.stdout`` is not a file
    encoding = (stdout.encoding if stdout else None) or "ascii"
    if "utf" in encoding.lower():
        return Item("characters", "ok", encoding)
    return Item("characters", "warn", encoding, "charts use ASCII characters only; for finer charts set LANG=C.UTF-8")


def link_items() -> list[Item]:
    """Return items for what lies between program and terminal: SSH, multiplexer."""
    items = []
    if os.environ.get("SSH_CONNECTION"):
        advice = "on a slow link use --low-bandwidth and compression (ssh -C)"
        items.append(Item("link", "ok", "SSH: no animation, no mouse", advice))
    if os.environ.get("TMUX"):
        advice = "in tmux.conf: set -g default-terminal tmux-256color (colors), set -g set-clipboard on (copying)"
        items.append(Item("tmux", "ok", "inside tmux", advice))
    return items
