/* The entry of the wrappers of all functions that launch. */
#ifndef TUI_PROBE_LAUNCH_INTERCEPT_H
#define TUI_PROBE_LAUNCH_INTERCEPT_H

#include "launch.h"

/* Launches what the program asked for, probed if it is its turn. */
CUresult launch_intercept(struct launch *launch);

#endif
