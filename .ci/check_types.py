"""Runs mypy, with its options, without collections of garbage: they take an eighth of its CPU time and free little."""

from __future__ import annotations

import gc
from typing import Any


def keep(*_: Any) -> None:
    """Do nothing: mypy sets thresholds of its own, and turns collections on again."""


def main() -> None:
    gc.disable()
    gc.enable = gc.set_threshold = keep
    from mypy.__main__ import console_entry

    console_entry()


if __name__ == "__main__":
    main()
