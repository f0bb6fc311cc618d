"""Launches as before CUDA 4: a shape and parameters are set on the function, then cuLaunchGrid. Writes what it gave."""

import ctypes
import sys

SOURCE = b"""
.version 7.0
.target sm_80
.address_size 64
.visible .entry add(.param .u64 where, .param .u32 what)
{
.reg .b32 %r<6>;
.reg .b64 %rd<4>;
ld.param.u64 %rd1, [where];
ld.param.u32 %r1, [what];
mov.u32 %r2, %ctaid.x;
mov.u32 %r3, %ntid.x;
mov.u32 %r4, %tid.x;
mad.lo.u32 %r2, %r2, %r3, %r4;
mul.wide.u32 %rd2, %r2, 4;
add.s64 %rd3, %rd1, %rd2;
ld.global.u32 %r5, [%rd3];
add.u32 %r5, %r5, %r1;
st.global.u32 [%rd3], %r5;
ret;
}
\0"""
COUNT = 96

cuda = ctypes.CDLL("libcuda.so.1")


def call(name, *arguments):
    result = getattr(cuda, name)(*arguments)
    assert result == 0, (name, result)


context, module, function = ctypes.c_void_p(), ctypes.c_void_p(), ctypes.c_void_p()
call("cuInit", 0)
call("cuCtxCreate_v2", ctypes.byref(context), 0, 0)
call("cuModuleLoadData", ctypes.byref(module), SOURCE)
call("cuModuleGetFunction", ctypes.byref(function), module, b"add")
address = ctypes.c_uint64()
call("cuMemAlloc_v2", ctypes.byref(address), ctypes.c_size_t(4 * COUNT))
call("cuMemsetD32_v2", address, 7, ctypes.c_size_t(COUNT))
assert cuda.cuLaunchGrid(function, 1, 1) != 0  # no shape was set
call("cuFuncSetBlockShape", function, 32, 1, 1)
call("cuFuncSetSharedSize", function, 0)
call("cuParamSetSize", function, 12)
call("cuParamSetv", function, 0, ctypes.byref(address), 8)
for what in (1, 10, 100):
    call("cuParamSeti", function, 8, what)
    call("cuLaunchGrid", function, 3, 1)
call("cuLaunchGridAsync", function, 2, 1, None)
call("cuLaunch", function)
call("cuCtxSynchronize")
values = (ctypes.c_uint32 * COUNT)()
call("cuMemcpyDtoH_v2", values, address, ctypes.c_size_t(4 * COUNT))
sys.stdout.write(f"{values[0]} {values[32]} {values[64]}\n")
