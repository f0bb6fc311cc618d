// Counts of eight words in a text: loads at odd byte addresses, early exits, a texture object for the text.
#include <cstdio>
#include <cstring>
#include <vector>

__constant__ char words[8][8];

__global__ void search(cudaTextureObject_t text, int n, unsigned *counts)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    for (int word = 0; word < 8; word++) {
        int length = 0;
        while (words[word][length] && i + length < n && tex1Dfetch<char>(text, i + length) == words[word][length])
            length++;
        if (!words[word][length])
            atomicAdd(&counts[word], 1);
    }
}

int main()
{
    const int n = 1 << 20;
    const char list[8][8] = {"the", "a", "warp", "memory", "lane", "of", "block", "zebra"};
    const char *sentence = "a block of the grid has a warp of the memory and a lane of the block ";
    std::vector<char> host(n);
    for (int i = 0; i < n; i++)
        host[i] = sentence[i % strlen(sentence)];
    char *text;
    unsigned *counts, found[8];
    cudaMalloc(&text, n);
    cudaMalloc(&counts, sizeof found);
    cudaMemcpy(text, host.data(), n, cudaMemcpyHostToDevice);
    cudaMemset(counts, 0, sizeof found);
    cudaMemcpyToSymbol(words, list, sizeof list);
    cudaResourceDesc resource = {};
    resource.resType = cudaResourceTypeLinear;
    resource.res.linear = {text, cudaCreateChannelDesc<char>(), size_t(n)};
    cudaTextureDesc description = {};
    cudaTextureObject_t texture;
    cudaCreateTextureObject(&texture, &resource, &description, nullptr);
    search<<<n / 256, 256>>>(texture, n, counts);
    cudaMemcpy(found, counts, sizeof found, cudaMemcpyDeviceToHost);
    for (unsigned count : found)
        printf("%u ", count);
    printf("%s\n", cudaGetErrorString(cudaGetLastError()));
}
