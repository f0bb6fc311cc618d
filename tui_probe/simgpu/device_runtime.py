"""What the device's runtime library (``cudadevrt``) and its driver have for kernels, as PTX.

Compilers only declare these functions; a linker finds them in a library of machine code, which is not executed here.
``malloc``, ``free``, ``vprintf`` and ``__assertfail`` are the executor's own, and the first two need a heap.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from tui_probe.ptx.parser import parse
from tui_probe.ptx.tree import Function
from tui_probe.simgpu.executor import HEAP, HEAP_BYTES

if TYPE_CHECKING:
    from tui_probe.ptx.tree import Module

_HEAP: Final = f".visible .global .align 16 .b8 {HEAP}[{HEAP_BYTES}];"
_HANDLE: Final = """
.visible .func (.param .b64 result) cudaCGGetIntrinsicHandle(.param .b32 scope)
{
    .reg .b32 %r<3>;
    .reg .b64 %rd;
    mov.u32 %r1, %envreg1;
    mov.u32 %r2, %envreg2;
    mov.b64 %rd, {%r2, %r1};
    st.param.b64 [result], %rd;
    ret;
}
"""
# The barrier of cooperative groups: a thread of each block adds 1, that of the first one what turns the highest
# bit once all have come, which each of them waits for. A launch that is not cooperative has no memory for it.
_BARRIER: Final = """
.visible .func (.param .b32 result) cudaCGSynchronize(.param .b64 handle, .param .b32 flags)
{
    .reg .pred %first, %others, %waits, %none;
    .reg .b32 %r<8>;
    .reg .b64 %rd;
    ld.param.b64 %rd, [handle];
    setp.eq.u64 %none, %rd, 0;
    @%none trap;
    bar.sync 0;
    mov.u32 %r1, %tid.x;
    mov.u32 %r2, %tid.y;
    or.b32 %r1, %r1, %r2;
    mov.u32 %r2, %tid.z;
    or.b32 %r1, %r1, %r2;
    setp.ne.u32 %others, %r1, 0;
    @%others bra done;
    mov.u32 %r1, %nctaid.x;
    mov.u32 %r2, %nctaid.y;
    mul.lo.u32 %r1, %r1, %r2;
    mov.u32 %r2, %nctaid.z;
    mul.lo.u32 %r1, %r1, %r2;
    mov.u32 %r3, %ctaid.x;
    mov.u32 %r4, %ctaid.y;
    or.b32 %r3, %r3, %r4;
    mov.u32 %r4, %ctaid.z;
    or.b32 %r3, %r3, %r4;
    setp.eq.u32 %first, %r3, 0;
    sub.u32 %r5, 0x80000001, %r1;
    selp.b32 %r5, %r5, 1, %first;
    membar.gl;
    atom.global.add.u32 %r6, [%rd+4], %r5;
again:
    ld.volatile.global.u32 %r7, [%rd+4];
    xor.b32 %r7, %r7, %r6;
    setp.ge.s32 %waits, %r7, 0;
    @%waits bra again;
    membar.gl;
done:
    bar.sync 0;
    st.param.b32 [result], 0;
    ret;
}
"""
_TEXTS: Final = {"malloc": _HEAP, "free": _HEAP, "cudaCGGetIntrinsicHandle": _HANDLE, "cudaCGSynchronize": _BARRIER}


def with_runtime(module: Module) -> Module:
    """The module with those of these functions that it declares, and does not define."""
    defined = {item.name for item in module.items if isinstance(item, Function) and item.body is not None}
    declared = {item.name for item in module.items if isinstance(item, Function)} - defined
    texts = dict.fromkeys(text for name, text in _TEXTS.items() if name in declared)
    return parse("\n".join([module.source, *texts])) if texts else module
