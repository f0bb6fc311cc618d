#!/bin/sh
# Compiles the sources beside this script to the PTX files and images one folder up. Needs nvcc 13.
set -eu
cd "$(dirname "$0")"
export SOURCE_DATE_EPOCH=0

# Paths become bare file names, so that the files do not tell where they were compiled.
compile() { # source arch output options...
    source=$1 arch=$2 output=$3
    shift 3
    nvcc -std=c++17 -ptx -arch="$arch" "$@" "$source" -o "../$output"
    sed -i -E '/^[[:space:]]*\.file/s|"[^"]*/|"|; /^\/\/ (Compiler Build ID|Cuda compilation)/d' "../$output"
}

for name in control calls variables warps bounds assembly tensor cooperative callees; do
    compile "$name.cu" sm_80 "$name.sm_80.ptx"
done
for name in control bounds cooperative; do
    compile "$name.cu" sm_90 "$name.sm_90.ptx"
done
compile hopper.cu sm_90a hopper.sm_90a.ptx
compile transactions.cu sm_90a transactions.sm_90a.ptx
compile waits.cu sm_90a waits.sm_90a.ptx
compile kv_pipeline.cu sm_90a kv_pipeline.sm_90a.ptx
compile numbers.cu sm_90 numbers.sm_90.ptx
compile calls.cu sm_90 calls.lineinfo.sm_90.ptx -lineinfo
compile separate.cu sm_80 separate.rdc.sm_80.ptx -rdc=true
compile callees.cu sm_80 callees.rdc.sm_80.ptx -rdc=true
compile callees.cu sm_80 callees.debug.sm_80.ptx -G
xz -9ef ../callees.debug.sm_80.ptx
compile ../../../gpu/programs/tiled_matmul.cu compute_80 tiled_matmul.sm_80.ptx

# With CUTLASS=DIR, the folder that holds cutlass/ and cute/.
for name in ${CUTLASS:+gemm stream_k convolution}; do
    compile "../../../gpu/programs/cutlass_$name.cu" compute_80 "cutlass_$name.sm_80.ptx" -w -I"$CUTLASS"
    xz -9ef "../cutlass_$name.sm_80.ptx"
done

# One image for each way of packing. The fatbins hold PTX for two architectures and machine code for one.
for mode in none speed balance size; do
    nvcc -fatbin --compress-mode="$mode" -gencode arch=compute_80,code=compute_80 \
        -gencode arch=compute_90,code=\[compute_90,sm_90\] image.cu -o "../image.$mode.fatbin"
done
nvcc -cubin -arch=sm_90 image.cu -o ../image.no_ptx.cubin
nvcc -c -arch=compute_80 image.cu -o ../image.host.o
strip --strip-debug ../image.host.o
