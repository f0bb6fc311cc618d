"""What is told of an instruction to those who have no PTX at hand: its name, types, width, spaces and kind of work."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final, NamedTuple

from tui_probe.ptx.access import access_bytes, access_kind, fragment_bytes
from tui_probe.ptx.instruction_classes import class_of

if TYPE_CHECKING:
    from tui_probe.ptx.access import Kind
    from tui_probe.ptx.tree import Instruction

_TYPE: Final = re.compile(r"[busf]\d+(?:x\d)?|bf16(?:x2)?|tf32|e\dm\d(?:x\d)?|ue8m0(?:x2)?|pred")
_SPACES: Final = frozenset({"global", "shared", "local", "const", "param"})


class Facts(NamedTuple):
    """``opcode`` with modifiers; ``work``, one of ``instruction_classes.CLASSES``; the types and the state spaces among
    the modifiers, joined by dots in their order, "" without any; of an access its kind; and the bytes that one lane
    moves, its share where a warp moves a matrix.
    """

    opcode: str
    work: str
    type: str
    space: str
    access: Kind | None
    bytes: int | None


def facts_of(one: Instruction) -> Facts:
    """The facts of an instruction. ``bytes`` is None where it moves none, and where its text does not tell."""
    access = access_kind(one)
    return Facts(
        opcode=full_name(one),
        work=class_of(one),
        type=".".join(filter(_TYPE.fullmatch, one.modifiers)),
        space=".".join(modifier for modifier in one.modifiers if modifier.partition("::")[0] in _SPACES),
        access=access,
        bytes=access_bytes(one) if access else fragment_bytes(one),
    )


def full_name(one: Instruction) -> str:
    """The opcode with its modifiers: ``ld.global.f32``."""
    return ".".join((one.opcode, *one.modifiers))
