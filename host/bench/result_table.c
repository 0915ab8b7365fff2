/* SPDX-License-Identifier: BSD-3-Clause */
#include "host/bench/result_table.h"

#include "base/version.h"

#include <inttypes.h>

#define MANY 256 /* ranks */

static const char *fab_name(const struct fabric *fab, const uint16_t *host_of_rank, unsigned rank)
{
    return fab->nodes[fab->hosts[host_of_rank[rank]]].name;
}

void table_header(FILE *out, const char *program, const struct perf_opts *o,
                  const struct fabric *fab, unsigned nranks, const uint16_t *host_of_rank)
{
    fprintf(out, "# %s %s %s on %s (%u hosts, %u ranks, MTU %u), times in fabric time\n", program,
            TRIB_VERSION, coll_name(o->coll), fab->name, fab->n_hosts, nranks, fab->mtu);
    fprintf(out,
            "# minBytes %" PRIu64 " maxBytes %" PRIu64 " step: %" PRIu64
            "(%s) warmup iters: %u iters: %u validation: %u\n",
            o->min_bytes, o->max_bytes, o->factor ? o->factor : o->step_bytes,
            o->factor ? "factor" : "bytes", o->warmup, o->iters, o->check);
    if (coll_rooted(o->coll))
        fprintf(out, "# root: %u\n", o->root);
    if (o->sparse)
        fprintf(out, "# sparse: each rank sends to itself and the %u ranks after it\n",
                o->sparse - 1);
    if (o->mm_self)
        fprintf(out, "# multimem: a GPU's own share crosses the switch too\n");
    if (o->forced)
        fprintf(out, "# TRIB_ALGO forces the algorithm\n");
    fprintf(out, "#\n# Ranks on hosts:");
    /* Hundreds of ranks fill the hosts in order: the first and the last locate all of them. */
    for (unsigned r = 0; r < nranks; r++) {
        if (nranks > MANY && r == 8)
            fprintf(out, " ..."), r = nranks - 1;
        fprintf(out, "%s %u:%s", r && r % 12 == 0 && nranks <= MANY ? "\n#  " : "", r,
                fab_name(fab, host_of_rank, r));
    }
    fprintf(out, "\n");
    fflush(out);
}

void table_memory(FILE *out, const char *memory)
{
    fprintf(out, "#\n# Memory: %s\n", memory);
}

void table_granted(FILE *out, const struct coll_grant *g)
{
    if (!*g->why)
        return;
    fprintf(out, "#\n# Aggregation:");
    if (g->trees)
        fprintf(out, " window %" PRIu32 " of %" PRIu32 " slots on %u of %u trees", g->window,
                g->asked, g->trees, g->trees_asked);
    else if (g->trees_asked)
        fprintf(out, " none of %u trees", g->trees_asked);
    if (g->rail_asked && !g->rail)
        fprintf(out, "%s none of the rails", g->trees_asked ? "," : "");
    else if (g->rail)
        fprintf(out, "%s window %" PRIu32 " of %" PRIu32 " slots on the rail of rank 0",
                g->trees_asked ? "," : "", g->rail, g->asked);
    fprintf(out, " because %s\n", g->why);
}

void table_gpus(FILE *out, unsigned n, const char *gpu)
{
    fprintf(out, "#\n# GPUs of this machine: %u, %s; times by the clock of the first\n", n, gpu);
}

void table_left_out(FILE *out, enum coll_algo algo, const char *why)
{
    fprintf(out, "#\n# Left out: %s: %s\n", perf_algo_name(algo), why);
}

void table_columns(FILE *out, const char *algo, bool staged)
{
    fprintf(out, "#\n# Algorithm: %s\n", algo);
    fprintf(out, "# %10s %12s %8s %6s %5s  %35s  %35s\n", "", "", "", "", "",
            "out-of-place           ", "in-place             ");
    fprintf(out,
            "# %10s %12s %8s %6s %5s  %9s %8s %8s %7s  %9s %8s %8s %7s  %9s %6s %9s %10s %10s%s "
            "%8s  %s\n",
            "size", "count", "type", "redop", "root", "time", "algbw", "busbw", "#wrong", "time",
            "algbw", "busbw", "#wrong", "link", "util", "model", "meas/model", "link/model",
            staged ? "   staging" : "", "dilation", "fidelity");
    fprintf(out, "# %10s %12s %8s %6s %5s  %9s %8s %8s %7s  %9s %8s %8s %7s  %9s %6s %9s%s\n",
            "(B)", "(elements)", "", "", "", "(us)", "(GB/s)", "(GB/s)", "", "(us)", "(GB/s)",
            "(GB/s)", "", "(MB)", "(%)", "(us)", staged ? "                            (us)" : "");
    fflush(out);
}

static void time_cell(char *buf, size_t n, double us)
{
    snprintf(buf, n, us < 10000 ? "%.2f" : us < 100000 ? "%.1f" : "%.0f", us);
}

static void print_run(FILE *out, const struct row *r, const struct run_result *run)
{
    char time[24], wrong[24] = "N/A";

    if (!run->valid) {
        fprintf(out, "  %9s %8s %8s %7s", "-", "-", "-", "-");
        return;
    }
    time_cell(time, sizeof(time), run->time_us);
    if (run->checked)
        snprintf(wrong, sizeof(wrong), "%" PRIu64, run->wrong);
    fprintf(out, "  %9s %8.3f %8.3f %7s", time, row_algbw(r, run->time_us),
            row_busbw(r, run->time_us), wrong);
}

/* The run whose fidelity the row shows: the one that lagged most, else the slower clock. */
static const struct run_result *worse(const struct row *r)
{
    const struct run_result *a = &r->run[OUT_OF_PLACE], *b = &r->run[IN_PLACE];

    if (!a->valid || !b->valid)
        return a->valid ? a : b;
    if (a->fid.ok != b->fid.ok)
        return a->fid.ok ? b : a;
    if (!a->fid.ok)
        return a->fid.needed >= b->fid.needed ? a : b;
    return a->dilation >= b->dilation ? a : b;
}

/* Says what --max-wall has left out. */
static void print_cut(FILE *out, const struct row *r)
{
    static const char *const places[] = {"out-of-place", "in-place"};

    for (int p = 0; p < PLACES; p++)
        if (*r->run[p].cut)
            fprintf(out, "#            cut by --max-wall, %s: %s\n", places[p], r->run[p].cut);
}

/* From which operation on the row ran by another algorithm. */
static void print_fell_back(FILE *out, const struct row *r)
{
    static const char *const places[] = {"out-of-place", "in-place"};

    for (int p = 0; p < PLACES; p++) {
        const struct run_result *run = &r->run[p];

        if (!run->valid || !*run->fell_back)
            continue;
        if (run->aggregated >= run->iters)
            fprintf(out, "#            fell back, %s, after the timed operations: %s\n", places[p],
                    run->fell_back);
        else
            fprintf(out, "#            fell back, %s, from operation %" PRIu32 " of %u on: %s\n",
                    places[p], run->aggregated + 1, run->iters, run->fell_back);
    }
}

/* The busiest link: measured bytes of one operation, and the share of its time that they took. */
static void print_link(FILE *out, const struct run_result *run)
{
    if (run->valid && run->link.known)
        fprintf(out, "  %9.3f %6.1f", link_use_bytes(&run->link, run->iters) * 1e-6,
                100 * link_use_share(&run->link, run->iters, run->time_us));
    else
        fprintf(out, "  %9s %6s", "-", "-");
}

/* The predicted time, and what was measured relative to the model: time, bytes of the busiest
 * link. */
static void print_model(FILE *out, const struct row *r, const struct run_result *run)
{
    double link = r->emulated ? row_link_ratio(r, run) : 0;
    char model[24] = "-";

    if (r->pred.time_ps && !r->pred.guessed)
        time_cell(model, sizeof(model), row_predicted_us(r));
    fprintf(out, " %9s", model);
    if (run->valid && row_predicted_us(r) > 0)
        fprintf(out, " %10.3f", run->time_us / row_predicted_us(r));
    else
        fprintf(out, " %10s", "-");
    if (link > 0)
        fprintf(out, " %10.3f", link);
    else
        fprintf(out, " %10s", "-");
}

/* A GPU's own links are not known, and nothing is emulated that could lag. */
static void print_hw(FILE *out, const struct row *r, const struct run_result *run)
{
    fprintf(out, "  %9s %6s", "-", "-");
    print_model(out, r, run);
    fprintf(out, " %8s  -\n", "-");
    fflush(out);
}

void table_row(FILE *out, const struct row *r)
{
    const struct run_result *a = &r->run[OUT_OF_PLACE], *b = &r->run[IN_PLACE];
    const struct run_result *w = worse(r), *run = a->valid ? a : b;
    char cell[24];

    fprintf(out, "%12" PRIu64 " %12" PRIu64 " %8s %6s %5d", r->bytes, r->count, row_type(r),
            row_op(r), row_root(r));
    print_run(out, r, a);
    print_run(out, r, b);
    if (!r->emulated) {
        print_hw(out, r, run);
        return;
    }
    print_link(out, run);
    print_model(out, r, run);
    if (r->staged) {
        time_cell(cell, sizeof(cell), w->staging_us);
        fprintf(out, " %9s", cell);
    }
    if (!w->valid)
        fprintf(out, " %8s  not measured\n", "-");
    else
        fprintf(out, " %8" PRIu32, w->dilation);
    if (!w->valid)
        ;
    else if (w->fid.ok)
        fprintf(out, "  ok\n");
    else
        fprintf(out, "  lag (needs %" PRIu32 ")\n", w->fid.needed);
    if (r->chosen)
        fprintf(out, "#            picked %s\n", r->why);
    print_fell_back(out, r);
    print_cut(out, r);
    fflush(out);
}

void table_footer(FILE *out, const struct row *rows, unsigned n)
{
    uint64_t wrong = 0;
    double bus = 0;
    unsigned runs = 0, checked = 0, late = 0, fell = 0, missing = 0;
    const char *no_link = "";

    for (unsigned i = 0; i < n; i++) {
        for (int p = 0; p < PLACES; p++) {
            const struct run_result *run = &rows[i].run[p];
            missing += !run->valid && *run->cut;
            if (!run->valid)
                continue;
            runs++;
            bus += row_busbw(&rows[i], run->time_us);
            checked += run->checked;
            wrong += run->wrong;
            late += !run->fid.ok;
            fell += *run->fell_back != 0;
            no_link = *no_link ? no_link : run->link.why;
        }
    }
    if (checked)
        fprintf(out, "# Out of bounds values : %" PRIu64 " %s\n", wrong, wrong ? "FAILED" : "OK");
    else
        fprintf(out, "# Out of bounds values : not checked\n");
    fprintf(out, "# Avg bus bandwidth    : %.4f\n", runs ? bus / runs : 0);
    if (late)
        fprintf(
            out,
            "# Fidelity             : lag in %u of %u runs, the emulation did not keep up there\n",
            late, runs);
    else if (!n || rows->emulated)
        fprintf(out, "# Fidelity             : ok\n");
    if (*no_link)
        fprintf(out, "# Links not measured   : %s\n", no_link);
    if (missing)
        fprintf(out, "# Not measured         : %u of %u runs, for which --max-wall left no time\n",
                missing, runs + missing);
    if (fell)
        fprintf(out,
                "# Fell back            : %u of %u runs, in all or in part by another algorithm\n",
                fell, runs);
    fflush(out);
}

/* ---- algorithms side by side ---- */

static const struct row *partner(const struct row *rows, unsigned n, const struct row *base,
                                 enum coll_algo other)
{
    for (unsigned i = 0; i < n; i++) {
        const struct row *s = &rows[i];
        if (row_asked(s) == other && s->bytes == base->bytes && s->type == base->type &&
            s->op == base->op && s->run[OUT_OF_PLACE].valid)
            return s;
    }
    return NULL;
}

static void compare_head(FILE *out, const struct row *r, const struct row *s)
{
    bool time = r->coll == COLL_BARRIER; /* it has no bandwidth */
    const char *what = time ? "time" : "algbw", *unit = time ? "(us)" : "(GB/s)";
    char name[2][48];

    snprintf(name[0], sizeof(name[0]), "%s %s", row_asked_name(r), what);
    snprintf(name[1], sizeof(name[1]), "%s %s", row_asked_name(s), what);
    if (row_asked(r) == ALGO_RING && row_asked(s) == ALGO_SHARP && r->coll == COLL_ALLREDUCE)
        fprintf(out,
                "#\n# SHARP against ring, out-of-place (for large sizes theory says 2(N-1)/N = "
                "%.3f)\n",
                row_asymptote(r->nranks));
    else
        fprintf(out, "#\n# %s against %s, out-of-place\n", row_asked_name(s), row_asked_name(r));
    fprintf(out, "# %10s %8s %6s  %16s %16s %9s %9s\n", "size", "type", "redop", name[0], name[1],
            "speed-up", "theory");
    fprintf(out, "# %10s %8s %6s  %16s %16s\n", "(B)", "", "", unit, unit);
}

static void compare_with(FILE *out, const struct row *rows, unsigned n, enum coll_algo base,
                         enum coll_algo other)
{
    bool started = false;

    for (unsigned i = 0; i < n; i++) {
        const struct row *r = &rows[i];
        if (row_asked(r) != base || !r->run[OUT_OF_PLACE].valid)
            continue;
        const struct row *s = partner(rows, n, r, other);
        if (!s)
            continue;
        if (!started)
            compare_head(out, r, s);
        started = true;
        double tr = r->run[OUT_OF_PLACE].time_us, ts = s->run[OUT_OF_PLACE].time_us;
        bool time = r->coll == COLL_BARRIER;
        char ratio[2][24] = {"-", "-"};
        if (tr > 0 && ts > 0)
            snprintf(ratio[0], sizeof(ratio[0]), "%.3f", tr / ts);
        if (row_predicted_us(r) > 0 && row_predicted_us(s) > 0)
            snprintf(ratio[1], sizeof(ratio[1]), "%.3f", row_predicted_us(r) / row_predicted_us(s));
        fprintf(out, "%12" PRIu64 " %8s %6s  %16.3f %16.3f %9s %9s\n", r->bytes, row_type(r),
                row_op(r), time ? tr : row_algbw(r, tr), time ? ts : row_algbw(s, ts), ratio[0],
                ratio[1]);
    }
}

void table_compare(FILE *out, const struct row *rows, unsigned n)
{
    unsigned told = n ? 1u << row_asked(rows) : 0;

    for (unsigned i = 0; i < n; i++) {
        enum coll_algo a = row_asked(&rows[i]);

        if (!(told >> a & 1))
            compare_with(out, rows, n, row_asked(rows), a);
        told |= 1u << a;
    }
    fflush(out);
}

void table_error(FILE *out, const struct row *rows, unsigned n)
{
    bool started = false;

    for (unsigned i = 0; i < n; i++) {
        const struct row *r = &rows[i];
        if (!r->ulp.n)
            continue;
        if (!started) {
            fprintf(out, "#\n# Error against the exact sum of random numbers, out-of-place\n");
            fprintf(out, "# %10s %8s %6s %12s  %10s %10s\n", "size", "type", "redop", "algorithm",
                    "mean", "max");
            fprintf(out, "# %10s %8s %6s %12s  %10s %10s\n", "(B)", "", "", "", "(ULP)", "(ULP)");
            started = true;
        }
        fprintf(out, "%12" PRIu64 " %8s %6s %12s  %10.4f %10.4f\n", r->bytes, row_type(r),
                row_op(r), row_algo_name(r), row_ulp_mean(r), r->ulp.max);
    }
    fflush(out);
}
