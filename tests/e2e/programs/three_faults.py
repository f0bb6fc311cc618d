"""Launches three kernels once each: strided stores, 32-way bank conflicts in unrolled loads, and a grid of 4 blocks."""

import ctypes
import sys

LOADS = "\n".join(f"ld.shared.u32 %v, [%a+{4 * number}];\nadd.u32 %sum, %sum, %v;" for number in range(16))
PTX = f"""
.version 8.0
.target sm_80
.address_size 64
.file 1 "/home/ada/faults.cu"
.visible .entry strided(.param .u64 p)
{{
.reg .b64 %p, %a;
.reg .b32 %i, %block, %size;
.loc 1 7 5
ld.param.u64 %p, [p];
mov.u32 %block, %ctaid.x;
mov.u32 %size, %ntid.x;
mov.u32 %i, %tid.x;
mad.lo.u32 %i, %block, %size, %i;
mul.wide.u32 %a, %i, 128;
add.u64 %a, %p, %a;
.loc 1 8 5
st.global.u32 [%a], %i;
ret;
}}
.visible .entry conflicts(.param .u64 p)
{{
.reg .b64 %p, %o;
.reg .b32 %a, %v, %sum, %lane;
.shared .align 4 .b8 tile[4352];
.loc 1 17 5
ld.param.u64 %p, [p];
mov.u32 %lane, %tid.x;
mov.u32 %a, tile;
mad.lo.u32 %a, %lane, 128, %a;
mov.u32 %sum, 0;
.loc 1 18 5
{LOADS}
.loc 1 19 5
mul.wide.u32 %o, %lane, 4;
add.u64 %o, %p, %o;
st.global.u32 [%o], %sum;
ret;
}}
.visible .entry four_blocks(.param .u64 p) {{ ret; }}
"""
KERNELS = {"strided": (128, 64), "conflicts": (128, 32), "four_blocks": (4, 128)}
"""Blocks and threads per block of each."""
cuda = ctypes.CDLL("libcuda.so.1")
Pointer = ctypes.c_void_p
context, module, memory = Pointer(), Pointer(), ctypes.c_uint64()
cuda.cuInit(0)
cuda.cuCtxCreate_v2(ctypes.byref(context), 0, 0)
cuda.cuModuleLoadData(ctypes.byref(module), PTX.encode())
cuda.cuMemAlloc_v2(ctypes.byref(memory), ctypes.c_size_t(1 << 20))
for name, (blocks, threads) in KERNELS.items():
    function = Pointer()
    cuda.cuModuleGetFunction(ctypes.byref(function), module, name.encode())
    parameters = (Pointer * 1)(ctypes.addressof(memory))
    answer = cuda.cuLaunchKernel(function, blocks, 1, 1, threads, 1, 1, 0, None, parameters, None)
    sys.stdout.write(f"{name} {answer} {cuda.cuCtxSynchronize()}\n")
