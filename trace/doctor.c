/* SPDX-License-Identifier: BSD-3-Clause */
#include "trace/doctor.h"

#include "base/shortage/enough.h"
#include "base/table.h"

#include <inttypes.h>
#include <stdlib.h>

#define PLACE 256

void doctor_look(struct doctor *d, struct app_graph *g, const char *path)
{
    struct app_colls colls;

    *d = (struct doctor){.g = g, .path = path};
    for (uint32_t r = 0; r < g->n_ranks && !g->partial; r++)
        if (!g->rank[r].there)
            finding_note(&g->found, FINDING_NO_RANK, "%s: found no rank %u, expected all of %u",
                         path, r, g->n_ranks);
    d->rank = enough_memory(g->n_ranks + 1u, sizeof(*d->rank));
    for (uint32_t r = 0; r < g->n_ranks; r++) {
        app_sums_of(g, r, &d->rank[r]);
        if (d->rank[r].busy_ns > d->all.busy_ns)
            d->busy_rank = r;
        app_sums_join(&d->all, &d->rank[r]);
    }
    app_colls_build(&colls, g);
    app_path_find(&d->way, g, &colls);
    d->colls = colls.n;
    app_colls_free(&colls);
}

void doctor_free(struct doctor *d)
{
    free(d->rank);
}

/* "1.5 ms"; exact below a microsecond. */
static const char *ns_text(uint64_t ns, char *text, size_t size)
{
    static const char *const units[] = {"ns", "us", "ms", "s"};
    double v = (double)ns;
    unsigned u = 0;

    for (; v >= 1000 && u < 3; u++)
        v /= 1000;
    snprintf(text, size, "%.*f %s", u ? 3 : 0, v, units[u]);
    return text;
}

static void print_row(struct table *t, const char *name, uint64_t n, uint64_t bytes, uint64_t ns)
{
    char time[32];

    table_cell(t, "%s", name);
    table_cell(t, "%" PRIu64, n);
    table_cell(t, "%" PRIu64, bytes);
    table_cell(t, "%s", ns ? ns_text(ns, time, sizeof(time)) : "");
}

static void print_kinds(const struct doctor *d, FILE *out)
{
    static const char *const heads[] = {"operation", "number", "bytes", "time", NULL};
    struct table *t = table_new(heads);

    for (unsigned k = 0; k < APP_KINDS; k++)
        if (d->all.n[k] && k != APP_COLL)
            print_row(t, app_kind_name(k), d->all.n[k], d->all.bytes[k], d->all.ns[k]);
    for (unsigned k = 0; k < APP_COLLS; k++)
        if (d->all.coll_n[k])
            print_row(t, app_coll_name(k), d->all.coll_n[k], d->all.coll_bytes[k], 0);
    table_print(t, out);
}

static void print_path(const struct doctor *d, FILE *out)
{
    char place[PLACE], time[32];

    if (d->g->span_ns)
        fprintf(out, "Span of the longest rank: %s\n", ns_text(d->g->span_ns, time, sizeof(time)));
    if (!d->way.ended)
        return;
    fprintf(
        out, "Critical path without a network: %s, %" PRIu64 " operations, to rank %u (%s)\n",
        ns_text(d->way.ns, time, sizeof(time)), d->way.ops, d->way.rank,
        app_graph_place(d->g, d->way.rank, &d->g->rank[d->way.rank].op[d->way.op], place, PLACE));
    if (d->all.busy_ns)
        fprintf(out, "Busiest stream: rank %u, stream %u computes for %s\n", d->busy_rank,
                d->all.busy_stream, ns_text(d->all.busy_ns, time, sizeof(time)));
}

static void print_repaired(const struct app_graph *g, FILE *out)
{
    for (unsigned r = 0; r < REPAIRS; r++)
        if (g->repaired[r])
            fprintf(out, "Repaired %s: %" PRIu64 " %s\n", repair_name(r), g->repaired[r],
                    repair_means(r));
}

static void print_found(const struct findings *f, FILE *out)
{
    if (!finding_total(f)) {
        fprintf(out, "Nothing is wrong\n");
        return;
    }
    for (unsigned k = 0; k < FINDING_KINDS; k++) {
        unsigned kept = finding_kept(f, k);

        if (!f->n[k])
            continue;
        fprintf(out, "Wrong: %" PRIu64 " %s\n", f->n[k], finding_means(k));
        for (unsigned i = 0; i < kept; i++)
            fprintf(out, "  %s\n", f->text[k][i]);
        if (f->n[k] > kept)
            fprintf(out, "  and %" PRIu64 " more\n", f->n[k] - kept);
    }
}

void doctor_print(const struct doctor *d, FILE *out)
{
    const struct app_graph *g = d->g;

    fprintf(out, "Trace %s: %s, %u ranks, %u groups\n", d->path, g->format, g->n_ranks,
            g->n_groups);
    fprintf(out,
            "%" PRIu64 " operations, %" PRIu64 " dependencies (%" PRIu64 " on a start), %u "
            "collectives\n",
            g->n_ops, d->all.deps + d->all.start_deps, d->all.start_deps, d->colls);
    if (g->alike > 1)
        fprintf(out, "Rank 0 stands for all of %u, which do the same\n", g->alike);
    if (d->all.marks)
        fprintf(out, "%" PRIu64 " sends of 0 bytes to no rank: marks of collectives\n",
                d->all.marks);
    print_kinds(d, out);
    print_path(d, out);
    print_repaired(g, out);
    print_found(&g->found, out);
}
