/* A library whose thread-local memory has a fixed place and is larger than the loader's reserve for such. */
__attribute__((tls_model("initial-exec"))) static _Thread_local char memory[8192];

char *large_memory(void)
{
    return memory;
}
