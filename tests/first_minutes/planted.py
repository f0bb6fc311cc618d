"""Launches kernels with one fault each, or those named; ``trap``, the last one, ends the context."""

import ctypes
import sys
import time

LOADS = "\n".join(f"ld.shared.u32 %v, [%a+{4 * number}]; add.u32 %sum, %sum, %v;" for number in range(16))
HEAD = """
.reg .b64 %p, %a, %o; .reg .b32 %i, %b, %v, %sum; .reg .f32 %f; .reg .pred %last;
ld.param.u64 %p, [p]; mov.u32 %b, %ctaid.x; mov.u32 %v, %ntid.x; mov.u32 %i, %tid.x; mad.lo.u32 %i, %b, %v, %i;
"""
PTX = f"""
.version 8.0
.target sm_80
.address_size 64
.file 1 "/home/ada/planted.cu"
.visible .entry strided(.param .u64 p)
{{
{HEAD}
.loc 1 8 5
mul.wide.u32 %a, %i, 128; add.u64 %a, %p, %a; st.global.u32 [%a], %i;
ret;
}}
.visible .entry conflicts(.param .u64 p)
{{
.shared .align 4 .b8 tile[4352];
{HEAD}
.loc 1 17 5
mov.u32 %i, %tid.x; mov.u32 %a_, tile; mad.lo.u32 %s, %i, 128, %a_; mov.u32 %sum, 0; st.shared.u32 [%s], %i;
.loc 1 18 5
{LOADS.replace("%a+", "%s+")}
.loc 1 19 5
mul.wide.u32 %o, %i, 4; add.u64 %o, %p, %o; st.global.u32 [%o], %sum;
ret;
}}
.visible .entry past(.param .u64 p)
{{
{HEAD}
.loc 1 27 5
mul.wide.u32 %a, %i, 4; add.u64 %a, %p, %a; st.global.u32 [%a+4194300], %i;
ret;
}}
.visible .entry nan(.param .u64 p)
{{
{HEAD}
.loc 1 34 5
cvt.rn.f32.u32 %f, %i; sub.f32 %f, %f, %f; div.rn.f32 %f, %f, %f;
.loc 1 35 5
mul.wide.u32 %a, %i, 4; add.u64 %a, %p, %a; st.global.f32 [%a], %f;
ret;
}}
.visible .entry trap(.param .u64 p)
{{
.loc 1 44 5
trap;
ret;
}}
""".replace(".reg .b32 %i, %b, %v, %sum;", ".reg .b32 %i, %b, %v, %sum, %s, %a_;")
KERNELS = {"strided": (128, 64), "conflicts": (128, 32), "past": (32, 32), "nan": (4, 64), "trap": (1, 32)}
"""Blocks and threads per block of each."""
cuda = ctypes.CDLL("libcuda.so.1")
Pointer = ctypes.c_void_p
context, module, memory = Pointer(), Pointer(), ctypes.c_uint64()
cuda.cuInit(0)
cuda.cuCtxCreate_v2(ctypes.byref(context), 0, 0)
assert cuda.cuModuleLoadData(ctypes.byref(module), PTX.encode()) == 0
cuda.cuMemAlloc_v2(ctypes.byref(memory), ctypes.c_size_t(4 << 20))
for name in sys.argv[1:] or KERNELS:
    blocks, threads = KERNELS[name]
    if name == "trap":
        time.sleep(0.5)  # a context that fails takes the results of its last milliseconds with it
    function = Pointer()
    cuda.cuModuleGetFunction(ctypes.byref(function), module, name.encode())
    arguments = (Pointer * 1)(ctypes.addressof(memory))
    cuda.cuLaunchKernel(function, blocks, 1, 1, threads, 1, 1, 0, None, arguments, None)
    cuda.cuCtxSynchronize()
