#include "simulated_fault.h"

#include <string.h>

#include "event_log.h"
#include "given.h"
#include "real.h"

enum { FINDING_BYTES = 2048 };

struct fault_table {
    size_t size;
    void (*copy_words)(char *text, size_t size);
};

void simulated_fault_words(char *text, size_t size)
{
    static const unsigned char NAME[16] = "tui-probe fault"; /* hook/simgpu/server/fault_words.c has the table */
    const struct fault_table *table = NULL;
    text[0] = '\0';
    CUresult result = REAL_OR_NOT_FOUND(cuGetExportTable, (const void **)&table, NAME);
    if (result == CUDA_SUCCESS && table && table->size >= sizeof *table)
        table->copy_words(text, size);
}

struct findings_table {
    size_t size;
    void (*take)(char *text, size_t size);
};

void simulated_findings_log(void)
{
    static const unsigned char NAME[16] = "tui-probe check"; /* hook/simgpu/server/findings.c has the table */
    const struct findings_table *table = NULL;
    const char *checked = given("TUI_PROBE_SIM_CHECK");
    if (!checked || strcmp(checked, "1") != 0)
        return;
    CUresult result = REAL_OR_NOT_FOUND(cuGetExportTable, (const void **)&table, NAME);
    if (result != CUDA_SUCCESS || !table || table->size < sizeof *table)
        return;
    char text[FINDING_BYTES];
    for (table->take(text, sizeof text); text[0]; table->take(text, sizeof text))
        event_log_summary("[sanitizer] %s\n", text);
}
