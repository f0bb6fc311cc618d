"""Profile a notebook cell or a function: its code runs in a new process under the hook.

A process can only be hooked when it starts, so the code does not see the notebook's variables, and what it computes is
not returned: the result is the trace. ``%load_ext tui_probe`` adds ``%%tui_probe``; scripts use ``profile``.
``view`` shows one page of a kernel there.
"""

from __future__ import annotations

import pickle
import runpy
import shlex
import sys
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from tui_probe.api.traces import open_trace, trace_of
from tui_probe.draw.picture import svg_text
from tui_probe.draw.view import no_progress
from tui_probe.errors import ChoiceError, UsageError
from tui_probe.integrations.child_process import profiled_run
from tui_probe.pages.page_registry import require_page
from tui_probe.pages.view_output import text_lines, view_document, view_lines
from tui_probe.probekit.probe_results import choose_target

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from tui_probe.api.traces import Kernel, Trace
    from tui_probe.draw.view import View
    from tui_probe.probekit.page_kinds import ViewSource

MAIN: Final = "__tui_probe_main__"
"""Name under which the child imports the script of ``profile``, so that ``if __name__ == "__main__"`` is false."""
COLUMNS: Final = 110
ROWS: Final = 30
"""Size of a drawing in cells. A page of text has as many rows as it needs."""


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
        return _profile_command(shlex.split(line), [sys.executable, str(script)])


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
        raise UsageError(
            "a function defined in a notebook cannot run in a new process: profile a cell with %%tui_probe"
        )
    try:
        call = pickle.dumps((function, arguments, keywords))
    except (pickle.PicklingError, AttributeError, TypeError) as error:
        raise UsageError(f"cannot pass the call to a new process: {error}") from error
    with tempfile.TemporaryDirectory(prefix="tui-probe-") as folder:
        path = Path(folder) / "call"
        path.write_bytes(pickle.dumps((list(sys.path), main, call)))
        return _profile_command(options, [sys.executable, "-m", __name__, str(path)])


def _profile_command(options: Sequence[str], command: Sequence[str]) -> Trace:
    """Run a command and return its trace; what it prints is printed, as it comes."""
    profiled = profiled_run(options, command, sys.stdout)
    if profiled.status:
        sys.stderr.write(f"the profiled code ended with status {profiled.status}\n{profiled.messages}\n")
    return open_trace(profiled.trace(command))


def main(path: str) -> None:
    """Make the call that ``profile`` has stored; for the child process."""
    python_path, script, call = pickle.loads(Path(path).read_bytes())
    sys.path[:] = python_path
    if script is not None:
        names = runpy.run_path(script, run_name=MAIN)
        vars(sys.modules["__main__"]).update({name: value for name, value in names.items() if name[:2] != "__"})
    function, arguments, keywords = pickle.loads(call)
    function(*arguments, **keywords)


class PageView:
    """A page that was opened. ``str()`` is its text; a notebook shows it as SVG."""

    def __init__(self, name: str, source: ViewSource, view: View, columns: int, rows: int) -> None:
        self._name, self._source, self._view = name, source, view
        self._columns = columns
        self._lines = list(view_lines(view, columns, rows if hasattr(view, "prepare") else None))

    def __str__(self) -> str:
        return "\n".join(text_lines(self._lines))

    def __repr__(self) -> str:
        return f"<page {self._name} of {self._view.title}>"

    def _repr_svg_(self) -> str:
        """Return the page as SVG, for notebooks; texts of the trace are escaped."""
        return svg_text(self._lines, self._columns, self._view.title)

    def to_dict(self) -> dict[str, Any]:
        """Return the document of ``tui-probe show PAGE --format json``."""
        return view_document(self._name, self._source, self._view)


def view(kernel: Kernel, page: str, *, launch: int | None = None, columns: int = COLUMNS, rows: int = ROWS) -> PageView:
    """Open a page of a kernel, such as ``lines`` or ``source``; ``launch`` is the number of a launch.

    Raises UsageError for a page that kernels do not have, ChoiceError if it has no data of this kernel.
    """
    kind = require_page(page).of_kernel
    if kind is None:
        raise UsageError(f"{page} is a page of a whole trace: use tui-probe show {page}")
    choice = choose_target(trace_of(kernel), kind, str(kernel.index), launch)
    if choice.missing_reason is not None:
        raise ChoiceError(f"page {page} of {kernel.demangled} has no data: {choice.missing_reason}")
    return PageView(page, choice.source, kind.open(choice.source, no_progress), columns, rows)


if __name__ == "__main__":
    main(sys.argv[1])
