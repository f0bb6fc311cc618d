"""Cases of a program: each compares what the GPU gave with NumPy, and one line tells how it went."""

from __future__ import annotations

import sys
import traceback
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable

CASES: list[Callable[[], None]] = []


def case(function: Callable[[], None]) -> Callable[[], None]:
    """Run this one."""
    CASES.append(function)
    return function


def run_all() -> None:
    """Run every case, or those that are named on the command line; the exit status tells whether all were right."""
    chosen = [case for case in CASES if len(sys.argv) == 1 or case.__name__ in sys.argv[1:]]
    failed = 0
    for case in chosen:
        try:
            case()
        except Exception as error:  # noqa: BLE001 - a library may raise anything, and the other cases run
            failed += 1
            traceback.print_exc()
            print(f"{case.__name__} WRONG {type(error).__name__}", flush=True)
        else:
            print(f"{case.__name__} ok", flush=True)
    sys.exit(1 if failed or not chosen else 0)
