/* SPDX-License-Identifier: BSD-3-Clause */
#include "sim/chaos/campaign.h"

#include "sim/chaos/chaos.h"
#include "sim/world/memory.h"

#include <errno.h>
#include <rte_mbuf.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/time.h>
#include <unistd.h>

/* Of wall time, a seed: most take well below a second. Fabric time is bounded by chaos itself;
 * whoever turns round and round without fabric time passing is found by this alone. */
#define WALL_S 60.0

struct campaign {
    const struct campaign_cfg *cfg;
    uint64_t first, last;
    struct fabric *fab;
    char conf_dir[512];
    struct rte_mempool *pool;
    uint64_t seed;
    double wall_s;
    char *late; /* what is to be said if the seed does not end in time: its plan, and the rest */
    unsigned failed, with_errors, fell_back;
};

static const char *volatile late; /* for the signal's handler: the campaign's */

/* Nothing that may hold a lock, or be in the middle of something, is called here. */
static void too_long(int sig)
{
    const char *text = late;

    (void)sig;
    if (text && write(STDOUT_FILENO, text, strlen(text)) < 0)
        _exit(4);
    _exit(3);
}

/* 0: as long as it takes. */
static void set_alarm(double s)
{
    struct itimerval t = {.it_value = {(time_t)s, (suseconds_t)((s - (double)(time_t)s) * 1e6)}};

    setitimer(ITIMER_REAL, &t, NULL);
}

static int read_seeds(struct campaign *c)
{
    char *end;

    errno = 0;
    c->first = c->last = strtoull(c->cfg->seeds, &end, 10);
    if (*end == '-' && end[1] >= '0' && end[1] <= '9')
        c->last = strtoull(end + 1, &end, 10);
    if (c->cfg->seeds[0] >= '0' && c->cfg->seeds[0] <= '9' && !*end && !errno &&
        c->first <= c->last)
        return 0;
    fprintf(stderr, "trib-sim: --chaos: found \"%.64s\", expected a seed, or FIRST-LAST\n",
            c->cfg->seeds);
    return -EINVAL;
}

/* Presets lie beside the programs: in the tree where those were built, or where they are
 * installed. */
static int find_presets(struct campaign *c)
{
    static const char *const places[] = {"conf", "share/tributary/conf"};
    char exe[256], file[640];
    ssize_t n = readlink("/proc/self/exe", exe, sizeof(exe) - 1);

    exe[n > 0 ? n : 0] = '\0';
    for (int up = 0; up < 2; up++)
        if (strrchr(exe, '/'))
            *strrchr(exe, '/') = '\0';
    for (unsigned i = 0; i < 3; i++) {
        snprintf(c->conf_dir, sizeof(c->conf_dir), "%s%s%s", i < 2 ? exe : "", i < 2 ? "/" : "",
                 places[i % 2]);
        snprintf(file, sizeof(file), "%s/leaf-spine-8.conf", c->conf_dir);
        if (!access(file, R_OK))
            return 0;
    }
    fprintf(stderr,
            "trib-sim: found no presets in %s/conf, expected the conf folder there or here, "
            "or trib sim CONF --chaos\n",
            exe);
    return -ENOENT;
}

static void print_replay(const struct campaign *c, FILE *out)
{
    fprintf(out, "  replay: trib sim %s%s--chaos %llu%s%s\n", c->cfg->conf ? c->cfg->conf : "",
            c->cfg->conf ? " " : "", (unsigned long long)c->seed,
            c->cfg->faults ? " --faults " : "", c->cfg->faults ? c->cfg->faults : "");
}

static void drawn(void *ctx, const char *what)
{
    struct campaign *c = ctx;

    printf("seed %llu: %s", (unsigned long long)c->seed, what);
    fflush(stdout);
}

/* What would be said of a seed that is late, ready before it runs. plan: NULL: not yet drawn. */
static void set_late(struct campaign *c, const struct fault_plan *plan, const struct fabric *f)
{
    char *text = NULL;
    size_t size;
    FILE *out = open_memstream(&text, &size);

    if (!out)
        return;
    if (!plan)
        fprintf(out, "seed %llu", (unsigned long long)c->seed);
    fprintf(out, ": FAILED: no end within %g s of wall time (--max-wall)\n", c->wall_s);
    if (plan)
        fault_plan_print(plan, f, out);
    print_replay(c, out);
    fclose(out);
    late = text;
    free(c->late);
    c->late = text;
}

static void planned(void *ctx, const struct fault_plan *plan, const struct fabric *f)
{
    set_late(ctx, plan, f);
}

/* What was drawn stands there before it runs, so that whoever crashes is known. */
static void report(struct campaign *c, const struct chaos_report *r, const char *plan)
{
    const char *rest = r->what + strcspn(r->what, ";");

    printf("%s: %s%s [%.3f ms, %llu frames, %016llx]\n", rest, r->ok ? "" : "FAILED: ", r->verdict,
           (double)r->fabric_ps * 1e-9, (unsigned long long)r->frames,
           (unsigned long long)r->trace_hash);
    if (!r->ok || c->first == c->last)
        printf("%s", plan);
    if (!r->ok)
        print_replay(c, stdout);
    fflush(stdout);
    c->failed += !r->ok;
    c->with_errors += r->ok && r->failed;
    c->fell_back += r->ok && r->fell_back;
}

static void run_seed(struct campaign *c)
{
    char *plan = NULL;
    size_t size;
    FILE *out = open_memstream(&plan, &size);
    struct chaos_cfg cfg = {.seed = c->seed,
                            .fab = c->fab,
                            .conf_dir = c->conf_dir,
                            .faults = c->cfg->faults,
                            .pool = c->pool,
                            .drawn = drawn,
                            .planned = planned,
                            .ctx = c,
                            .plan = out};
    struct chaos_report r;

    set_late(c, NULL, NULL);
    set_alarm(c->wall_s);
    chaos_run(&cfg, &r);
    set_alarm(0);
    if (out)
        fclose(out);
    report(c, &r, plan ? plan : "");
    free(plan);
}

static int load_fabric(struct campaign *c)
{
    struct fab_errors *errs = calloc(1, sizeof(*errs));

    c->fab = errs ? fabric_load(c->cfg->conf, errs) : NULL;
    if (!c->fab && errs)
        fab_errors_print(errs, stderr);
    free(errs);
    return c->fab ? 0 : -EINVAL;
}

int campaign_run(const struct campaign_cfg *cfg)
{
    struct memory mem;
    struct campaign c = {.cfg = cfg, .wall_s = cfg->wall_s > 0 ? cfg->wall_s : WALL_S};
    char err[256];

    if (read_seeds(&c) || (cfg->conf ? load_fabric(&c) : find_presets(&c)))
        return 2;
    c.pool = memory_frames(&mem, CHAOS_FRAMES, 1, false, err, sizeof(err));
    if (!c.pool) {
        fprintf(stderr, "trib-sim: %s\n", err);
        fabric_free(c.fab);
        return 2;
    }
    signal(SIGALRM, too_long);
    for (c.seed = c.first; c.seed <= c.last; c.seed++)
        run_seed(&c);
    if (c.first != c.last)
        printf("%llu seeds, %u failed; %u ended with named errors, %u without aggregation nodes\n",
               (unsigned long long)(c.last - c.first + 1), c.failed, c.with_errors, c.fell_back);
    late = NULL;
    free(c.late);
    memory_end(&mem);
    fabric_free(c.fab);
    return c.failed ? 1 : 0;
}
