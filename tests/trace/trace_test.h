/* SPDX-License-Identifier: BSD-3-Clause */
/* What tests of traces share: a trace from text or bytes, and what is said of it. */
#ifndef TESTS_TRACE_TRACE_TEST_H
#define TESTS_TRACE_TRACE_TEST_H

#include "trace/doctor.h"
#include "trace/formats/trace_load.h"
#include "trace/formats/trace_readers.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <string.h>

struct looked {
    struct app_graph g;
    struct doctor d;
    char err[TRACE_ERR];
    int rc;
};

/* Groups first, as they are a file of their own; NULL: none. */
static inline void look_bytes(struct looked *l, const char *name, const void *bytes, size_t n,
                              const char *groups)
{
    struct trace_input in;

    memset(l, 0, sizeof(*l));
    app_graph_init(&l->g);
    if (groups) {
        trace_input_memory(&in, "x.groups", groups, strlen(groups));
        l->rc = goal_groups_read(&l->g, &in);
        snprintf(l->err, sizeof(l->err), "%s", in.err);
        trace_input_close(&in);
    }
    if (!l->rc)
        l->rc = trace_load_bytes(&l->g, name, bytes, n, l->err);
    if (!l->rc)
        doctor_look(&l->d, &l->g, name);
}

static inline void look_end(struct looked *l)
{
    if (!l->rc)
        doctor_free(&l->d);
    app_graph_free(&l->g);
}

/* The first text that says what is wrong with a trace: why it cannot be read, or a finding; "". */
static inline const char *look_says(const struct looked *l, int kind)
{
    if (l->rc)
        return l->err;
    for (unsigned k = 0; k < FINDING_KINDS; k++)
        if (finding_kept(&l->g.found, k) && (kind < 0 || (unsigned)kind == k))
            return l->g.found.text[k][0];
    return "";
}

#endif
