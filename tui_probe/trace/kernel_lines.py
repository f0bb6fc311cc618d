"""The lines that tell what became of kernels, all of a block of lines at once: three for each kernel of a log."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final

import numpy as np

from tui_probe.trace.kernel_events import FunctionFigures
from tui_probe.trace.kernel_readers import FATES, WAYS
from tui_probe.trace.line_fields import LineFields
from tui_probe.trace.line_grammar import reason_of
from tui_probe.trace.text import text_of

if TYPE_CHECKING:
    from collections.abc import Callable

    from numpy.typing import NDArray

    from tui_probe.trace.kernel_events import Way
    from tui_probe.trace.line_block import LineBlock
    from tui_probe.trace.recorder import Recorder

_FOLDER: Final = b"[probe] rename "
_KERNEL: Final = b"[kernel] "
_FIGURES: Final = {3: 18, 5: 18, 7: 18, 9: 18}
"""``INDEX WORD registers R local L shared S blocks B``: where the figures are, and the most digits of each."""
_FUNCTION: Final = b"probed-function"
_WAY: Final = re.compile(rb"way (\S+)")


class KernelLines:
    """Reads ``[kernel]`` and ``[probe] rename`` lines into a recorder; ``read_line`` gets those of another form."""

    def __init__(self, recorder: Recorder, read_line: Callable[[bytes], None]) -> None:
        self._recorder = recorder
        self._read_line = read_line

    def read(self, block: LineBlock, left: NDArray[np.bool_]) -> None:
        """Read all such lines and take them away from those ``left``."""
        folders, kernels = block.begin_with(_FOLDER), block.begin_with(_KERNEL)
        left[folders] = left[kernels] = False
        self._read_folders(block, folders)
        if len(kernels):
            self._read_kernels(block, kernels)

    def _read_folders(self, block: LineBlock, at: NDArray[np.int64]) -> None:
        """Lines ``[probe] rename NAME INDEX_HASH``."""
        text = block.text
        for start, end in zip(block.starts[at].tolist(), block.ends[at].tolist(), strict=True):
            blank = text.rfind(b" ", start, end)
            folder = text[blank + 1 : end]
            index = folder.partition(b"_")[0]
            if blank < start + len(_FOLDER) or folder.split() != [folder] or not index.isdigit() or len(index) > 9:
                self._read_line(text[start:end])
            else:
                self._recorder.folder(int(index), text_of(folder))

    def _read_kernels(self, block: LineBlock, at: NDArray[np.int64]) -> None:
        """Lines ``[kernel] INDEX WORD`` and figures; behind these, those with a fate for a word have its reason."""
        fields = LineFields(block, at, 10, behind=_KERNEL)
        fields.words(registers=2, local=4, shared=6, blocks=8)
        (index,) = fields.numbers({0: 9})
        columns = ([None if value < 0 else value for value in each.tolist()] for each in fields.figures(_FIGURES))
        kinds = np.select([fields.good & fields.is_word(1, word) for word in _WORDS], range(len(_WORDS)), -1)
        rest = fields.in_text(np.minimum(fields.end(9) + 1, fields.ends))
        numbers = (each.tolist() for each in (kinds, block.starts[at], rest, block.ends[at], index))
        for kind, start, said, end, kernel, figures in zip(*numbers, map(FunctionFigures, *columns), strict=True):
            if kind == 0:
                self._recorder.probed_function(kernel, figures, _way(block.text[said:end]))
            elif kind < 0 or not self._read_fate(kernel, _WORDS[kind], figures, block.text[said:end]):
                self._read_line(block.text[start:end])

    def _read_fate(self, index: int, word: bytes, figures: FunctionFigures, said: bytes) -> bool:
        """``name NAME reason TEXT code CODE`` of a kernel: whether it is that."""
        words = said.split(b" ", 3)
        if len(words) < 4 or words[0] != b"name" or words[2] != b"reason" or words[1].split() != words[1:2]:
            return False
        self._recorder.fate(index, FATES[word], figures, text_of(words[1]), reason_of(words[3].rstrip(b"\r")))
        return True


def _way(said: bytes) -> Way | None:
    """``way WAY``, and what a later version may say behind it."""
    match = _WAY.match(said)
    return None if match is None else WAYS.get(match[1])


_WORDS: Final = (_FUNCTION, *FATES)
