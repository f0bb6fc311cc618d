"""Record of the probe per warp."""

from __future__ import annotations

import numpy as np

RECORD = np.dtype({"names": ["stored", "threads"], "formats": ["<u8", "<u4"], "offsets": [0, 8], "itemsize": 16})
