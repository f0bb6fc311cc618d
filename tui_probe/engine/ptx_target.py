"""Raise a kernel's PTX version and target to what a probe needs, or substitute older instructions in the probe;
tell which instructions (``redux``, ``elect``) a module's PTX may use.

Only the header changes, and only upward: as far up as the probe's instructions need and the device supports.
That must change nothing of what the kernel itself means, so what depends on the two decides (PTX ISA, Volta
compatibility guide):

- A target below sm_70 stays below it. For such PTX a later device keeps the warps in step as before Volta, and a
  ``bar`` of one lane is one of its whole warp; kernels that count on that would compute something else, or wait for
  ever. What the probe lacks there is written with what there is (``warp_substitutes.py``).
- From sm_70 to later ones instructions are added. ``ld.volatile``, ``membar`` and the scheduling of threads do not
  change any more.
- ``sm_90a`` and ``sm_100f`` have instructions that no other target has, and stay.
- Version 6.4 takes ``shfl`` and ``vote`` without ``.sync`` from sm_70 and later: a kernel with them keeps its version.
- Before version 3.0 variables outside of functions and parameters in registers followed another ABI, before 1.4
  ``div``, ``sqrt`` and ``rcp`` were approximate, and targets sm_1x flush subnormal numbers: those versions stay.
"""

from __future__ import annotations

import re
from dataclasses import replace
from typing import TYPE_CHECKING, Final, NamedTuple

from tui_probe.engine.kernel import function_instructions
from tui_probe.engine.warp_substitutes import REDUX_FROM, can_substitute, substitute_opcodes
from tui_probe.errors import UnsupportedKernelError
from tui_probe.probe_model.probe import Level, SnippetCode
from tui_probe.ptx.tree import REPLACED_MARK
from tui_probe.reasons import because

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tui_probe.engine.kernel import Kernel
    from tui_probe.probe_model.probe import Probe
    from tui_probe.ptx.tree import Instruction, Module

_LOCKSTEP_BELOW: Final = 70
"""First architecture whose lanes do not run in lockstep; before, ``shfl`` and ``vote`` need no members."""
_SYNC_ONLY_FROM: Final = (6, 4)
"""First PTX version in which ``shfl`` and ``vote`` exist with ``.sync`` only for sm_70 and later."""
_MIN_RAISABLE_VERSION: Final = (3, 0)
"""First PTX version that may be raised: see the end of the module's docstring."""
_TARGET: Final = re.compile(r"sm_([0-9]+)([a-z]?)")


class Isa(NamedTuple):
    """A PTX version, and the number of a target (80 for sm_80)."""

    version: tuple[int, int]
    target: int


_REQUIRED_ISA: Final = {
    "activemask": Isa((6, 2), 30),
    "shfl.sync": Isa((6, 0), 30),
    "vote.sync": Isa((6, 0), 30),
    "match": Isa((6, 0), 70),
    "redux": Isa((7, 0), REDUX_FROM),
    "elect": Isa((8, 0), 90),
    "lop3": Isa((4, 3), 50),
    "dp4a": Isa((5, 0), 61),
    "dp2a": Isa((5, 0), 61),
}
"""PTX version and architecture that introduced an opcode, or an opcode with a modifier (PTX ISA). All others are as old
as any PTX that is assembled today.
"""


class _Header(NamedTuple):
    """ISA version and target of a kernel's PTX, and the limits for raising it on a device of ``arch`` (90)."""

    isa: Isa
    is_plain: bool
    arch: int
    keeps_version: bool

    def allows(self, required: Isa) -> bool:
        """Return whether the header may be raised to what is needed."""
        if required.target > self.isa.target:
            crosses = self.isa.target < _LOCKSTEP_BELOW <= required.target
            if not self.is_plain or required.target > self.arch or crosses:
                return False
        return required.version <= self.isa.version or self._allows_version(required.version)

    def _allows_version(self, version: tuple[int, int]) -> bool:
        if self.isa.version < _MIN_RAISABLE_VERSION:
            return False
        return not (self.keeps_version and self.isa.version < _SYNC_ONLY_FROM <= version)


def can_reduce(module: Module) -> bool:
    """Return whether the PTX of a module may use ``redux.sync``."""
    return _supports(module, _REQUIRED_ISA["redux"])


def can_elect(module: Module) -> bool:
    """Return whether the PTX of a module may use ``elect.sync``."""
    return _supports(module, _REQUIRED_ISA["elect"])


def _supports(module: Module, required: Isa) -> bool:
    match = _TARGET.match(module.target)
    return match is not None and module.version >= required.version and int(match[1]) >= required.target


def fit_to_probe(kernel: Kernel, probe: Probe, arch: int | None = None) -> tuple[Kernel, Probe]:
    """Return the kernel with a header for the probe, and the probe in instructions that this PTX may have.

    ``arch`` is the device (90 for sm_90); without one the target stays. Raises UnsupportedKernelError for an
    instruction of the probe that the kernel's PTX cannot have.
    """
    match = _TARGET.match(kernel.module.target)
    if match is None:
        return kernel, probe
    isa = Isa(kernel.module.version, int(match[1]))
    header = _Header(isa, not match[2], isa.target if arch is None else arch, _lacks_sync(kernel))
    unavailable = [
        (instruction, required) for instruction, required in _requirements(probe) if not header.allows(required)
    ]
    for instruction, required in unavailable:
        if not can_substitute(instruction):
            _refuse(instruction.opcode, required, kernel)
    if unavailable:
        probe = substitute_opcodes(probe, frozenset(instruction.opcode for instruction, _ in unavailable))
    raised_isa = _raised_isa(header, probe)
    for instruction, required in _requirements(probe):
        if required.version > raised_isa.version or required.target > raised_isa.target:
            _refuse(instruction.opcode, required, kernel)
    return (_replace_header(kernel, raised_isa) if raised_isa != isa else kernel), probe


def _raised_isa(header: _Header, probe: Probe) -> Isa:
    """Return the version and target to raise the header to. A missing activemask is reported by the insertion."""
    requirements = [required for _, required in _requirements(probe)]
    if any(own_map.level is not Level.THREAD for own_map in probe.maps):
        requirements.append(_REQUIRED_ISA["activemask"])
    candidates = [header.isa, *(isa for isa in requirements if header.allows(isa))]
    return Isa(max(isa.version for isa in candidates), max(isa.target for isa in candidates))


def _requirements(probe: Probe) -> Iterator[tuple[Instruction, Isa]]:
    """Yield the instructions of a probe that not every PTX has, and what they need."""
    for point in probe.points:
        for snippet in (point.before, point.after):
            for statement in snippet.statements if snippet else ():
                if isinstance(statement, SnippetCode) and statement.instruction is not None:
                    instruction = statement.instruction
                    for name in (
                        instruction.opcode,
                        *(f"{instruction.opcode}.{modifier}" for modifier in instruction.modifiers),
                    ):
                        if name in _REQUIRED_ISA:
                            yield instruction, _REQUIRED_ISA[name]


def _lacks_sync(kernel: Kernel) -> bool:
    """Return whether the kernel or a function of it has ``shfl`` or ``vote`` without ``.sync``."""
    return any(
        _is_without_sync(instruction) for function in kernel.bodies for instruction in function_instructions(function)
    )


def _is_without_sync(instruction: Instruction) -> bool:
    return instruction.opcode in ("shfl", "vote") and "sync" not in instruction.modifiers


def _refuse(opcode: str, required: Isa, kernel: Kernel) -> None:
    reason = because(
        "target-too-old",
        instruction=opcode,
        least=_version_text(required.version),
        needed=f"sm_{required.target}",
        found=f"PTX {_version_text(kernel.module.version)} for {kernel.module.target.rstrip(',')}",
    )
    raise UnsupportedKernelError(reason)


def _version_text(version: tuple[int, int]) -> str:
    return ".".join(map(str, version))


def _replace_header(kernel: Kernel, isa: Isa) -> Kernel:
    """Return the kernel with another header; options of ``.target``, such as its texture mode, stay."""
    module, text = kernel.module, kernel.pruned
    if isa.version != module.version:
        text = _replace_directive_value(text, "version", r"[0-9]+\.[0-9]+", _version_text(isa.version))
    target = module.target
    if isa.target != int(_TARGET.findall(target)[0][0]):
        target = _TARGET.sub(f"sm_{isa.target}", target)
        text = _replace_directive_value(text, "target", _TARGET.pattern, f"sm_{isa.target}")
    return replace(kernel, module=replace(module, version=isa.version, target=target), pruned=text)


def _replace_directive_value(text: str, directive: str, value: str, new_value: str) -> str:
    """Return the text with a new value in the first line of a directive, which is quoted behind it."""
    match = re.search(rf"^[ \t]*\.{directive}\s+(?:{value})[^\n]*", text, re.MULTILINE)
    if match is None:
        return text
    line = re.sub(value, new_value, match[0], count=1)
    return f"{text[: match.start()]}{line} {REPLACED_MARK}{' '.join(match[0].split())}{text[match.end() :]}"
