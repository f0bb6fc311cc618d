#!/usr/bin/env bash
# How the traces beside this were made: one of planted.py a probe, on a simulated GPU of four SMs.
set -euo pipefail
cd "$(dirname "$0")"
nvcc -ptx -arch=sm_80 -lineinfo planted.cu -o planted.ptx
for probe in block_sched dmat gmem_bytes gmem_sectors warp_progress; do
  TUI_PROBE_SIM_SMS=4 tui-probe run --sim --no-report --no-cache --tracedir recorded -p "$probe" -- python planted.py
done
