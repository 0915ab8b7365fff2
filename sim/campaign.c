#include "sim/campaign.h"

#include "sim/chaos.h"
#include "sim/memory.h"

#include <errno.h>
#include <rte_mbuf.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* Of wall time, a seed: most take well below a second. Whoever turns round and round without fabric
 * time passing is found by this alone. */
#define WALL_S 240u

struct campaign {
    const struct campaign_cfg *cfg;
    uint64_t first, last;
    struct fabric *fab;
    char conf_dir[512];
    struct rte_mempool *pool;
    uint64_t seed;
    unsigned failed, with_errors, fell_back;
};

static void too_long(int sig)
{
    static const char text[] = "\n  FAILED: no end within the wall time of a seed\n";

    (void)sig;
    if (write(STDOUT_FILENO, text, sizeof(text) - 1) < 0)
        _exit(4);
    _exit(3);
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

static void drawn(void *ctx, const char *what)
{
    struct campaign *c = ctx;

    printf("seed %llu: %s", (unsigned long long)c->seed, what);
    fflush(stdout);
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
        printf("  replay: trib sim %s%s--chaos %llu%s%s\n", c->cfg->conf ? c->cfg->conf : "",
               c->cfg->conf ? " " : "", (unsigned long long)c->seed,
               c->cfg->faults ? " --faults " : "", c->cfg->faults ? c->cfg->faults : "");
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
                            .ctx = c,
                            .plan = out};
    struct chaos_report r;

    alarm(WALL_S);
    chaos_run(&cfg, &r);
    alarm(0);
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
    struct campaign c = {.cfg = cfg};
    char err[256];

    if (read_seeds(&c) || (cfg->conf ? load_fabric(&c) : find_presets(&c)))
        return 2;
    c.pool = memory_frames(&mem, CHAOS_FRAMES, 1, false, 0, err, sizeof(err));
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
    memory_end(&mem);
    fabric_free(c.fab);
    return c.failed ? 1 : 0;
}
