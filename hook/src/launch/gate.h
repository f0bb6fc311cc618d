/* The switch that launches of all kernels pass. */
#ifndef TUI_PROBE_GATE_H
#define TUI_PROBE_GATE_H

#include "reasons.h"

/* The reason why no launch may be probed now; NULL if it may. */
const struct reason *gate_closed(void);

#endif
