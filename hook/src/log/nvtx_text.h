/* Texts and domains of NVTX as the log wants them: UTF-8 on one line, owned by the caller. */
#ifndef TUI_PROBE_NVTX_TEXT_H
#define TUI_PROBE_NVTX_TEXT_H

#include <wchar.h>

#include "nvtx_abi.h"

struct nvtx_domain;

/* Copies, with control characters as blanks; NULL without memory. A missing text is "-". */
char *nvtx_text(const char *text);
char *nvtx_wide_text(const wchar_t *text);
char *nvtx_message(const struct nvtx_attributes *attributes);

/* The name without blanks; "-" for the default domain (NULL). */
const char *nvtx_domain_name(const struct nvtx_domain *domain);

/* Functions of NVTX itself; what they return lives as long as the process. */
const struct nvtx_domain *nvtx_create_domain(const char *name);
const struct nvtx_domain *nvtx_create_wide_domain(const wchar_t *name);
const char *nvtx_register_string(const struct nvtx_domain *domain, const char *text);
const char *nvtx_register_wide_string(const struct nvtx_domain *domain, const wchar_t *text);

#endif
