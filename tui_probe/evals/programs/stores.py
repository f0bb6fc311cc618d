"""Kernels whose number of stored sectors is known: stores.py [NAME].

``integers``, the default, stores 8192 integers twice, next to each other and with a gap after each; it needs the CUDA
driver only. ``llama_fp32`` and ``llama_bf16`` are the attention of a Llama layer with its projections, by PyTorch: 128
tokens of 4096 numbers, 32 heads. Their measured calls lie between cudaProfilerStart and cudaProfilerStop.
"""

from __future__ import annotations

import struct
import sys

from gpu import DriverError, Gpu

THREADS, BLOCK = 8192, 256
KERNEL = """
.visible .entry {name}(.param .u64 output)
{{
    .reg .b32 %r<5>;
    .reg .b64 %rd<4>;
    ld.param.u64 %rd1, [output];
    mov.u32 %r1, %ctaid.x;
    mov.u32 %r2, %ntid.x;
    mov.u32 %r3, %tid.x;
    mad.lo.u32 %r4, %r1, %r2, %r3;
    mul.wide.u32 %rd2, %r4, {stride};
    add.u64 %rd3, %rd1, %rd2;
    st.global.u32 [%rd3], %r4;
    ret;
}}
"""
STRIDES = {"coalesced_store": 4, "strided_store": 8}
"""Bytes from a thread's integer to the next one's."""
PTX = ".version 7.2\n.target sm_80\n.address_size 64\n" + "".join(
    KERNEL.format(name=name, stride=stride) for name, stride in STRIDES.items()
)
TOKENS, WIDTH, HEADS = 128, 4096, 32
WARM_UP, RUNS = 3, 2
LLAMA_TYPES = {"llama_fp32": "float32", "llama_bf16": "bfloat16"}
"""Data types of PyTorch, by the names of the programs."""


def main() -> int:
    name = sys.argv[1] if len(sys.argv) == 2 else "integers"
    if len(sys.argv) > 2 or name not in ("integers", *LLAMA_TYPES):
        print(f"usage: stores.py [integers|{'|'.join(LLAMA_TYPES)}]", file=sys.stderr)
        return 2
    return store_integers() if name == "integers" else run_llama_attention(name)


def store_integers() -> int:
    """Store integers by two kernels, and return 0 if all of them are right."""
    try:
        gpu = Gpu()
        results = [has_stored(gpu, name, stride) for name, stride in STRIDES.items()]
    except DriverError as error:
        sys.stderr.write(f"{error}\n")
        return 1
    is_right = all(results)
    print(f"stores: {'right' if is_right else 'WRONG'}")
    return 0 if is_right else 1


def has_stored(gpu: Gpu, name: str, stride: int) -> bool:
    """Launch a kernel, and return True if each thread has stored its number."""
    output = gpu.allocate(THREADS * stride)
    gpu.launch(gpu.function(PTX, name), THREADS // BLOCK, BLOCK, output)
    gpu.synchronize()
    values = struct.unpack(f"<{THREADS * stride // 4}I", gpu.read_memory(output, THREADS * stride))
    return values[:: stride // 4] == tuple(range(THREADS))


def run_llama_attention(name: str) -> int:
    """Compute attention with its projections, and return 0 if the result is finite."""
    import torch  # the other program needs the driver only
    from torch.nn.functional import linear, scaled_dot_product_attention

    torch.manual_seed(0)
    dtype = getattr(torch, LLAMA_TYPES[name])
    x = torch.randn(1, TOKENS, WIDTH).to("cuda", dtype)
    weights = [(torch.randn(WIDTH, WIDTH) * WIDTH**-0.5).to("cuda", dtype) for _ in range(4)]
    for call in range(WARM_UP + RUNS):
        if call == WARM_UP:
            torch.cuda.synchronize()
            torch.cuda.profiler.start()
        query, key, value = (linear(x, weight).unflatten(-1, (HEADS, -1)).transpose(1, 2) for weight in weights[:3])
        attention = scaled_dot_product_attention(query, key, value, is_causal=True)
        result = linear(attention.transpose(1, 2).flatten(2), weights[3])
    torch.cuda.synchronize()
    torch.cuda.profiler.stop()
    is_finite = bool(torch.isfinite(result.cpu()).all())
    print(f"{name}: {'finite' if is_finite else 'NOT FINITE'}")
    return 0 if is_finite else 1


if __name__ == "__main__":
    sys.exit(main())
