"""Page ``process``: ``process.log`` of a kernel, with failures highlighted."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any, Final

from tui_probe.draw.spans import wrap
from tui_probe.draw.view import Document
from tui_probe.errors import TraceError
from tui_probe.pages.code.code_lines import printable_code, read_lines
from tui_probe.probekit.page_kinds import ViewKind

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from tui_probe.draw.spans import Line
    from tui_probe.draw.view import Progress
    from tui_probe.probekit.page_kinds import ViewSource

_CONTINUATION_INDENT: Final = "    "
"""Indentation of the continuation of a folded line."""
LOG_FILE: Final = "process.log"
_FAILURE: Final = re.compile(r"\b(failed|skipped|error|fatal|Traceback|\w*Error|\w*Exception)\b")
_ASSEMBLER_LINE: Final = re.compile(r"^\s*ptxas info|^\[[a-z]+\]|\bUsed \d+ registers\b")


class ProcessLogView(Document):
    """The lines of the log, what failed set out."""

    def __init__(self, title: str, log_lines: list[str]) -> None:
        self.title = title
        self.text = log_lines
        self.is_folded = False
        """True if long lines continue below themselves."""
        self._cells = 0

    def lines(self, width: int) -> Sequence[Line]:
        """Lines as they stand, or folded."""
        self._cells = width - 2
        return [((f" {part}", self._role(line)),) for line in self.text for part in self._parts(printable_code(line))]

    def _parts(self, line: str) -> list[str]:
        if not self.is_folded or len(line) <= self._cells:
            return [line]
        first_part, *continuations = wrap(line, self._cells - len(_CONTINUATION_INDENT))
        return [first_part, *(f"{_CONTINUATION_INDENT}{continuation}" for continuation in continuations)]

    def commands(self) -> Mapping[str, str]:
        """Fold, where a line is longer than the window."""
        label = "cut long lines" if self.is_folded else "fold long lines"
        return {"fold": label} if any(len(line) > self._cells for line in self.text) else {}

    def press(self, command: str) -> str | None:
        """Fold long lines, or cut them."""
        if command == "fold":
            self.is_folded = not self.is_folded
        return None

    def choices(self) -> Mapping[str, Any]:
        """Return whether long lines are folded."""
        return {"folded": self.is_folded}

    def choose(self, choices: Mapping[str, Any]) -> None:
        """Restore whether long lines are folded."""
        self.is_folded = choices["folded"]

    def gutter(self, width: int) -> int:
        """Return the blank at the left."""
        del width
        return 1

    @staticmethod
    def _role(line: str) -> str:
        return "bad" if _FAILURE.search(line) else "" if _ASSEMBLER_LINE.search(line) else "soft"

    def record(self) -> dict[str, Any]:
        """Return the lines."""
        return {"lines": self.text}

    def cells(self) -> Iterator[Sequence[object]]:
        """Yield a row per line."""
        yield "line", "text"
        yield from enumerate(self.text, 1)


def unavailable_reason(source: ViewSource) -> str | None:
    """Return why there is no log."""
    kernel = source.kernel
    if any(probed_kernel.file(LOG_FILE) is not None for probed_kernel in kernel.by_probe()):
        return None
    return f"the kernel was not sent to the probe engine: {kernel.reason or kernel.status}"


def _open_view(source: ViewSource, progress: Progress) -> ProcessLogView:
    progress(0.0)
    logs = [
        (probed_kernel.probe, path)
        for probed_kernel in source.kernel.by_probe()
        if (path := probed_kernel.file(LOG_FILE)) is not None
    ]
    if not logs:
        raise TraceError(f"the {LOG_FILE} of kernel #{source.kernel.index} was deleted")
    text: list[str] = []
    for probe, path in logs:
        try:
            text += [*([f"-p {probe}:"] if probe else []), *read_lines(path)]
        except OSError as error:
            raise TraceError(f"{path}: {error.strerror or error}") from error
    return ProcessLogView(f"{LOG_FILE} of {source.kernel.demangled}", text)


KIND: Final = ViewKind(
    "process",
    "process.log",
    "process.log: how the kernel was found, probed and assembled",
    unavailable_reason,
    _open_view,
    explanation=(
        "process.log: how the kernel was found, pruned, probed and assembled, with the output of ptxas. For a failed"
        " kernel, process.log contains the error; the original kernel ran instead.",
    ),
    order=0,
    short_title="Log",
    grows=True,
)
