#!/bin/sh
# Compiles the kernels of this folder to the PTX beside them. Needs nvcc, from PATH or from NVCC.
set -eu
cd "$(dirname "$0")"
for source in *.cu; do
    # Names of files without their folders, and the oldest PTX version that has all that is used: more drivers take it.
    "${NVCC:-nvcc}" -ptx -arch=sm_80 -O3 -lineinfo "$source" -o - |
        sed -e 's|\(\.file.*"\).*/|\1|' -e 's|^\.version .*|.version 7.2|' >"${source%.cu}.ptx"
done
