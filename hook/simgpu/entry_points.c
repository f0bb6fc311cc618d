/* This file takes the addresses of the functions alone, so it includes no declaration of them. */

#include "entry_points.h"

#define ENTRY(name, version, symbol, thread_symbol) extern entry_function symbol, thread_symbol;
#include "entry_points.def"
#undef ENTRY

const struct entry_point entry_points[] = {
#define ENTRY(name, version, symbol, thread_symbol) {#name, version, symbol, thread_symbol},
#include "entry_points.def"
#undef ENTRY
};

const size_t entry_point_count = sizeof entry_points / sizeof *entry_points;
