"""SASS of snippets, each assembled once: in this process, or in an earlier run with the same assemblers.

Kernels access memory in the same few ways, so most of the snippets of one have been assembled for another. Without the
store ptxas took 60 to 200 ms for each kernel, more than everything else that a graft needs.
"""

from __future__ import annotations

import contextlib
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING, Final

from tui_probe.binaries.cubin import Cubin
from tui_probe.binaries.line_tables import cut_table
from tui_probe.engine.cache import digest
from tui_probe.sass.excerpt import KeptWholeError
from tui_probe.sass.inline_code import InlineCode
from tui_probe.sass.prune import prune_cubin

if TYPE_CHECKING:
    from collections.abc import Mapping

    from tui_probe.engine.assembler import Assembler
    from tui_probe.engine.cache import Cache

_NAME: Final = "tui_probe_snippet"
_FILE: Final = "snippet.bin"
_MAX_CUBINS: Final = 2048
"""Snippets that a process remembers, about 10 KB each."""


class SnippetStore:
    """The snippets of one assembler; ``cache`` keeps them for other processes. Safe to use from several threads."""

    def __init__(self, assembler: Assembler, cache: Cache | None = None) -> None:
        self._assembler = assembler
        self._cache = cache
        self._cubins: dict[str, Cubin] = {}
        self._codes: dict[tuple[int, int, bool], tuple[Cubin, InlineCode]] = {}
        """Code of cubins, by the identity of each."""

    def cubins(self, head: str, kernels: Mapping[str, str], arch: int) -> dict[str, Cubin]:
        """Return a cubin with one kernel for each of ``kernels``, PTX by name, which ``head`` precedes.

        Raises ToolchainError.
        """
        texts = {name: text.replace(name, _NAME, 1) for name, text in kernels.items()}
        tools = self._tools_text
        keys = {name: digest(b"snippet", tools.encode(), head.encode(), text.encode()) for name, text in texts.items()}
        stored_cubins = {key: cubin for key in dict.fromkeys(keys.values()) if (cubin := self._find(key)) is not None}
        missing_texts = {key: texts[name] for name, key in keys.items() if key not in stored_cubins}
        if missing_texts:
            assembled_cubins = self._assemble(head, missing_texts, arch)
            for key, cubin in assembled_cubins.items():
                self._keep(key, cubin)
            stored_cubins |= assembled_cubins
        return {name: stored_cubins[key] for name, key in keys.items()}

    def inline_code(self, cubin: Cubin, leading_bytes: int, *, may_exit: bool = False) -> InlineCode:
        """Return the code of a snippet's cubin, read once; see ``InlineCode.of``. Raises UnsupportedKernelError."""
        key = id(cubin), leading_bytes, may_exit
        cached_code = self._codes.get(key)
        if cached_code is None or cached_code[0] is not cubin:  # another one may have had this identity
            (name,) = cubin.kernels
            cached_code = self._codes[key] = cubin, InlineCode.from_cubin(cubin, name, leading_bytes, may_exit=may_exit)
        return cached_code[1]

    def module(self, text: str, entry: str, arch: int) -> Cubin:
        """Return the cubin of a module of PTX, whose kernels belong together. ``entry`` is one of them.

        Raises ToolchainError.
        """
        key = digest(b"snippets", self._tools_text.encode(), text.encode())
        cubin = self._find(key)
        if cubin is None:
            cubin = self._assemble_module(text, entry, arch)
            self._keep(key, cubin)
        return cubin

    @property
    def _tools_text(self) -> str:
        return repr([(str(tool.path), tool.version) for tool in self._assembler.tools()])

    def _find(self, key: str) -> Cubin | None:
        if (cubin := self._cubins.get(key)) is None and self._cache is not None:
            files = self._cache.get(key)
            cubin = Cubin.read(files[_FILE]) if files is not None else None
            if cubin is not None:
                self._remember(key, cubin)
        return cubin

    def _keep(self, key: str, cubin: Cubin) -> None:
        self._remember(key, cubin)
        if self._cache is not None:
            with contextlib.suppress(OSError):  # the disk is full: the next run assembles it again
                self._cache.put(key, {_FILE: cubin.image})

    def _remember(self, key: str, cubin: Cubin) -> None:
        if len(self._cubins) >= _MAX_CUBINS:
            self._cubins.clear()
            self._codes.clear()
        self._cubins[key] = cubin

    def _assemble(self, head: str, texts: Mapping[str, str], arch: int) -> dict[str, Cubin]:
        """Assemble all texts together: a ptxas starts in 30 ms, and has a snippet in 5 ms more."""
        names = {key: f"{_NAME}_{number}" for number, key in enumerate(texts)}
        text = head + "".join(texts[key].replace(_NAME, name, 1) for key, name in names.items())
        assembled = self._assemble_module(text, next(iter(names.values())), arch)
        try:
            return {key: prune_cubin(assembled, name, cut_table) for key, name in names.items()}
        except KeptWholeError:  # a cubin of one kernel needs no cutting
            if len(texts) == 1:
                raise
            return {key: self._assemble(head, {key: text}, arch)[key] for key, text in texts.items()}

    def _assemble_module(self, text: str, entry: str, arch: int) -> Cubin:
        with tempfile.TemporaryDirectory(prefix="tui-probe-") as folder:
            source, binary = Path(folder) / "snippets.ptx", Path(folder) / "snippets.bin"
            source.write_text(text)
            self._assembler.assemble(source, binary, f"sm_{arch}", entry)
            return Cubin.read(binary.read_bytes())
