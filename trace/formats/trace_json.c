/* SPDX-License-Identifier: BSD-3-Clause */
#include "trace/formats/trace_json.h"

#include <errno.h>
#include <jansson.h>
#include <stdlib.h>
#include <string.h>

static const struct {
    const char *key;
    int (*read)(struct app_graph *g, struct trace_input *in, const struct json_t *top,
                uint32_t rank);
} kinds[] = {
    {"workload_graph", chakra_json_read},
    {"traceEvents", kineto_read},
};
#define KINDS (sizeof(kinds) / sizeof(kinds[0]))

static int kind_read(struct app_graph *g, struct trace_input *in, const json_t *top, uint32_t rank)
{
    for (size_t i = 0; i < KINDS; i++)
        if (json_object_get(top, kinds[i].key))
            return kinds[i].read(g, in, top, rank);
    trace_refuse_at(in, "", "found JSON without %s and %s, expected a trace", kinds[0].key,
                    kinds[1].key);
    return -ENOMSG;
}

int trace_json_read(struct app_graph *g, struct trace_input *in, uint32_t rank)
{
    size_t n;
    char *text = trace_input_rest(in, TRACE_JSON_MOST, &n);
    json_error_t e;
    json_t *top;
    int rc;

    if (!text)
        return -EINVAL;
    top = json_loadb(text, n, 0, &e);
    free(text);
    if (!top) {
        in->line = e.line < 1 ? 1 : (uint32_t)e.line;
        return trace_refuse_at(in, "", "line %u: found %s, expected JSON", in->line, e.text);
    }
    rc = kind_read(g, in, top, rank);
    json_decref(top);
    return rc;
}
