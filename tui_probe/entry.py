"""The command ``tui-probe``, as it is installed."""

from __future__ import annotations

from tui_probe.own_python import keep_bytecode, leave_settings_to_program


def main() -> int:
    """Run the command line and return its exit status."""
    leave_settings_to_program()
    keep_bytecode()
    from tui_probe.cli.main import main as run

    return run()
