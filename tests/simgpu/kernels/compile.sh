#!/bin/sh
# Compiles the kernels of this folder to the PTX beside them. Needs nvcc, from PATH or from NVCC.
set -eu
cd "$(dirname "$0")"
for source in *.cu; do
    case "$source" in
    clusters.cu) arch=sm_90 ;;
    *) arch=sm_80 ;;
    esac
    "${NVCC:-nvcc}" -ptx -arch="$arch" -O3 "$source" -o "${source%.cu}.ptx"
done
