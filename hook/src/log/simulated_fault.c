#include "simulated_fault.h"

#include "real.h"

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
