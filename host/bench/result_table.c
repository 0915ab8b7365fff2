/* SPDX-License-Identifier: BSD-3-Clause */
#include "host/bench/result_table.h"

#include "base/table.h"
#include "base/version.h"

#include <inttypes.h>
#include <math.h>
#include <string.h>

#define MANY 256 /* ranks */

static const char *fab_name(const struct fabric *fab, const uint16_t *host_of_rank, unsigned rank)
{
    return fab->nodes[fab->hosts[host_of_rank[rank]]].name;
}

/* Of hundreds of ranks prints only the first and the last: ranks fill the hosts in order. */
static void print_ranks(FILE *out, bool wide, const struct fabric *fab, unsigned nranks,
                        const uint16_t *host_of_rank)
{
    size_t at = (size_t)fprintf(out, "#\n# Ranks on hosts:") - 2;
    char one[FAB_NAME + 16];

    for (unsigned r = 0; r < nranks; r++) {
        if (nranks > MANY && r == 8)
            at += (size_t)fprintf(out, " ..."), r = nranks - 1;
        snprintf(one, sizeof(one), " %u:%s", r, fab_name(fab, host_of_rank, r));
        if (nranks <= MANY && (wide ? r && r % 12 == 0 : at + strlen(one) > TABLE_WIDTH))
            at = (size_t)fprintf(out, "\n#  ") - 1;
        at += (size_t)fprintf(out, "%s", one);
    }
    fprintf(out, "\n");
}

void table_header(FILE *out, const char *program, const struct perf_opts *o,
                  const struct fabric *fab, unsigned nranks, const uint16_t *host_of_rank)
{
    table_line(out, o->wide, "# %s %s %s on %s (%u hosts, %u ranks, MTU %u), times in fabric time",
               program, TRIB_VERSION, coll_name(o->coll), fab->name, fab->n_hosts, nranks,
               fab->mtu);
    table_line(out, o->wide,
               "# minBytes %" PRIu64 " maxBytes %" PRIu64 " step: %" PRIu64
               "(%s) warmup iters: %u iters: %u validation: %u",
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
    print_ranks(out, o->wide, fab, nranks, host_of_rank);
    fflush(out);
}

void table_memory(FILE *out, bool wide, const char *memory)
{
    fprintf(out, "#\n");
    table_line(out, wide, "# Memory: %s", memory);
}

void table_granted(FILE *out, bool wide, const struct coll_grant *g)
{
    char trees[96] = "", rail[80] = "";

    if (!*g->why)
        return;
    if (g->trees)
        snprintf(trees, sizeof(trees), " window %" PRIu32 " of %" PRIu32 " slots on %u of %u trees",
                 g->window, g->asked, g->trees, g->trees_asked);
    else if (g->trees_asked)
        snprintf(trees, sizeof(trees), " none of %u trees", g->trees_asked);
    if (g->rail_asked && !g->rail)
        snprintf(rail, sizeof(rail), "%s none of the rails", g->trees_asked ? "," : "");
    else if (g->rail)
        snprintf(rail, sizeof(rail),
                 "%s window %" PRIu32 " of %" PRIu32 " slots on the rail of rank 0",
                 g->trees_asked ? "," : "", g->rail, g->asked);
    fprintf(out, "#\n");
    table_line(out, wide, "# Aggregation:%s%s because %s", trees, rail, g->why);
}

void table_gpus(FILE *out, bool wide, unsigned n, const char *gpu)
{
    fprintf(out, "#\n");
    table_line(out, wide, "# GPUs of this machine: %u, %s; times by the clock of the first", n,
               gpu);
}

void table_left_out(FILE *out, bool wide, enum coll_algo algo, const char *why)
{
    fprintf(out, "#\n");
    table_line(out, wide, "# Left out: %s: %s", perf_algo_name(algo), why);
}

struct table_sums {
    uint64_t wrong;
    double bus;
    unsigned runs, checked, late, fell, missing;
    uint32_t dilation, needed; /* the largest */
    double op_s;               /* longest wall time that an operation of a lagging run needs */
    bool at_least;             /* it may need more, as it had too few warm-ups to know */
    const char *no_link;
};

/* Notes the time that a lagging run would have needed. */
static void note_late(struct table_sums *s, const struct run_result *run)
{
    double op_s = run->time_us * 1e-6 * run->fid.needed;

    s->needed = run->fid.needed > s->needed ? run->fid.needed : s->needed;
    if (op_s <= s->op_s)
        return;
    s->op_s = op_s;
    s->at_least = run->fid.blind;
}

static struct table_sums add_up(const struct row *rows, unsigned n)
{
    struct table_sums s = {.no_link = ""};

    for (unsigned i = 0; i < n; i++)
        for (int p = 0; p < PLACES; p++) {
            const struct run_result *run = &rows[i].run[p];

            s.missing += !run->valid && *run->cut;
            if (!run->valid)
                continue;
            s.runs++;
            s.bus += row_busbw(&rows[i], run->time_us);
            s.checked += run->checked;
            s.wrong += run->wrong;
            s.late += !run->fid.ok;
            s.fell += *run->fell_back != 0;
            s.no_link = *s.no_link ? s.no_link : run->link.why;
            s.dilation = run->dilation > s.dilation ? run->dilation : s.dilation;
            if (!run->fid.ok)
                note_late(&s, run);
        }
    return s;
}

void table_footer(FILE *out, bool wide, double max_wall, const struct row *rows, unsigned n)
{
    const struct table_sums s = add_up(rows, n);
    bool emulated = !n || rows->emulated;

    if (s.checked)
        fprintf(out, "# Out of bounds values : %" PRIu64 " %s\n", s.wrong,
                s.wrong ? "FAILED" : "OK");
    else
        fprintf(out, "# Out of bounds values : not checked\n");
    fprintf(out, "# Avg bus bandwidth    : %.4f\n", s.runs ? s.bus / s.runs : 0);
    if (s.late)
        fprintf(out,
                "# Fidelity             : lag in %u of %u runs, the emulation did not keep up "
                "there\n",
                s.late, s.runs);
    else if (emulated)
        fprintf(out, "# Fidelity             : ok\n");
    if (!wide && emulated && s.dilation > 1) {
        fprintf(out, "# Dilation             : up to %" PRIu32, s.dilation);
        fprintf(out, s.late ? ", needs %" PRIu32 "\n" : "\n", s.needed);
    }
    if (max_wall > 0 && ROW_OPS * s.op_s > max_wall)
        fprintf(out,
                "# To keep up           : %s --max-wall %.0f, an operation takes %.2g s then\n",
                s.at_least ? "at least" : "about", ceil(ROW_OPS * s.op_s), s.op_s);
    if (*s.no_link)
        table_line(out, wide, "# Links not measured   : %s", s.no_link);
    if (s.missing)
        fprintf(out, "# Not measured         : %u of %u runs, for which --max-wall left no time\n",
                s.missing, s.runs + s.missing);
    if (s.fell)
        fprintf(out,
                "# Fell back            : %u of %u runs, in all or in part by another algorithm\n",
                s.fell, s.runs);
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
