"""The command ``tui-probe``, as it is installed."""

from __future__ import annotations

import gc

from tui_probe.own_python import collect_rarely, keep_bytecode, leave_settings_to_program


def main() -> int:
    """Run the command line and return its exit status."""
    leave_settings_to_program()
    keep_bytecode()
    collect_rarely()
    from tui_probe.cli.main import main as run

    try:
        return run()
    finally:
        gc.freeze()  # at its end, the interpreter would look through all objects for garbage: 0.1 s after a report
