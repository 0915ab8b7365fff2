/* SPDX-License-Identifier: BSD-3-Clause */
#include "host/bench/result_rows.h"

#include "base/table.h"

#include <inttypes.h>
#include <string.h>

/* ---- cells ---- */

static void time_cell(char *buf, size_t n, double us)
{
    snprintf(buf, n, us < 10000 ? "%.2f" : us < 100000 ? "%.1f" : "%.0f", us);
}

/* Formats a rate with as many significant digits as fit in 7 characters. */
static void rate_cell(char *buf, size_t n, double gbps)
{
    snprintf(buf, n, gbps < 1000 ? "%.3f" : gbps < 10000 ? "%.2f" : "%.0f", gbps);
}

static void wrong_cell(char *buf, size_t n, const struct run_result *run)
{
    snprintf(buf, n, "N/A");
    if (run->checked)
        snprintf(buf, n, "%" PRIu64, run->wrong);
}

/* ---- a line for each place ---- */

#define NAME 10

static void heads(FILE *out)
{
    fprintf(out, "# %10s %12s %8s %6s %*s %3s %8s %7s %7s %6s %6s\n", "size", "count", "type",
            "redop", NAME, "algo", "in?", "time", "algbw", "busbw", "#wrong", "/model");
    fprintf(out, "# %10s %12s %8s %6s %*s %3s %8s %7s %7s\n", "(B)", "(elements)", "", "", NAME, "",
            "", "(us)", "(GB/s)", "(GB/s)");
}

/* Formats the algorithm's name. A schedule's name is shortened; the heading has all of it. */
static void algo_cell(char *buf, const char *name)
{
    if (strlen(name) > NAME)
        snprintf(buf, NAME + 1, "%.*s~", NAME - 1, name);
    else
        snprintf(buf, NAME + 1, "%s", name);
}

static void place_row(FILE *out, const struct row *r, int place)
{
    const struct run_result *run = &r->run[place];
    char algo[NAME + 1], time[24] = "-", rate[2][24] = {"-", "-"}, wrong[24] = "-", model[24] = "-";
    bool late = run->valid && r->emulated && !run->fid.ok;

    algo_cell(algo, row_algo_name(r));
    if (run->valid) {
        time_cell(time, sizeof(time), run->time_us);
        rate_cell(rate[0], sizeof(rate[0]), row_algbw(r, run->time_us));
        rate_cell(rate[1], sizeof(rate[1]), row_busbw(r, run->time_us));
        wrong_cell(wrong, sizeof(wrong), run);
    }
    if (run->valid && row_predicted_us(r) > 0)
        snprintf(model, sizeof(model), "%.*f", run->time_us < 100 * row_predicted_us(r) ? 3 : 0,
                 run->time_us / row_predicted_us(r));
    fprintf(out, "%12" PRIu64 " %12" PRIu64 " %8s %6s %*s %3s %8s %7s %7s %6s %6s%s\n", r->bytes,
            r->count, row_type(r), row_op(r), NAME, algo, place == IN_PLACE ? "in" : "out", time,
            rate[0], rate[1], wrong, model, late ? " lag" : "");
}

static void place_rows(FILE *out, const struct row *r)
{
    for (int p = 0; p < PLACES; p++)
        if (p == OUT_OF_PLACE ? r->run[p].valid || *r->run[p].cut || !r->run[IN_PLACE].valid
                              : r->run[p].valid || *r->run[p].cut)
            place_row(out, r, p);
}

/* ---- everything on one line ---- */

static void wide_heads(FILE *out, bool staged)
{
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
}

static void print_run(FILE *out, const struct row *r, const struct run_result *run)
{
    char time[24], wrong[24];

    if (!run->valid) {
        fprintf(out, "  %9s %8s %8s %7s", "-", "-", "-", "-");
        return;
    }
    time_cell(time, sizeof(time), run->time_us);
    wrong_cell(wrong, sizeof(wrong), run);
    fprintf(out, "  %9s %8.3f %8.3f %7s", time, row_algbw(r, run->time_us),
            row_busbw(r, run->time_us), wrong);
}

/* The run whose fidelity the row shows: the one that lagged more, else that of the larger dilation.
 */
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

/* The busiest link: measured bytes of one operation, and the fraction of its time that they took.
 */
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

/* Columns of rows by real GPUs: their links are not known, and nothing is emulated that could lag.
 */
static void print_hw(FILE *out, const struct row *r, const struct run_result *run)
{
    fprintf(out, "  %9s %6s", "-", "-");
    print_model(out, r, run);
    fprintf(out, " %8s  -\n", "-");
}

static void wide_row(FILE *out, const struct row *r)
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
}

/* ---- lines below a row ---- */

static const char *const place_name[] = {"out-of-place", "in-place"};

/* Says what --max-wall has left out. */
static void print_cut(FILE *out, const struct row *r, bool wide)
{
    for (int p = 0; p < PLACES; p++)
        if (*r->run[p].cut)
            table_line(out, wide, "#            cut by --max-wall, %s: %s", place_name[p],
                       r->run[p].cut);
}

/* From which operation on the row ran by another algorithm. */
static void print_fell_back(FILE *out, const struct row *r, bool wide)
{
    for (int p = 0; p < PLACES; p++) {
        const struct run_result *run = &r->run[p];

        if (!run->valid || !*run->fell_back)
            continue;
        if (run->end.goes_on)
            table_line(out, wide,
                       "#            fell back, %s, %" PRIu32 " of %u operations wholly by %s: %s",
                       place_name[p], run->aggregated, run->iters, row_algo_name(r),
                       run->fell_back);
        else if (run->aggregated >= run->iters)
            table_line(out, wide, "#            fell back, %s, after the timed operations: %s",
                       place_name[p], run->fell_back);
        else
            table_line(out, wide,
                       "#            fell back, %s, from operation %" PRIu32 " of %u on: %s",
                       place_name[p], run->aggregated + 1, run->iters, run->fell_back);
    }
}

static uint64_t counter_find(const struct row_counters *c, const char *name, bool *there)
{
    for (unsigned i = 0; i < c->n; i++)
        if (!strcmp(c->c[i].name, name)) {
            *there = true;
            return c->c[i].v;
        }
    return 0;
}

/* Reports packets that a protocol left to ranks although switches should have summed them. */
static void print_unsummed(FILE *out, const struct row *r, bool wide)
{
    for (int p = 0; p < PLACES; p++) {
        const struct run_result *run = &r->run[p];
        bool sums = false, over = false;
        uint64_t parts = counter_find(&run->counted, "overflows", &over);
        bool none = !counter_find(&run->counted, "switch_sums", &sums) && sums;

        if (!run->valid || r->nranks < 2 || (!parts && !none))
            continue;
        table_line(out, wide, "#            %s, %s: %s", row_algo_name(r), place_name[p],
                   none ? "switches have summed nothing" : "switches have not summed everything");
        if (parts)
            table_line(out, wide,
                       "#              %" PRIu64
                       " parts had a number beyond what the key scale can "
                       "send, and went on as floats",
                       parts);
    }
}

void result_rows_heads(FILE *out, const char *algo, bool wide, bool staged)
{
    fprintf(out, "#\n# Algorithm: %s\n", algo);
    if (wide)
        wide_heads(out, staged);
    else
        heads(out);
    fflush(out);
}

void result_rows_print(FILE *out, const struct row *r, bool wide)
{
    if (wide)
        wide_row(out, r);
    else
        place_rows(out, r);
    if (r->chosen)
        table_line(out, wide, "#            picked %s", r->why);
    if (r->pred.from_ranks && row_predicted_us(r) > 0)
        table_line(out, wide, "#            the model ran %u of %u ranks, and extrapolated",
                   r->pred.from_ranks, r->nranks);
    if (row_is_rough(r))
        table_line(out, wide, "#            the formula of %s holds within %u %% here",
                   row_algo_name(r), r->pred.within_percent);
    if (r->pred.hashed && row_predicted_us(r) > 0)
        table_line(
            out, wide,
            "#            the model's paths are those of ecmp = \"balanced\", this conf's are "
            "hashed");
    if (row_is_beyond(r))
        table_line(out, wide,
                   "#            extrapolated: this conf's costs.aggregate holds for vectors up to "
                   "%" PRIu64 " bytes",
                   r->until);
    print_fell_back(out, r, wide);
    print_unsummed(out, r, wide);
    print_cut(out, r, wide);
    fflush(out);
}
