/* SPDX-License-Identifier: BSD-3-Clause */
/* What is in a trace and what is wrong with it, as text and as JSON. */
#ifndef TRIB_TRACE_DOCTOR_H
#define TRIB_TRACE_DOCTOR_H

#include "trace/app_graph.h"
#include "trace/app_path.h"
#include "trace/app_sums.h"

#include <stdio.h>

struct json_t;

struct doctor {
    struct app_graph *g;
    const char *path;
    struct app_sums all, *rank; /* of each rank */
    uint32_t busy_rank, colls;
    struct app_path way;
};

/* Looks at a graph that has been read. doctor_free() leaves the graph. */
void doctor_look(struct doctor *d, struct app_graph *g, const char *path);
void doctor_free(struct doctor *d);

void doctor_print(const struct doctor *d, FILE *out);
/* The caller's; NULL: no memory. */
struct json_t *doctor_json(const struct doctor *d);

#endif
