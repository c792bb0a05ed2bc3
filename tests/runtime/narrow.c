/* narrow IN OUT IN_BYTES OUT_BYTES: one call of library net's kernel on a file's elements. */
#include "net.h"

#include <stdio.h>
#include <stdlib.h>

static int transfer(const char *path, const char *mode, void *data, size_t bytes) {
    FILE *file = fopen(path, mode);
    if (file == NULL)
        return 1;
    size_t done = mode[0] == 'r' ? fread(data, 1, bytes, file) : fwrite(data, 1, bytes, file);
    return fclose(file) != 0 || done != bytes;
}

int main(int argc, char **argv) {
    if (argc != 5)
        return 2;
    size_t in_bytes = strtoul(argv[3], NULL, 10), out_bytes = strtoul(argv[4], NULL, 10);
    net_tensor in[NET_INPUTS] = {{.data = malloc(in_bytes), .shape = {5, 19}}};
    net_tensor out[NET_OUTPUTS] = {{.data = malloc(out_bytes)}};
    size_t context_bytes;
    if (net_plan(in, out, 1, &context_bytes) != NET_OK)
        return 5;
    void *context = malloc(context_bytes);
    if (transfer(argv[1], "rb", in[0].data, in_bytes) || net_init() != NET_OK)
        return 3;
    if (net_run(context, in, out, 1) != NET_OK)
        return 4;
    return transfer(argv[2], "wb", out[0].data, out_bytes);
}
