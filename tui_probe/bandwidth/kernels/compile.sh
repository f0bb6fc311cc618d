#!/bin/sh
# Compiles bandwidth.cu to the PTX beside it. Needs nvcc, from PATH or from NVCC.
set -eu
cd "$(dirname "$0")"
# The oldest PTX version that has all that is used: more drivers take it.
"${NVCC:-nvcc}" -ptx -arch=sm_80 -O3 bandwidth.cu -o - | sed -e 's|^\.version .*|.version 7.2|' >bandwidth.ptx
