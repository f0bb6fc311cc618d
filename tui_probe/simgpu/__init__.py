"""A simulated GPU: the half that reads and executes PTX. The other half is a driver in C, ``hook/simgpu``.

The driver reads these variables of the environment; all may be unset:

    TUI_PROBE_SIM_PYTHON       the Python that runs this half; "python3"
    TUI_PROBE_SIM_PYTHONPATH   put before PYTHONPATH for it
    TUI_PROBE_SIM_MEMORY       bytes of device memory, also as 512M or 8G; 4G
    TUI_PROBE_SIM_SMS          number of SMs; 8
    TUI_PROBE_SIM_ARCH         the GPU that is simulated, sm_80 or sm_90; sm_80
    TUI_PROBE_SIM_LOG          a file that receives what the driver prints to stderr
"""
