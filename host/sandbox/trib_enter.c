/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * trib-enter HOST LIBRARY CMD [ARG...]: what `trib exec` becomes. Runs CMD as a host of the fabric
 * whose run directory TRIB_RUN names: libtribverbs preloaded, sysfs and /dev as that host has them.
 * It replaces itself, so the pid, signals, descriptors and the exit code are CMD's.
 *
 * Where namespaces are forbidden CMD runs without one, after a notice: programs that only call
 * libibverbs miss nothing. With --isolate (isolate.h) that is an error.
 */
#include "base/options.h"
#include "host/sandbox/isolate.h"
#include "host/sandbox/sandbox.h"
#include "io/preload.h"
#include "io/rundir.h"
#include "io/token.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

struct enter_opts {
    const char *host, *library;
    bool isolate;
};

#define AT(f) .offset = offsetof(struct enter_opts, f)

static const struct option_row words[] = {
    {.arg = "HOST",
     AT(host),
     .type = OPTION_TEXT,
     .how = OPTION_REQUIRED,
     .help = "a host of the fabric; @rank: by the rank that mpirun or srun gave the process"},
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
static const struct option_group groups[] = {{"Namespaces", how, 1}, {NULL, NULL, 0}};
static const struct option_note exits[] = {
    {"1", "there is no such fabric or host"},
    {"2", "the command line is wrong"},
    {"126, 127", "CMD cannot be run, or is not there"},
    {"another one", "that of CMD"},
    {NULL, NULL},
};
static const struct option_note environment[] = {
    {"TRIB_RUN", "the run directory of the fabric"},
    {NULL, NULL},
};
static const struct option_program program = {
    .name = "trib-enter",
    .summary = "run a program as a host of an emulated fabric",
    .synopsis = "[--isolate] HOST LIBRARY CMD [ARG...]",
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

/* Hosts in order of the conf, round robin. */
static const struct fab_node *host_of_rank(const struct fabric *f)
{
    static const char *const names[] = {"OMPI_COMM_WORLD_RANK", "PMIX_RANK", "PMI_RANK",
                                        "SLURM_PROCID"};
    char *end;

    for (unsigned i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
        const char *s = getenv(names[i]);
        unsigned long rank = s ? strtoul(s, &end, 10) : 0;

        if (s && end != s && !*end)
            return &f->nodes[f->hosts[rank % f->n_hosts]];
    }
    fprintf(stderr, "trib: found no rank for @rank, expected one in OMPI_COMM_WORLD_RANK, "
                    "PMIX_RANK, PMI_RANK or SLURM_PROCID: start trib exec by mpirun or srun\n");
    return NULL;
}

static const struct fab_node *find_host(const struct fabric *f, const char *name)
{
    const struct fab_node *n;

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
    fputs(f->n_hosts > 8 ? ", ...\n" : "\n", stderr);
    return NULL;
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
    argv += r.rest;
    if (rundir_open(&rd, run, NULL, false))
        return 1;
    f = rundir_fabric(&rd);
    host = f ? find_host(f, o.host) : NULL;
    if (!host)
        return 1;
    /* An isolated program finds the file by its path; it gets no descriptor of the run directory. */
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
    rc = preload_set(o.library); /* here, where owners of files are known */
    if (rc || setenv("TRIB_HOST", host->name, 1)) {
        fprintf(stderr,
                rc == -EINVAL ? "trib: found %s, expected a path without colons\n"
                              : "trib: cannot set the environment for %s\n",
                o.library);
        return 1;
    }
    rc = o.isolate ? 0 : enter_host(&rd, host, o.library, &what);
    if (rc)
        fprintf(
            stderr,
            "trib: no private /sys and /dev for %s (%s: %s); verbs programs run, those that look "
            "there themselves (UCX, MPI) find no device\n",
            host->name, what, strerror(-rc));
    if (o.isolate) {
        rundir_close(&rd);
        return isolate_run(&rd, host, o.library, argv);
    }
    execvp(argv[0], argv);
    rc = errno == ENOENT ? 127 : 126; /* as shells say it */
    fprintf(stderr, "trib: cannot run %s: %s\n", argv[0], strerror(errno));
    return rc;
}
