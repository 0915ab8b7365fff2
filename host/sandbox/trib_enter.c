/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * trib-enter HOST LIBRARY CMD [ARG...], which `trib exec` becomes. Runs CMD as a host of the fabric
 * whose run directory TRIB_RUN names, with libtribverbs preloaded, and sysfs and /dev as that host
 * has them. It execs CMD, so the pid, signals, descriptors and the exit code are CMD's.
 *
 * If the machine forbids namespaces, CMD runs without one, after a notice: programs that only call
 * libibverbs miss nothing. With --isolate (isolate.h) that is an error.
 */
#include "base/nearest.h"
#include "base/options.h"
#include "host/sandbox/clock_reach.h"
#include "host/sandbox/enter_secret.h"
#include "system/own_path.h"
#include "host/sandbox/isolate.h"
#include "host/sandbox/nccl_env.h"
#include "host/sandbox/sandbox.h"
#include "machine/preload.h"
#include "machine/rundir.h"
#include "machine/shared.h"
#include "machine/token.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

struct enter_opts {
    const char *host, *library;
    bool isolate, scale_waits, no_nccl_env;
    unsigned clock;
};

#define AT(f) .offset = offsetof(struct enter_opts, f)

static const struct option_row words[] = {
    {.arg = "HOST",
     AT(host),
     .type = OPTION_TEXT,
     .how = OPTION_REQUIRED,
     .help = "a host of the fabric; @rank: by the rank that mpirun, srun or torchrun gave"},
    {.arg = "LIBRARY",
     AT(library),
     .type = OPTION_TEXT,
     .how = OPTION_REQUIRED,
     .help = "path of libtribverbs.so"},
    {.arg = "CMD",
     .type = OPTION_TEXT,
     .how = OPTION_REQUIRED | OPTION_REST,
     .help = "the program to run, and its arguments"},
};
static const struct option_row how[] = {
    {.name = "isolate",
     AT(isolate),
     .type = OPTION_FLAG,
     .help = "in namespaces in which CMD sees no other process and of the fabric only this host"},
};

enum { CLOCK_AS_IS, CLOCK_WALL, CLOCK_FABRIC };
static const char *clock_name(unsigned i)
{
    static const char *const names[] = {"", "wall", "fabric", NULL};

    return names[i];
}
static const struct option_row clocks[] = {
    {.name = "clock",
     .arg = "CLOCK",
     AT(clock),
     .type = OPTION_CHOICE,
     .list = clock_name,
     .help = "what the system's clocks say to CMD and all that it starts: fabric time, or wall "
             "time; waits keep their length in wall time. Without it, as for who calls"},
    {.name = "scale-waits",
     AT(scale_waits),
     .type = OPTION_FLAG,
     .help = "with --clock fabric: waits and timeouts are fabric time too, so many times longer as "
             "the dilation says"},
};
static const struct option_row variables[] = {
    {.name = "no-nccl-env",
     AT(no_nccl_env),
     .type = OPTION_FLAG,
     .help = "leave NCCL's variables as they are. Without it those that NCCL needs on an emulated "
             "host are set, unless they are set already: NCCL_HOSTID, NCCL_IB_HCA, "
             "NCCL_IB_GID_INDEX, NCCL_SOCKET_IFNAME, NCCL_GIN_TYPE"},
};
static const struct option_group groups[] = {
    {"Namespaces", how, 1}, {"Clocks", clocks, 2}, {"Variables", variables, 1}, {NULL, NULL, 0}};
static const struct option_note exits[] = {
    {"1", "there is no such fabric or host"},
    {"2", "the command line is wrong"},
    {"126, 127", "CMD cannot be run, or is not there"},
    {"another one", "that of CMD"},
    {NULL, NULL},
};
static const struct option_note environment[] = {
    {"TRIB_RUN", "the run directory of the fabric"},
    {"TRIB_LOG", "exec:info: says which of NCCL's variables it sets"},
    {NULL, NULL},
};
static const struct option_program program = {
    .name = "trib-enter",
    .summary = "run a program as a host of an emulated fabric",
    .synopsis = "[--isolate] [--clock CLOCK [--scale-waits]] [--no-nccl-env] HOST LIBRARY CMD "
                "[ARG...]",
    .text = "What trib exec becomes: preloads the emulated HCA, gives CMD the sysfs and /dev of "
            "the host, and replaces itself by it.\n\nWith --isolate it stays, as CMD's parent: CMD "
            "runs in user, PID, IPC and mount namespaces of its own, which end with it.",
    .words = words,
    .n_words = 3,
    .words_end_options = true,
    .groups = groups,
    .exits = exits,
    .environment = environment,
    .see = "trib(1)",
};

/* RANK, if `beside` is set too: RANK alone is too common a name. Users who start ranks of torch by
 * hand set WORLD_SIZE as well. torchrun comes before Slurm: below srun, one task of Slurm has many
 * ranks. */
static const char *rank_of_torch(const char *beside)
{
    return getenv(beside) ? getenv("RANK") : NULL;
}

/* The host of this rank: ranks go round robin over the hosts in order of the conf. */
static const struct fab_node *host_of_rank(const struct fabric *f)
{
    const char *const ranks[] = {rank_of_torch("TORCHELASTIC_RUN_ID"),
                                 getenv("OMPI_COMM_WORLD_RANK"),
                                 getenv("PMIX_RANK"),
                                 getenv("PMI_RANK"),
                                 getenv("SLURM_PROCID"),
                                 rank_of_torch("WORLD_SIZE")};
    char *end;

    for (unsigned i = 0; i < sizeof(ranks) / sizeof(ranks[0]); i++) {
        const char *s = ranks[i];
        unsigned long rank = s ? strtoul(s, &end, 10) : 0;

        if (s && end != s && !*end)
            return &f->nodes[f->hosts[rank % f->n_hosts]];
    }
    fprintf(stderr, "trib: found no rank for @rank, expected one in OMPI_COMM_WORLD_RANK, "
                    "PMIX_RANK, PMI_RANK, SLURM_PROCID, or RANK beside WORLD_SIZE: start trib exec "
                    "by mpirun, srun or torchrun\n");
    return NULL;
}

static const struct fab_node *find_host(const struct fabric *f, const char *name)
{
    const struct fab_node *n;
    char hint[FABRIC_HINT];

    if (f->n_hosts && !strcmp(name, "@rank"))
        return host_of_rank(f);
    n = fabric_node(f, name);
    if (n && n->kind == FAB_HOST && !n->outside)
        return n;
    if (n && n->outside) {
        fprintf(stderr,
                "trib: found host \"%s\", which is outside, expected one that is emulated\n", name);
        return NULL;
    }
    fprintf(stderr, "trib: found host \"%s\", expected one of fabric %s", name, f->name);
    for (unsigned i = 0; i < f->n_hosts && i < 8; i++)
        fprintf(stderr, "%s%s", i ? ", " : ": ", f->nodes[f->hosts[i]].name);
    fprintf(stderr, "%s%s\n", f->n_hosts > 8 ? ", ..." : "",
            nearest_hint(fabric_near_node(f, name, true), hint, sizeof(hint)));
    return NULL;
}

/*
 * Preloads libtribclock.so, which is beside the library, before it. If clocks are fabric time
 * already, as in a shell of trib exec, --clock wall turns that off.
 */
static int set_clock(const struct enter_opts *o, const struct rundir *rd, const char *command)
{
    const char *slash = strrchr(o->library, '/'), *why;
    char lib[4096];
    int rc;

    if (o->clock == CLOCK_AS_IS)
        return 0;
    if (o->clock == CLOCK_WALL)
        return setenv("TRIB_CLOCK", "wall", 1) ? -errno : 0;
    if (!atomic_load(&rd->sh->clock->turn)) {
        fprintf(stderr, "trib: --clock fabric: the dilation of %s is unknown\n", rd->path);
        return -ENODATA;
    }
    why = clock_out_of_reach(command);
    if (why) {
        fprintf(stderr, "trib: --clock fabric: %s %s; its clocks would stay wall time\n", command,
                why);
        return -ENOEXEC;
    }
    snprintf(lib, sizeof(lib), "%.*slibtribclock.so", slash ? (int)(slash - o->library + 1) : 0,
             o->library);
    if (slash && access(lib, R_OK)) {
        fprintf(stderr, "trib: --clock fabric: found no %s: %s\n", lib, strerror(errno));
        return -ENOENT;
    }
    rc = preload_set(lib);
    if (!rc && setenv("TRIB_CLOCK", o->scale_waits ? "fabric,scale-waits" : "fabric", 1))
        rc = -errno;
    if (rc && rc != -EPERM)
        fprintf(stderr, "trib: --clock fabric: cannot set the environment for %s\n", lib);
    return rc;
}

/* Puts bin/ beside the library first in PATH: its programs replace those of the system that ask the
 * kernel. */
static int set_path(const char *library)
{
    const char *slash = strrchr(library, '/'), *old = getenv("PATH");
    char *dir, *both;
    size_t len;
    int rc;

    if (!slash || asprintf(&dir, "%.*s/bin", (int)(slash - library), library) < 0)
        return slash ? -ENOMEM : 0;
    len = strlen(dir);
    if (strchr(dir, ':') || access(dir, X_OK) ||
        (old && !strncmp(old, dir, len) && (!old[len] || old[len] == ':'))) {
        free(dir);
        return 0;
    }
    rc = asprintf(&both, "%s:%s", dir, old && *old ? old : "/usr/bin:/bin") < 0 ? -ENOMEM : 0;
    free(dir);
    if (rc)
        return rc;
    rc = setenv("PATH", both, 1) ? -errno : 0;
    free(both);
    return rc;
}

/* Sets the environment of the command, before a user namespace hides the owners of files. */
static int set_environment(const struct enter_opts *o, const struct rundir *rd,
                           const struct fabric *f, const char *host, const char *command)
{
    int rc = preload_set(o->library);

    if (!rc && setenv("TRIB_HOST", host, 1))
        rc = -errno;
    rc = rc ? rc : set_path(o->library);
    if (!rc && !o->no_nccl_env)
        rc = nccl_env_set(f, host);
    if (!rc)
        return set_clock(o, rd, command);
    fprintf(stderr,
            rc == -EINVAL ? "trib: found %s, expected a path without colons\n"
                          : "trib: cannot set the environment for %s\n",
            o->library);
    return rc;
}

/* Whether another machine of the conf runs the host; then says so. */
static bool is_elsewhere(const struct rundir *rd, const struct fabric *f,
                         const struct fab_node *host)
{
    uint16_t here = rundir_machine(rd, f);

    if (!rundir_is_away(here, host))
        return false;
    fprintf(stderr, "trib: host %s runs on machine %s of the conf; this one is %s\n", host->name,
            f->machines[host->machine].name, f->machines[here].name);
    return true;
}

static bool is_of_service(const char *run)
{
    if (!own_dir_is_service(run))
        return false;
    fprintf(stderr,
            "trib: found --isolate and the fabric of a service, %s, expected one of this user's: a "
            "service's gives each user its own hosts alone\n",
            run);
    return true;
}

int main(int argc, char **argv)
{
    const char *run = getenv("TRIB_RUN"), *what = NULL;
    struct enter_opts o = {.host = NULL};
    const struct fab_node *host;
    struct option_result r;
    struct rundir rd;
    struct fabric *f;
    int rc;

    if (!options_begin(&program, (void *[]){&o}, argc, argv, &r, &rc))
        return rc;
    if (!run || !*run)
        return options_wrong(&program,
                             "found no TRIB_RUN, expected a fabric's run directory in it");
    if (o.scale_waits && o.clock != CLOCK_FABRIC)
        return options_wrong(&program, "found --scale-waits, expected --clock fabric with it");
    argv += r.rest;
    if ((o.isolate && is_of_service(run)) || rundir_open(&rd, run, NULL, false))
        return 1;
    f = rundir_fabric(&rd);
    host = f ? find_host(f, o.host) : NULL;
    if (!host || is_elsewhere(&rd, f, host))
        return 1;
    /* An isolated program opens the file by its path, as it must get no descriptor of the run
     * directory. */
    rc = o.isolate ? 0 : token_hand_over(&rd, host->name);
    if (rc) {
        fprintf(
            stderr,
            rc == -EINVAL || rc == -ENOENT
                ? "trib: found no token of %s in %s/port/%s/host.token, expected the one that its "
                  "NIC made when the fabric came up\n"
                : "trib: cannot hand over the token of %s (%s/port/%s/host.token)\n",
            host->name, rd.path, host->name);
        return 1;
    }
    if (set_environment(&o, &rd, f, host->name, argv[0]))
        return 1;
    rc = o.isolate ? 0 : enter_host(&rd, host, o.library, &what);
    if (rc)
        fprintf(
            stderr,
            "trib: no private /sys and /dev for %s (%s: %s); verbs programs run, those that look "
            "there themselves (UCX, MPI) find no device\n",
            host->name, what, strerror(-rc));
    if (o.isolate) {
        enter_secret(f);
        rundir_close(&rd);
        return isolate_run(&rd, host, o.library, argv);
    }
    execvp(argv[0], argv);
    rc = errno == ENOENT ? 127 : 126; /* as shells do */
    fprintf(stderr, "trib: cannot run %s: %s\n", argv[0], strerror(errno));
    return rc;
}
