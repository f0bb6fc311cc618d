"""Profile a notebook cell or a function: its code runs in a new process under the hook.

A process can only be hooked when it starts, so the code does not see the notebook's variables, and what it computes is
not returned: the result is the trace. ``%load_ext tui_probe`` adds ``%%tui_probe``; scripts use ``profile``.
"""

from __future__ import annotations

import pickle
import runpy
import shlex
import sys
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from tui_probe.api.traces import open_trace
from tui_probe.errors import UsageError
from tui_probe.integrations.profiled_run import profiled_run

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from tui_probe.api.traces import Trace

MAIN: Final = "__tui_probe_main__"
"""Name under which the child imports the script of ``profile``, so that ``if __name__ == "__main__"`` is false."""


def load_ipython_extension(shell: Any) -> None:
    """Add the magic ``%%tui_probe``; IPython calls this for ``%load_ext tui_probe``."""
    shell.register_magic_function(profile_cell, "cell", "tui_probe")


def profile_cell(line: str, cell: str) -> Trace:
    """Run a cell in a new process under ``tui-probe run LINE`` and return the trace, which shows itself as HTML.

    Raises TraceError if nothing was traced.
    """
    with tempfile.TemporaryDirectory(prefix="tui-probe-") as folder:
        script = Path(folder) / "cell.py"
        script.write_text(cell, encoding="utf-8")
        return _run(shlex.split(line), [sys.executable, str(script)])


def profile(
    function: Callable[..., object], *arguments: object, options: Sequence[str] = (), **keywords: object
) -> Trace:
    """Call a function in a new process under the hook, and return the trace.

    ``options`` are those of ``tui-probe run``, e.g. ``("--sim", "-p", "stalls")``. Function and arguments are pickled:
    the function must be at the top level of a module or of the script, and the script must not call ``profile``
    outside of ``if __name__ == "__main__"``. Tensors on a GPU cannot be passed: create them in the function. Raises
    UsageError for what cannot be pickled, TraceError if nothing was traced.
    """
    main = getattr(sys.modules["__main__"], "__file__", None)
    if getattr(function, "__module__", "") == "__main__" and main is None:
        raise UsageError("a function of a notebook cannot be passed to a new process: use %%tui_probe for its cell")
    try:
        call = pickle.dumps((function, arguments, keywords))
    except (pickle.PicklingError, AttributeError, TypeError) as error:
        raise UsageError(f"cannot pass the call to a new process: {error}") from error
    with tempfile.TemporaryDirectory(prefix="tui-probe-") as folder:
        path = Path(folder) / "call"
        path.write_bytes(pickle.dumps((list(sys.path), main, call)))
        return _run(options, [sys.executable, "-m", __name__, str(path)])


def _run(options: Sequence[str], command: Sequence[str]) -> Trace:
    """Run a command and return its trace; what it prints is printed, as it comes."""
    run = profiled_run(options, command, sys.stdout)
    if run.status:
        sys.stderr.write(f"the profiled code ended with status {run.status}\n{run.messages}")
    return open_trace(run.trace)


def main(path: str) -> None:
    """Make the call that ``profile`` has stored; for the child process."""
    python_path, script, call = pickle.loads(Path(path).read_bytes())
    sys.path[:] = python_path
    if script is not None:
        names = runpy.run_path(script, run_name=MAIN)
        vars(sys.modules["__main__"]).update({name: value for name, value in names.items() if name[:2] != "__"})
    function, arguments, keywords = pickle.loads(call)
    function(*arguments, **keywords)


if __name__ == "__main__":
    main(sys.argv[1])
