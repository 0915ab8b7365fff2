/* SPDX-License-Identifier: BSD-3-Clause */
#include "sim/chaos/campaign.h"

#include "base/events.h"
#include "base/random.h"
#include "host/coll/coll.h"
#include "sim/chaos/chaos.h"
#include "sim/world/memory.h"
#include "switch/queue/link_fault.h"

#include <errno.h>
#include <rte_mbuf.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/time.h>
#include <unistd.h>

/* Limit of wall time for a seed; most take well below a second. Chaos itself bounds fabric time.
 * This limit finds loops in which no fabric time passes. */
#define WALL_S        60.0
#define DRAW_PROTOCOL 100 /* a stream of draws that no case uses (chaos_priv.h) */
#define DUMP_S        2   /* time to dump the event rings of a seed that exceeds its limit */

struct campaign {
    const struct campaign_cfg *cfg;
    uint64_t first, last;
    struct fabric *fab;
    char conf_dir[512];
    struct rte_mempool *pool;
    uint64_t seed;
    double wall_s;
    char *late; /* report for the case that the seed exceeds its limit; made before it runs */
    unsigned failed, with_errors, fell_back;
};

static const char *volatile late; /* of the campaign, for the signal handler */
static FILE *late_events;         /* a second stream on stdout, whose lock no run holds */

static void give_up(int sig)
{
    (void)sig;
    _exit(3);
}

/* Handler of SIGALRM. Writes the report, by calls that are safe in a signal handler. Then dumps the
 * event rings, which may hang: a second alarm ends that. */
static void too_long(int sig)
{
    const char *text = late;
    sigset_t alarms;

    (void)sig;
    if (text && write(STDOUT_FILENO, text, strlen(text)) < 0)
        _exit(4);
    signal(SIGALRM, give_up);
    sigemptyset(&alarms);
    sigaddset(&alarms, SIGALRM);
    sigprocmask(SIG_UNBLOCK, &alarms, NULL);
    alarm(DUMP_S);
    if (late_events) {
        events_dump(late_events);
        fflush(late_events);
    }
    _exit(3);
}

/* 0: no limit. */
static void set_alarm(double s)
{
    struct itimerval t = {.it_value = {(time_t)s, (suseconds_t)((s - (double)(time_t)s) * 1e6)}};

    setitimer(ITIMER_REAL, &t, NULL);
}

static int read_seeds(struct campaign *c)
{
    char *end;

    if (c->cfg->case_file)
        return 0;
    errno = 0;
    c->first = c->last = strtoull(c->cfg->seeds, &end, 10);
    if (*end == '-' && end[1] >= '0' && end[1] <= '9')
        c->last = strtoull(end + 1, &end, 10);
    if (c->cfg->seeds[0] >= '0' && c->cfg->seeds[0] <= '9' && !*end && !errno &&
        c->first <= c->last && (c->first == c->last || !c->cfg->save_file))
        return 0;
    fprintf(stderr, "trib-sim: --chaos: found \"%.64s\"%s, expected a seed%s\n", c->cfg->seeds,
            !*end && !errno && c->first > c->last ? ", a range that runs backwards" : "",
            c->cfg->save_file ? " (--save-case)" : ", or FIRST-LAST");
    return -EINVAL;
}

/* Finds the presets next to the programs, in the build tree or where they are installed. */
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
    if (c->cfg->case_file) {
        fprintf(out, "  replay: trib sim --chaos-case %s\n", c->cfg->case_file);
        return;
    }
    fprintf(out, "  replay: trib sim %s%s--chaos %llu%s%s\n", c->cfg->conf ? c->cfg->conf : "",
            c->cfg->conf ? " " : "", (unsigned long long)c->seed,
            c->cfg->faults ? " --faults " : "", c->cfg->faults ? c->cfg->faults : "");
}

static void print_label(const struct campaign *c, FILE *out)
{
    if (c->cfg->case_file)
        fprintf(out, "case %s", c->cfg->case_file);
    else
        fprintf(out, "seed %llu", (unsigned long long)c->seed);
}

static void drawn(void *ctx, const char *what)
{
    struct campaign *c = ctx;

    print_label(c, stdout);
    printf(": %s", what);
    fflush(stdout);
}

/* Prepares the report of a seed that exceeds its limit. plan: NULL: not drawn yet. */
static void set_late(struct campaign *c, const struct fault_plan *plan, const struct fabric *f)
{
    char *text = NULL;
    size_t size;
    FILE *out = open_memstream(&text, &size);

    if (!out)
        return;
    if (!plan)
        print_label(c, out);
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

/* Completes the line that drawn() began before the run, so that a crash leaves the seed's name. */
static void campaign_report(struct campaign *c, const struct chaos_report *r, const char *plan,
                            const char *events)
{
    const char *rest = r->what + strcspn(r->what, ";");

    printf("%s: %s%s [%.3f ms, %llu frames, %016llx]\n", rest, r->ok ? "" : "FAILED: ", r->verdict,
           (double)r->fabric_ps * 1e-9, (unsigned long long)r->frames,
           (unsigned long long)r->trace_hash);
    if (!r->ok || c->first == c->last)
        printf("%s", plan);
    if (!r->ok) {
        print_replay(c, stdout);
        printf("%s", events);
    }
    fflush(stdout);
    c->failed += !r->ok;
    c->with_errors += r->ok && r->failed;
    c->fell_back += r->ok && r->fell_back;
}

/* The protocol that all jobs of a seed run; 0: none. One of PROTOCOL_SEEDS seeds has one, which
 * joins, leaves, fails and falls back as other algorithms do. */
#define PROTOCOL_SEEDS 16
static int algo_of(const struct campaign *c)
{
    uint64_t rng = fault_mix(c->seed, DRAW_PROTOCOL);
    unsigned n = 0, which;

    if (c->cfg->algo || c->cfg->case_file || random_next(&rng) % PROTOCOL_SEEDS)
        return c->cfg->algo;
    while (n < PROTO_SEATS && coll_protocol((enum coll_algo)(ALGO_PROTOCOL + n)))
        n++;
    which = n ? (unsigned)(random_next(&rng) % n) : 0;
    return n ? (int)(ALGO_PROTOCOL + which) : 0;
}

static void run_seed(struct campaign *c)
{
    char *plan = NULL, *events = NULL;
    size_t size, events_size;
    FILE *out = open_memstream(&plan, &size), *rings = open_memstream(&events, &events_size);
    struct chaos_cfg cfg = {.seed = c->seed,
                            .fab = c->fab,
                            .conf = c->cfg->conf,
                            .case_file = c->cfg->case_file,
                            .save_file = c->cfg->save_file,
                            .conf_dir = c->conf_dir,
                            .faults = c->cfg->faults,
                            .algo = algo_of(c),
                            .pool = c->pool,
                            .drawn = drawn,
                            .planned = planned,
                            .ctx = c,
                            .plan = out,
                            .events = rings};
    struct chaos_report r;

    set_late(c, NULL, NULL);
    set_alarm(c->wall_s);
    chaos_run(&cfg, &r);
    set_alarm(0);
    if (out)
        fclose(out);
    if (rings)
        fclose(rings);
    campaign_report(c, &r, plan ? plan : "", events ? events : "");
    free(plan);
    free(events);
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
    late_events = fdopen(dup(STDOUT_FILENO), "w");
    signal(SIGALRM, too_long);
    for (c.seed = c.first; c.seed <= c.last; c.seed++)
        run_seed(&c);
    if (c.first != c.last)
        printf("%llu seeds, %u failed; %u ended with named errors, %u without aggregation nodes\n",
               (unsigned long long)(c.last - c.first + 1), c.failed, c.with_errors, c.fell_back);
    late = NULL;
    if (late_events)
        fclose(late_events);
    free(c.late);
    memory_end(&mem);
    fabric_free(c.fab);
    return c.failed ? 1 : 0;
}
