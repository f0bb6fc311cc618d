/* Whether launches may be probed now, whatever their kernel. */
#ifndef TUI_PROBE_GATE_H
#define TUI_PROBE_GATE_H

#include "reasons.h"

/* Why no launch may be probed now; NULL if it may. */
const struct reason *gate_closed(void);

#endif
