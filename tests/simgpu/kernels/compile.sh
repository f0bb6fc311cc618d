#!/bin/sh
# Compiles the kernels of this folder to the PTX beside them. Needs nvcc, from PATH or from NVCC.
set -eu
cd "$(dirname "$0")"
for source in *.cu; do
    "${NVCC:-nvcc}" -ptx -arch=sm_80 -O3 "$source" -o "${source%.cu}.ptx"
done
