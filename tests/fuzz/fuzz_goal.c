/* SPDX-License-Identifier: BSD-3-Clause */
/* Arbitrary traces in GOAL, as text or binary, gzip or not. What is behind a byte of 1 are groups. */
#include "tests/fuzz/fuzz_trace.h"
#include "trace/formats/trace_readers.h"

#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    const uint8_t *one = size && data[0] == 'n' ? memchr(data, 1, size) : NULL;
    size_t n = one ? (size_t)(one - data) : size;
    struct app_graph g;
    char err[TRACE_ERR] = "";
    int rc;

    app_graph_init(&g);
    rc = trace_load_bytes(&g, "fuzz.goal", data, n, err);
    if (!rc && one) {
        struct trace_input in;

        trace_input_memory(&in, "fuzz.groups", one + 1, size - n - 1);
        rc = goal_groups_read(&g, &in);
        memcpy(err, in.err, sizeof(err));
        trace_input_close(&in);
    }
    fuzz_look(&g, rc, err);
    app_graph_free(&g);
    return 0;
}
