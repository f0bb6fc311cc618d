"""A program whose kernel follows pointers in memory of all kinds, and a variable and a constant of its module."""

import ctypes
from typing import Any

SOURCE = b"""
.version 7.0
.target sm_80
.address_size 64
.global .align 4 .u32 total = 5;
.const .align 4 .u32 step = 0;
.visible .entry other() { ret; }
.visible .entry chase(.param .u32 count, .param .u64 first)
{
.reg .b32 %r<6>;
.reg .b64 %rd<4>;
.reg .pred %p;
ld.param.u32 %r1, [count];
ld.param.u64 %rd1, [first];
ld.const.u32 %r5, [step];
NEXT:
ld.global.u32 %r2, [%rd1+8];
add.u32 %r3, %r2, %r5;
st.global.u32 [%rd1+8], %r3;
ld.global.u32 %r4, [total];
add.u32 %r4, %r4, %r2;
st.global.u32 [total], %r4;
ld.global.u64 %rd1, [%rd1];
sub.u32 %r1, %r1, 1;
setp.ne.u32 %p, %r1, 0;
@%p bra NEXT;
ret;
}
\0"""
PAGE = 2 << 20
U64, SIZE = ctypes.c_uint64, ctypes.c_size_t
cuda = ctypes.CDLL("libcuda.so.1")


def call(name: str, *arguments: object) -> None:
    result = getattr(cuda, name)(*arguments)
    assert result == 0, (name, result)


def out(name: str, *arguments: object, kind: Any = U64) -> Any:
    made = kind()
    call(name, ctypes.byref(made), *arguments)
    return made


def mapped() -> Any:
    properties, access = (ctypes.c_int * 8)(1, 0, 1, 0), (ctypes.c_int * 3)(1, 0, 3)
    address = out("cuMemAddressReserve", SIZE(PAGE), SIZE(0), U64(0), U64(0))
    handle = out("cuMemCreate", SIZE(PAGE), properties, U64(0))
    call("cuMemMap", address, SIZE(PAGE), SIZE(0), handle, U64(0))
    call("cuMemSetAccess", address, SIZE(PAGE), access, SIZE(1))
    return address


def function(name: bytes) -> Any:
    return out("cuModuleGetFunction", module, name, kind=ctypes.c_void_p)


call("cuInit", 0)
out("cuCtxCreate_v2", 0, 0, kind=ctypes.c_void_p)
module = out("cuModuleLoadData", SOURCE, kind=ctypes.c_void_p)
call("cuMemAlloc_v2", ctypes.byref(U64()), SIZE(1 << 20))  # which the kernel does not reach
nodes = [
    out("cuMemAlloc_v2", SIZE(48)),
    mapped(),
    out("cuMemAllocManaged", SIZE(32), 1),
    out("cuMemAllocHost_v2", SIZE(16)),
]
inside = nodes[0].value + 16  # of the first allocation
for node, following, value in zip(nodes, [inside, *nodes[2:], nodes[1]], (1, 10, 100, 1000), strict=True):
    call("cuMemsetD8_v2", node, 0, SIZE(16))
    call("cuMemcpyHtoD_v2", node, (U64 * 2)(getattr(following, "value", following), value), SIZE(16))
call("cuMemcpyHtoD_v2", U64(inside), (U64 * 4)(nodes[1].value, 7, 0, 0), SIZE(32))
place, size = U64(), SIZE()
call("cuModuleGetGlobal_v2", ctypes.byref(place), ctypes.byref(size), module, b"step")
call("cuMemcpyHtoD_v2", place, ctypes.byref(ctypes.c_uint32(3)), SIZE(4))
call("cuLaunchKernel", function(b"other"), 1, 1, 1, 1, 1, 1, 0, None, None, None)
count = ctypes.c_uint32(5)
values = (ctypes.c_void_p * 2)(ctypes.addressof(count), ctypes.addressof(nodes[0]))
for _ in range(2):
    call("cuLaunchKernel", function(b"chase"), 1, 1, 1, 1, 1, 1, 256, None, values, None)
call("cuCtxSynchronize")
