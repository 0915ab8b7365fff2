/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * trib-perf: times collectives between ranks on a fabric that is up. This process is the launcher.
 * It starts itself again for each rank (--rank-process FD), with the emulated HCA preloaded. On a
 * host outside the fabric, --rsh starts the rank (--remote-rank), whose standard input is the
 * launcher's socket and whose device is that machine's own. On another machine of the conf, --rsh
 * starts it too (--away-rank FABRIC HOST), with the emulated device.
 */
#include "host/bench/buffer.h"
#include "host/bench/host_resources.h"
#include "host/bench/perf_options.h"
#include "host/bench/perf_protocols.h"
#include "host/bench/report.h"
#include "host/bench/result_table.h"
#include "host/bench/schedule_option.h"
#include "host/bench/sweep.h"
#include "host/coll/memory_need.h"
#include "host/launch/away.h"
#include "host/launch/job_processes.h"
#include "host/launch/rank.h"
#include "host/launch/ranks.h"
#include "host/launch/ranks_timeline.h"
#include "machine/shared.h"
#include "protocols/host/call.h"
#include "protocols/host/load.h"
#include "system/atomic_output.h"
#include "system/provenance.h"

#include <errno.h>
#include <fcntl.h>
#include <jansson.h>
#include <limits.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/file.h>
#include <sys/prctl.h>
#include <unistd.h>

enum { EXIT_OK = 0, EXIT_WRONG = 1, EXIT_USAGE = 2, EXIT_CUT = 4, EXIT_SIGNAL = 128 };

/* Not NULL: the emulated HCA is linked into this program (make static). */
extern void *hca_real(const char *name) __attribute__((weak));

/* libtribverbs.so: $TRIB_LIB, next to this program, or where `make install` puts it. */
static int find_preload(char *path, size_t size)
{
    static const char *const places[] = {"%s/libtribverbs.so",
                                         "%s/../lib/tributary/libtribverbs.so"};
    const char *env = getenv("TRIB_LIB");
    char exe[PATH_MAX];

    if (env && *env) {
        snprintf(path, size, "%s", env);
        return access(path, R_OK) ? -errno : 0;
    }
    ssize_t n = readlink("/proc/self/exe", exe, sizeof(exe) - 1);
    if (n < 0)
        return -errno;
    exe[n] = 0;
    *strrchr(exe, '/') = 0;
    for (unsigned i = 0; i < 2; i++) {
        if (i == 0)
            snprintf(path, size, places[0], exe);
        else
            snprintf(path, size, places[1], exe);
        if (!access(path, R_OK))
            return 0;
    }
    snprintf(path, size, "%s/libtribverbs.so", exe);
    return -ENOENT;
}

/* Whether CONF is the run directory's own copy. The name of a fabric without one comes from the
 * original's file, so a copy may have another name. */
static bool is_copy(const struct rundir *rd, const char *conf)
{
    char path[RUN_PATH + 16];
    struct stat a, b;

    return !rundir_path(rd, path, sizeof(path), "fabric.conf") && !stat(path, &a) &&
           !stat(conf, &b) && a.st_dev == b.st_dev && a.st_ino == b.st_ino;
}

/* Opens the running fabric: the run directory's copy of CONF. */
static struct fabric *open_fabric(const char *conf, struct rundir *rd)
{
    struct fab_errors *errs = calloc(1, sizeof(*errs));
    struct fabric *f = errs ? fabric_load(conf, errs) : NULL;
    char name[FAB_NAME], why[PROTO_CONF_TEXT];

    if (!f) {
        if (errs)
            fab_errors_print(errs, stderr);
        free(errs);
        return NULL;
    }
    free(errs);
    snprintf(name, sizeof(name), "%s", f->name);
    fabric_free(f);
    if (rundir_open(rd, NULL, name, false)) {
        fprintf(stderr,
                "trib-perf: fabric %s is not up (trib up %s; trib perf does that by itself)\n",
                name, conf);
        return NULL;
    }
    f = rundir_fabric(rd);
    if (f && strcmp(f->name, name) && !is_copy(rd, conf)) {
        fprintf(stderr, "trib-perf: found fabric %s in %s, expected %s\n", f->name, rd->path, name);
        fabric_free(f);
        f = NULL;
    }
    if (f && proto_setup(f, why)) {
        fprintf(stderr, "trib-perf: %s\n", why);
        fabric_free(f);
        f = NULL;
    }
    if (!f)
        rundir_close(rd);
    return f;
}

/*
 * Whether this job may choose the dilation: the conf says "auto", `trib up --dilation` did not fix
 * it, and no other job of this fabric chooses it already. *fd keeps the lock.
 */
static bool may_choose_dilation(const struct rundir *rd, const struct fabric *f, int *fd)
{
    char path[RUN_PATH + 32];

    *fd = -1;
    if (f->dilation || rundir_path(rd, path, sizeof(path), "dilation.fixed") || !access(path, F_OK))
        return false;
    *fd = rundir_file(rd, O_CREAT | O_RDWR, "auto.lock");
    if (*fd >= 0 && !flock(*fd, LOCK_EX | LOCK_NB))
        return true;
    fprintf(stderr,
            "trib-perf: another job chooses this fabric's dilation; this one takes it as it is\n");
    return false;
}

static const char *cause(const struct sweep *s)
{
    return s->job ? job_cause(s->job) : s->cause;
}

static int perf_verdict(struct sweep *s, int rc)
{
    int sig = s->job ? job_look_interrupted(s->job) : 0;

    if (*cause(s))
        fprintf(stderr, "trib-perf: %s\n", cause(s));
    if (sig)
        return EXIT_SIGNAL + sig;
    if (s->wrong || (rc && !s->unmeasured))
        return EXIT_WRONG;
    return s->unmeasured ? EXIT_CUT : EXIT_OK;
}

/* Runs a sweep that has only rows of this machine's GPUs. */
static int run_without_ranks(struct sweep *s)
{
    int rc;

    table_header(stdout, "trib-perf", s->o, s->fab, s->nranks, s->host_of_rank);
    rc = sweep_run(s);
    if (rc && !*s->cause)
        snprintf(s->cause, sizeof(s->cause), "%s", strerror(-rc));
    return perf_verdict(s, rc);
}

static void abort_job(struct sweep *s, const char *why)
{
    job_abort(s->job, why);
}

static int start_away(const char *fabric, const char *host)
{
    char preload[PATH_MAX + 64];

    if (hca_real)
        return away_rank(fabric, host, NULL);
    if (!find_preload(preload, sizeof(preload)))
        return away_rank(fabric, host, preload);
    fprintf(stderr, "trib-perf: cannot find %s (TRIB_LIB names another place)\n", preload);
    return EXIT_WRONG;
}

static int run_job(struct sweep *s, const char *preload)
{
    struct job_processes_cfg cfg = {s->fab,  s->rd,     s->nranks, s->host_of_rank,
                                    preload, s->o->rsh, NULL};
    int rc = job_launch(&s->job, &cfg);

    s->place = ranks_place;
    s->abort_job = abort_job;
    if (!s->job)
        return EXIT_WRONG;
    if (!rc)
        rc = ranks_timeline_create(s);
    if (!rc) {
        table_header(stdout, "trib-perf", s->o, s->fab, s->nranks, s->host_of_rank);
        rc = ranks_connect(s);
        if (!rc)
            rc = sweep_run(s);
        ranks_leave(s);
    }
    if (rc && !*job_cause(s->job))
        job_abort(s->job, strerror(-rc));
    if (job_end(s->job) && !rc)
        rc = -ECANCELED;
    return perf_verdict(s, rc);
}

static int write_report(const struct sweep *s)
{
    json_t *left = *s->no_hw ? json_pack("[{s:s, s:s}]", "algo", perf_algo_name(PERF_NVLS_HW),
                                         "reason", s->no_hw)
                             : NULL;

    return report_write_more(s->o->json, s->o, s->nranks, s->rows, s->n_rows, cause(s), &s->granted,
                             "skipped", left);
}

/* False: one could not be written, and a message says so. */
static bool write_reports(const struct sweep *s)
{
    int json = s->o->json ? write_report(s) : 0;
    int csv = s->o->csv ? report_csv(s->o->csv, s->rows, s->n_rows) : 0;

    if (json)
        fprintf(stderr, "trib-perf: cannot write %s: %s\n", s->o->json, strerror(-json));
    if (csv)
        fprintf(stderr, "trib-perf: cannot write %s: %s\n", s->o->csv, strerror(-csv));
    return !json && !csv;
}

/* Memory and address space of a rank's process: the program, its HCA's frames and rings, mapped
 * files. */
#define PROCESS_BYTES   (12u << 20)
#define PROCESS_ADDRESS (192u << 20)

/* Checks that the machine has memory for its ranks: two buffers each, connections, schedules,
 * receive slots. */
static int check_room(const struct sweep *s, char *err)
{
    size_t buffers = 2 * options_buffer(s->o, s->nranks);
    struct row largest = sweep_largest(s);
    struct coll_memory_cfg cfg = {.fab = s->fab,
                                  .nranks = s->nranks,
                                  .host_of_rank = s->host_of_rank,
                                  .trees = s->n_trees,
                                  .tree = s->tree,
                                  .args = row_args(&largest),
                                  .algos = s->algos & ~(1u << ALGO_AUTO),
                                  .window = s->o->window,
                                  .ops = (unsigned)(s->o->iters + s->o->warmup + 1) * PLACES};
    struct coll_memory n;
    uint64_t here = 0, bytes;
    char what[160];

    for (unsigned r = 0; s->o->gpu == BUFFER_HOST && s->algos && r < s->nranks; r++)
        here += !s->fab->nodes[s->fab->hosts[s->host_of_rank[r]]].outside;
    if (!here)
        return 0;
    if (coll_memory_predict(&cfg, &n))
        n = (struct coll_memory){0};
    bytes = here * (buffers + PROCESS_BYTES) + coll_memory_bytes(&n) / s->nranks * here;
    snprintf(
        what, sizeof(what),
        " for the buffers and %llu connections of %u ranks: fewer or smaller ones, or trib sim "
        "--payload none",
        (unsigned long long)(n.conns / s->nranks * here), s->nranks);
    return host_resources_has(bytes, (bytes / here + n.address_bytes / s->nranks) + PROCESS_ADDRESS,
                              what, err, OPT_ERR)
               ? 0
               : -ENOMEM;
}

/* Refuses what cannot work before anything runs. */
static int perf_plan(struct sweep *s, char *err)
{
    int rc = sweep_plan(s, err);

    return rc ? rc : check_room(s, err);
}

static int perf_main(const struct perf_opts *o)
{
    struct rundir rd;
    struct sweep *s = calloc(1, sizeof(*s));
    char preload[PATH_MAX + 64], err[OPT_ERR];
    int lock = -1, code = EXIT_WRONG;

    if (!s)
        return EXIT_WRONG;
    s->o = o;
    s->fab = open_fabric(o->conf, &rd);
    if (!s->fab) {
        free(s);
        return EXIT_WRONG;
    }
    s->rd = &rd;
    s->terminal = isatty(STDERR_FILENO);
    if (perf_plan(s, err)) {
        fprintf(stderr, "trib-perf: %s\n", err);
        code = EXIT_USAGE;
    } else if (!hca_real && find_preload(preload, sizeof(preload))) {
        fprintf(stderr, "trib-perf: cannot find %s (TRIB_LIB names another place)\n", preload);
    } else {
        dilation_init(&s->dilation, may_choose_dilation(&rd, s->fab, &lock), o->run_wall);
        s->dilation.max_op = o->max_wall / ROW_OPS;
        code = s->algos ? run_job(s, hca_real ? NULL : preload) : run_without_ranks(s);
        if (!write_reports(s) && code == EXIT_OK)
            code = EXIT_WRONG;
        if (ranks_timeline_write(s) && code == EXIT_OK)
            code = EXIT_WRONG;
        ranks_timeline_destroy(s);
        job_free(s->job);
    }
    if (lock >= 0)
        close(lock);
    sweep_free(s);
    fabric_free((struct fabric *)(uintptr_t)s->fab);
    rundir_close(&rd);
    free(s);
    return code;
}

/* --check-options, for scripts: checks the command line before a fabric is started for it. */
static int check_options(const struct perf_opts *o)
{
    struct fab_errors *errs = calloc(1, sizeof(*errs));
    struct sweep *s = calloc(1, sizeof(*s));
    struct fabric *f = errs && s ? fabric_load(o->conf, errs) : NULL;
    char err[OPT_ERR], why[PROTO_CONF_TEXT];
    int code = EXIT_OK;

    if (!f) {
        if (errs)
            fab_errors_print(errs, stderr);
        code = EXIT_WRONG;
    } else if (proto_setup(f, why)) {
        fprintf(stderr, "trib-perf: %s\n", why);
        code = EXIT_USAGE;
        fabric_free(f);
    } else {
        s->o = o;
        s->fab = f;
        if (perf_plan(s, err)) {
            fprintf(stderr, "trib-perf: %s\n", err);
            code = EXIT_USAGE;
        }
        fabric_free(f);
    }
    free(errs);
    free(s);
    return code;
}

int main(int argc, char **argv)
{
    bool check = argc > 1 && !strcmp(argv[1], "--check-options");
    struct option_result r;
    struct provenance from;
    struct perf_opts o;
    char err[OPT_ERR];
    int code;

    signal(SIGCHLD, SIG_DFL); /* if the caller left it ignored, waitpid() would report no child */
    proto_name_ends(EXIT_WRONG);
    if (argc == 3 && !strcmp(argv[1], "--rank-process")) {
        prctl(PR_SET_NAME, "trib-perf"); /* its name would be "exe", from /proc/self/exe */
        return rank_main(atoi(argv[2]), false);
    }
    if (argc == 2 && !strcmp(argv[1], "--remote-rank"))
        return rank_main(STDIN_FILENO, true);
    if (argc == 4 && !strcmp(argv[1], "--away-rank"))
        return start_away(argv[2], argv[3]);
    if (perf_load_protocols(argc, argv))
        return EXIT_USAGE;
    perf_options_init(&o);
    if (!options_begin(&perf_program, (void *[]){&o}, argc - check, argv + check, &r, &code))
        return code;
    if (schedule_option_load(&o, &perf_program, &r, err))
        return *err ? options_wrong(&perf_program, err) : EXIT_USAGE;
    if (perf_options_check(&o, err) || options_force_algo(&o, getenv("TRIB_ALGO"), err))
        return options_wrong(&perf_program, err);
    if (!report_can_write("trib-perf", &o))
        return EXIT_USAGE;
    provenance_begin(&from, argc, (const char *const *)argv);
    provenance_file(&from, o.conf);
    provenance_file(&from, o.schedule);
    perf_protocol_files(&from);
    o.from = &from;
    code = check ? check_options(&o) : perf_main(&o);
    schedule_option_free(&o);
    provenance_end(&from);
    return atomic_output_end("trib-perf") && code == EXIT_OK ? EXIT_WRONG : code;
}
