"""Positions of probes, such as ``ld.global:st.global``: parse them, match instructions, find suspicious ones.

``!`` before a modifier leaves out the instructions that have it: ``ld.!param``. ``ld.shared.!merged`` leaves out those
that :mod:`tui_probe.ptx.assembler_effects` finds to be part of another load, for which nothing is left in machine code.
``bar.sync.immediate`` are those whose barrier has a number in the code, not in a register. ``ld.shared.retried`` are
those in a loop that does nothing but try strong loads and atomics again.
``block`` is the start of each basic block, ``block.fp32`` of each that holds instructions of that class. ``loop`` is
the start of each block that begins a loop, which is passed once per iteration; ``loop.unbounded`` only of loops that
no count ends, as :mod:`tui_probe.ptx.waiting` finds them, and whose first block has no other site of the probe.
``phase`` is the start of each phase, as :mod:`tui_probe.ptx.phases` finds them.
``attn.py:22-26`` are lines of source, as :mod:`tui_probe.engine.function_sites` finds them. ``wait.1`` is the first
group of the instructions of machine code at which warps wait, as :mod:`tui_probe.sass.wait_sites` forms them.
``stay.access`` and ``stay.other`` are those at which a warp may stay for ever, as
:mod:`tui_probe.engine.grafting.stay_positions` finds them; in SASS mode such points replace those at other
instructions of the same probe.

``+`` behind an instruction, ``mbarrier.try_wait+``, takes a loop in which a thread does nothing but try it again as
one: ``before`` runs once ahead of the first try, ``after`` once behind the last, no matter what it says. Which loops
these are, :mod:`tui_probe.ptx.waiting` tells. Where the instruction stands outside of such a loop, or the loop does
other work between the tries, each try counts by itself.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final, NamedTuple

from tui_probe.errors import did_you_mean
from tui_probe.ptx.instruction_facts import CLASSES, OPCODES, STATE_SPACES

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from tui_probe.ptx.tree import Instruction

BLOCK: Final = "block"
"""Stands for an opcode in the position of basic blocks."""
SOURCE: Final = "source"
"""The opcode that stands for lines of source in a position; no instruction has it."""
LOOP: Final = "loop"
"""Stands for an opcode in the position of the first blocks of loops."""
PHASE: Final = "phase"
"""Stands for an opcode in the position of the starts of phases."""
STAY: Final = "stay"
"""Opcode of the SASS instructions at which a warp may stay for ever."""
WAIT: Final = "wait"
"""Stands for an opcode in the position of instructions of machine code at which warps wait."""
MERGED: Final = "merged"
"""Modifier of loads that ptxas makes part of another load."""
IMMEDIATE: Final = "immediate"
"""Modifier of barriers whose number is in the code."""
RETRIED: Final = "retried"
"""Modifier of strong loads and atomics in a loop that only tries them again."""
BARRIERS: Final = frozenset({"bar", "barrier"})
UNBOUNDED: Final = "unbounded"
"""Modifier of loops that no count ends."""
POSITION_FORMS: Final = "'kernel', instructions such as 'ld.global:st.global', or source lines such as 'attn.py:22-26'"
"""Positions that a user may write, for messages."""
_POSITION_SEPARATOR: Final = re.compile(r"(?<!:):(?!:)")
_LINE_RANGE: Final = re.compile(r"(?!(?:PTX|SASS):)([^:]*[^:\s]):(\d{1,9})(?:-(\d{1,9}))?", re.IGNORECASE)
"""``attn.py:22``, ``attn.py:22-26``; a file may have no suffix, as what is compiled at run time often has."""
_ASSEMBLY_LINES: Final = re.compile(r"(?:PTX|SASS):", re.IGNORECASE)
_LINE_RANGE_LIKE: Final = re.compile(r"[^:\s]*:\s*\d.*")
_POSITION: Final = re.compile(r"([A-Za-z_]\w*(?:\.!?\w+(?:::\w+)*)*)(\+?)")
_OPERATIONS: Final = {
    "ld": "load", "ldu": "load", "st": "store", "atom": "atomic operation", "red": "atomic operation",
    "cp.async.bulk": "bulk copy", "cp.async": "asynchronous copy", "mma": "matrix instruction",
    "wmma.mma": "matrix instruction", "wgmma.mma_async": "matrix instruction", "wmma.load": "matrix load",
    "wmma.store": "matrix store", "bra": "branch", "brx": "branch", "bar": "barrier", "barrier": "barrier",
    "mbarrier": "mbarrier operation", "wait": "SASS instruction that waits", "block": "basic block",
}  # fmt: skip
"""Operations by the start of their names; the longest start counts."""
_SPACES: Final = {"global": "global ", "shared": "shared memory "}
_GENERIC: Final = frozenset(_SPACES)
"""Spaces that a position for generic addresses leaves out."""
_WITHOUT_SPACE: Final = ("cp", "wmma", "bar", "barrier", "mbarrier", "wait", "block")


class SourceRange(NamedTuple):
    """Lines ``first`` to ``last`` of a file, which may be named by only the end of its path."""

    file: str
    first: int
    last: int

    def __str__(self) -> str:
        return f"{self.file}:{self.first}" + (f"-{self.last}" if self.last > self.first else "")

    def holds(self, file: str, line: int) -> bool:
        """Return whether a line of source is one of them."""
        return self.first <= line <= self.last and self.is_of(file)

    def is_of(self, file: str) -> bool:
        """Return whether they are lines of a file."""
        return file == self.file or file.endswith(f"/{self.file}")


class Position(NamedTuple):
    """``kernel`` (no opcode), ``block``, ``loop``, ``wait``, or an opcode with modifiers that an instruction has in any
    place.

    An instruction with one of the ``unwanted`` modifiers is left out. ``retried``: a loop that does nothing but try the
    instruction again is one site, as if it were the instruction.
    """

    opcode: str
    modifiers: tuple[str, ...] = ()
    unwanted: tuple[str, ...] = ()
    retried: bool = False
    source: SourceRange | None = None
    """Lines of a source file: all instructions that came from them, run by run."""

    def __str__(self) -> str:
        """Return the position as in a probe file: ``ld.global``, ``attn.py:22-26``; ``kernel`` for its entry and
        exits.
        """
        if self.source is not None:
            return str(self.source)
        unwanted = (f"!{modifier}" for modifier in self.unwanted)
        pattern = ".".join((self.opcode or "kernel", *self.modifiers, *unwanted))
        return f"{pattern}+" if self.retried else pattern

    @property
    def is_source(self) -> bool:
        """True for the entry to and the exit from lines of source."""
        return self.source is not None

    @property
    def is_kernel(self) -> bool:
        """True for the entry and every exit of a kernel."""
        return not self.opcode

    @property
    def is_block(self) -> bool:
        """True for the start of basic blocks, loops or phases."""
        return self.opcode in (BLOCK, LOOP, PHASE)

    @property
    def is_stay(self) -> bool:
        """True for SASS instructions at which a warp may stay for ever; of kernels with PTX there are none."""
        return self.opcode == STAY

    @property
    def is_wait(self) -> bool:
        """True for a group of the SASS instructions at which warps wait."""
        return self.opcode == WAIT


def parse_positions(text: str) -> tuple[Position, ...]:
    """Parse positions joined by ``:``. Raises ValueError, naming the part that is none."""
    lines = _LINE_RANGE.fullmatch(text.strip())
    if lines is not None:
        return (_range_position(lines[1], int(lines[2]), int(lines[3] or lines[2])),)
    if _LINE_RANGE_LIKE.fullmatch(text.strip()):
        problem = (
            "lines of PTX or SASS cannot be given"
            if _ASSEMBLY_LINES.match(text.strip())
            else "write one FILE:LINE or one FILE:FIRST-LAST, without other positions"
        )
        raise ValueError(f"{text!r} is not a position: {problem}")
    positions = []
    for part in _POSITION_SEPARATOR.split(text):
        name = part.strip()
        match = _POSITION.fullmatch(name)
        if match is None:
            raise ValueError(f"{name!r} is not a position")
        position = Position("") if match[1] == "kernel" else _opcode_position(*match[1].split("."))
        if match[2] and (position.is_kernel or position.is_block or position.is_wait):
            raise ValueError(f"{name!r} is not a position: '+' (a retry loop) is for instructions only")
        positions.append(position._replace(retried=bool(match[2])))
    return tuple(positions)


def _range_position(file: str, first: int, last: int) -> Position:
    if not 0 < first <= last:
        raise ValueError(
            f"'{file}:{first}-{last}' is not a position: lines count from 1, and FIRST must not be after LAST"
        )
    return Position(SOURCE, source=SourceRange(file, first, last))


def _opcode_position(opcode: str, *modifiers: str) -> Position:
    required = tuple(modifier for modifier in modifiers if not modifier.startswith("!"))
    unwanted = tuple(modifier[1:] for modifier in modifiers if modifier.startswith("!"))
    if opcode == BLOCK and (unwanted or len(required) > 1 or not set(required) <= set(CLASSES)):
        text = ".".join((opcode, *modifiers))
        raise ValueError(f"{text!r} is not a position: the classes of basic blocks are {', '.join(CLASSES)}")
    if opcode == WAIT and (unwanted or len(required) != 1 or not required[0].isdecimal() or not int(required[0])):
        text = ".".join((opcode, *modifiers))
        raise ValueError(f"{text!r} is not a position; write wait.N with the number N of a group of waits, e.g. wait.1")
    if opcode == STAY and modifiers not in (("access",), ("other",)):
        raise ValueError(f"{'.'.join((opcode, *modifiers))!r} is not a position; write 'stay.access' or 'stay.other'")
    if opcode == PHASE and modifiers:
        raise ValueError(f"{'.'.join((opcode, *modifiers))!r} is not a position; write '{PHASE}'")
    if opcode == LOOP and modifiers not in ((), (UNBOUNDED,)):
        text = ".".join((opcode, *modifiers))
        raise ValueError(f"{text!r} is not a position; write 'loop' or 'loop.{UNBOUNDED}'")
    return Position(opcode, required, unwanted)


def matches(position: Position, instruction: Instruction, also: tuple[str, ...] = ()) -> bool:
    """Return whether an instruction has the position's opcode, all its modifiers in any place, and no unwanted one.

    ``also`` are modifiers that it has by what is around it. A modifier such as ``shared`` also stands for
    ``shared::cta`` and ``shared::cluster``.
    """
    modifiers = instruction.modifiers + also
    return (
        position.opcode == instruction.opcode
        and all(_has_modifier(modifiers, modifier) for modifier in position.modifiers)
        and not any(_has_modifier(modifiers, modifier) for modifier in position.unwanted)
    )


def _has_modifier(modifiers: Sequence[str], name: str) -> bool:
    return any(modifier == name or modifier.startswith(name + "::") for modifier in modifiers)


def suspicious_positions(positions: Iterable[Position]) -> list[str]:
    """Return warnings about positions, each once. A newer PTX may have what is questioned."""
    return list(dict.fromkeys(suspicion for position in positions for suspicion in _position_suspicions(position)))


def _position_suspicions(position: Position) -> Iterator[str]:
    if position.is_kernel or position.is_block or position.is_source or position.is_wait or position.is_stay:
        return
    if position.opcode not in OPCODES:
        suggestion = did_you_mean(position.opcode, OPCODES) or did_you_mean(position.opcode.lower(), OPCODES)
        yield f"{position}: unknown PTX instruction {position.opcode}{suggestion or '; lines are FILE:FIRST-LAST'}"
        return
    from difflib import get_close_matches

    for modifier in (*position.modifiers, *position.unwanted):
        near_spaces = get_close_matches(modifier.lower(), STATE_SPACES, 1, 0.8)
        if near_spaces and modifier.partition("::")[0] not in STATE_SPACES:
            yield f"{position}: unknown modifier .{modifier}: did you mean {near_spaces[0]}?"


def position_text(position: Position) -> str:
    """``global load``, ``matrix instruction``; ``fma.f32`` where no word is more general, ``attn.py:22-26``.

    Reasons name instructions in these words: the pattern in a probe file means nothing to the user of a probe.
    """
    if position.source is not None:
        return str(position)
    if position.is_wait and position.modifiers != ("1",):
        return f"further {_OPERATIONS[position.opcode]}"
    if position.opcode == BLOCK and position.modifiers:
        return f"{position.modifiers[0]} instruction"
    parts = (position.opcode, *position.modifiers)
    prefixes = (".".join(parts[:length]) for length in range(len(parts), 0, -1))
    prefix = next((prefix for prefix in prefixes if prefix in _OPERATIONS), "")
    remaining = set(parts[prefix.count(".") + 1 :])
    if not prefix or (remaining - _GENERIC and position.opcode not in _WITHOUT_SPACE):
        return ".".join(parts)
    if position.opcode in _WITHOUT_SPACE:
        return _OPERATIONS[prefix]
    spaces = [word for space, word in _SPACES.items() if space in remaining]
    generic = "global " if "global" in position.unwanted else ""
    return (spaces[0] if spaces else generic) + _OPERATIONS[prefix]
