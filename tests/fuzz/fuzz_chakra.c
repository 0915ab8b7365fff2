/* SPDX-License-Identifier: BSD-3-Clause */
/* Arbitrary traces of Chakra and Kineto: protobuf, JSON (what begins with a brace), and groups in front of a byte of 1. */
#include "tests/fuzz/fuzz_trace.h"
#include "trace/formats/trace_readers.h"

#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    const uint8_t *one =
        size > 1 && data[0] == '{' && data[1] == '"' ? memchr(data, 1, size) : NULL;
    struct app_graph g;
    char err[TRACE_ERR] = "";
    int rc = 0;

    app_graph_init(&g);
    if (one) {
        struct trace_input in;

        trace_input_memory(&in, "comm_group.json", data, (size_t)(one - data));
        rc = chakra_groups_read(&g, &in);
        memcpy(err, in.err, sizeof(err));
        trace_input_close(&in);
        size -= (size_t)(one + 1 - data);
        data = one + 1;
    }
    if (!rc)
        rc =
            trace_load_bytes(&g, size && data[0] == '{' ? "fuzz.json" : "fuzz.et", data, size, err);
    fuzz_look(&g, rc, err);
    app_graph_free(&g);
    return 0;
}
