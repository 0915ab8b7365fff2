/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * trib-trace: what is in an application's trace, and what is wrong with it. Starts and simulates nothing.
 */
#include "base/options.h"
#include "system/atomic_output.h"
#include "trace/doctor.h"
#include "trace/formats/trace_load.h"

#include <errno.h>
#include <jansson.h>
#include <stdio.h>
#include <string.h>

struct trace_asked {
    const char *path, *groups, *json;
    bool check;
};

#define AT(f)   .offset = offsetof(struct trace_asked, f)
#define ROWS(a) (a), sizeof(a) / sizeof((a)[0])

static const struct option_row reading[] = {
    {.name = "groups",
     .arg = "FILE",
     AT(groups),
     .type = OPTION_TEXT,
     .shown = "the one beside the trace",
     .help = "groups of ranks that collectives are on"},
    {.name = "check",
     AT(check),
     .type = OPTION_FLAG,
     .help = "end with 1 where something is wrong"},
};
static const struct option_row output[] = {
    {.c = 'J',
     .name = "output_file",
     .also = "json",
     .arg = "FILE",
     AT(json),
     .type = OPTION_TEXT,
     .help = "write the results, by rank too, as JSON; -: to standard output, and the tables to "
             "standard error"},
};
static const struct option_row words[] = {
    {.arg = "FILE",
     AT(path),
     .type = OPTION_TEXT,
     .how = OPTION_REQUIRED,
     .help = "the trace, whose format is known by its contents: a file, gzip too, a folder, "
             "or a prefix of files, one a rank"},
};
static const struct option_group groups[] = {
    {"Reading", ROWS(reading)},
    {"Output", ROWS(output)},
    {NULL, NULL, 0},
};
static const struct option_note exits[] = {
    {"0", "fine; without --check also where something is wrong with the trace"},
    {"1", "the trace cannot be read, or --check and something is wrong; the reason is printed"},
    {"2", "the command line is wrong"},
    {NULL, NULL},
};
static const struct option_program program = {
    .name = "trib-trace",
    .summary = "say what is in an application's trace, and what is wrong with it",
    .synopsis = "[OPTION...] FILE",
    .text = "Reads the trace of an application (GOAL as text or binary, Chakra ET or JSON, htsim's "
            "connection matrices, text workloads of astra-sim and SimAI, Kineto, NCCL's log) and "
            "prints ranks, groups, operations and bytes by kind, and the critical path: the time "
            "that the trace takes when messages and collectives take none and every computation "
            "has a processor of its own.\n\n"
            "Then what is wrong, each with file and line: messages with one end, or with two "
            "sizes; operations that wait for themselves or that never start; dependencies, ranks "
            "and groups that do not exist; collectives that members lack or on which they "
            "disagree. What is repaired is counted by rule. The file is not changed.",
    .words = words,
    .n_words = 1,
    .groups = groups,
    .exits = exits,
    .see = "trib(1), trib-sim(1)",
};

static int write_json(const struct trace_asked *a, const struct doctor *d)
{
    json_t *json = a->json ? doctor_json(d) : NULL;
    int rc = !a->json ? 0 : json ? atomic_output_json(a->json, json, JSON_INDENT(1)) : -ENOMEM;

    json_decref(json);
    if (rc)
        fprintf(stderr, "trib-trace: cannot write %s: %s\n", a->json, strerror(-rc));
    return rc ? 1 : 0;
}

static int trace_tell(const struct trace_asked *a, struct app_graph *g)
{
    struct doctor d;
    int rc;

    doctor_look(&d, g, a->path);
    doctor_print(&d, stdout);
    rc = write_json(a, &d);
    doctor_free(&d);
    return rc ? rc : a->check && finding_total(&g->found);
}

int main(int argc, char **argv)
{
    struct trace_asked a = {.path = NULL};
    struct option_result r;
    struct app_graph g;
    char err[TRACE_ERR];
    int rc = 0;

    if (!options_begin(&program, (void *[]){&a}, argc, argv, &r, &rc))
        return rc;
    if (a.json && !(a.json = atomic_output_path(a.json))) {
        fprintf(stderr, "trib-trace: -J: cannot write to standard output: %s\n", strerror(errno));
        return 1;
    }
    app_graph_init(&g);
    rc = trace_load(&g, a.path, a.groups, err);
    if (rc)
        fprintf(stderr, "trib-trace: %s\n", err);
    rc = rc ? 1 : trace_tell(&a, &g);
    app_graph_free(&g);
    return atomic_output_end("trib-trace") && !rc ? 1 : rc;
}
