"""Stores a column of a matrix per thread: ``faulty.py STRIDE``, in elements; 1 is right. For the simulated GPU."""

import ctypes
import sys

PTX = b"""
.version 8.0
.target sm_80
.address_size 64
.file 1 "fill.cu"
.visible .entry fill(.param .u64 p, .param .u32 stride)
{
.reg .b64 %p, %a; .reg .b32 %i, %block, %size, %stride;
.loc 1 3 5
ld.param.u64 %p, [p]; ld.param.u32 %stride, [stride];
mov.u32 %block, %ctaid.x; mov.u32 %size, %ntid.x; mov.u32 %i, %tid.x; mad.lo.u32 %i, %block, %size, %i;
.loc 1 4 5
mul.lo.u32 %stride, %stride, 4; mul.wide.u32 %a, %i, %stride; add.u64 %a, %p, %a; st.global.u32 [%a], %i;
ret;
}
"""
cuda = ctypes.CDLL("libcuda.so.1")
context, module, function, memory = (ctypes.c_void_p() for _ in range(4))
cuda.cuInit(0)
cuda.cuCtxCreate_v2(ctypes.byref(context), 0, 0)
cuda.cuModuleLoadData(ctypes.byref(module), PTX)
cuda.cuModuleGetFunction(ctypes.byref(function), module, b"fill")
cuda.cuMemAlloc_v2(ctypes.byref(memory), ctypes.c_size_t(1 << 20))
stride = ctypes.c_uint(int(sys.argv[1]))
arguments = (ctypes.c_void_p * 2)(ctypes.addressof(memory), ctypes.addressof(stride))
sys.exit(cuda.cuLaunchKernel(function, 16, 1, 1, 64, 1, 1, 0, None, arguments, None) or cuda.cuCtxSynchronize())
