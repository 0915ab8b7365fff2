/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * trib-model: selects the formulas for a command line, and prints results.
 *
 *   theory_algos.c  collectives and their algorithms, as names of trib-perf with formulas of cost.h
 *   theory_text.c   tables and JSON
 *   trib_model.c    options
 */
#ifndef TRIB_FABRIC_THEORY_THEORY_H
#define TRIB_FABRIC_THEORY_THEORY_H

#include "fabric/theory/bom.h"
#include "fabric/theory/roofline.h"

#include <stdio.h>

struct json_t;
struct cost_links;

/* One algorithm of a collective at one size. */
struct model_row {
    const char *collective, *algo;
    uint64_t bytes; /* as in trib-perf: for alltoall the bytes that one rank sends; else the whole
                       vector */
    unsigned steps; /* sequential messages */
    struct cost cost;
    double wire_s;       /* of an all-to-all, ring or flat SHARP with headers, acknowledgements and
                            latency; otherwise 0 */
    double algbw, busbw; /* bytes per second, as nccl-tests define them */
};

struct model_ask {
    struct cost_axis axis;          /* the members */
    unsigned sparse;                /* alltoall: k, 0: dense */
    const struct cost_links *links; /* of the axis; NULL: only levels are known */
};

#define MODEL_MAX_ROWS 16
/* Name of collective i; NULL after the last one. */
const char *model_collective(unsigned i);
/* Computes all algorithms that the collective has on these levels; returns their number. */
unsigned model_rows(const struct cost_levels *l, const char *collective,
                    const struct model_ask *ask, uint64_t bytes, struct model_row *rows);
/* Index of a level that the axis fills only in part, so that there is no closed form; -1: none. */
int model_uneven(const struct cost_levels *l, struct cost_axis a);

/* Each prints tables to out, and adds results to the JSON object, which may be NULL. */
void model_print_levels(const struct fabric *f, const struct cost_levels *l, FILE *out,
                        struct json_t *json);
void model_print_rows(const struct cost_levels *l, const struct model_row *rows, unsigned n,
                      FILE *out, struct json_t *json);
/* Bytes that cross switches in an all-reduce within a GPU node and in an all-gather over all (F26,
 * F27, F33). Prints nothing without GPU nodes, or if the members are only a part of one. */
void model_print_bytes(const struct cost_levels *l, struct cost_axis a, uint64_t bytes, FILE *out,
                       struct json_t *json);
void model_print_workload(const struct workload *w, const struct cost_levels *l, FILE *out,
                          struct json_t *json);
void model_print_bom(const struct bom *b, const struct gpu_device *d, FILE *out,
                     struct json_t *json);

#endif
