"""Text of a probe that delays warps at barriers and memory accesses, by numbers that a seed decides.

A delay depends on the seed, the block, the warp, the instruction and how often the warp came to such instructions, so
the same seed delays the same places in each run. One of eight visits is delayed, for 64 to 32768 cycles.
"""

from __future__ import annotations

from typing import Final

PROBE_NAME: Final = "delays"
_TEXT: Final = '''\
[about]
title = "delays of warps"
measures = "nothing: a kernel that leaves other results with delays has threads that race"
weight = "heavy"
every_block = true
counts = false

[map.never]
level = "warp"
cap = 1

[map.never.regs]
block = "u32"

[probe.start]
position = "kernel"
before = """
.reg .b32 %visits, %hash, %part, %until;
.reg .pred %is_due, %is_early, %is_inside;
mov.u32 %visits, 0;
"""

[probe.access]
position = "bar:barrier:mbarrier:ld.!param.!const:st.!param:atom:red:cp.async:ldmatrix"
before = """
add.u32 %visits, %visits, 1;
mov.u32 %part, LINE;
setp.ge.u32 %is_due, %part, {first};
setp.le.and.u32 %is_due, %part, {last}, %is_due;
@!%is_due bra $inside;
mad.lo.u32 %hash, %part, 0xC2B2AE35, {seed};
mov.u32 %part, %tid.x;
shr.u32 %part, %part, 5;
mad.lo.u32 %hash, %part, 0x85EBCA6B, %hash;
mov.u32 %part, %tid.y;
mad.lo.u32 %hash, %part, 0x8DA6B343, %hash;
mov.u32 %part, %ctaid.x;
mad.lo.u32 %hash, %part, 0x9E3779B1, %hash;
mov.u32 %part, %ctaid.y;
mad.lo.u32 %hash, %part, 0xD8163841, %hash;
mad.lo.u32 %hash, %visits, 0x27D4EB2F, %hash;
shr.u32 %part, %hash, 15;
xor.b32 %hash, %hash, %part;
mul.lo.u32 %hash, %hash, 0x2C1B3C6D;
shr.u32 %part, %hash, 12;
xor.b32 %hash, %hash, %part;
and.b32 %part, %hash, 7;
setp.ne.u32 %is_due, %part, 0;
@%is_due bra $inside;
shr.u32 %part, %hash, 3;
rem.u32 %part, %part, 10;
mov.u32 %hash, 64;
shl.b32 %hash, %hash, %part;
mov.u32 %until, %clock;
add.u32 %until, %until, %hash;
$again:
mov.u32 %part, %clock;
sub.u32 %part, %until, %part;
setp.gt.s32 %is_early, %part, 0;
@%is_early bra $again;
mov.u32 %part, %ctaid.z;
setp.ne.u32 %is_inside, %part, 65535;
@%is_inside bra $inside;
SAVE [ never ] {{%part}};
$inside:
"""
'''


def delay_probe(seed: int, first: int = 0, last: int = 0x7FFFFFFF) -> str:
    """Return the text of a probe file. Instructions on lines ``first`` to ``last`` of pruned.ptx are delayed."""
    scattered = (seed * 0x9E3779B1 + 0x7F4A7C15) & 0xFFFFFFFF
    return _TEXT.format(seed=scattered, first=first, last=last)
