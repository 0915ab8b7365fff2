/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * trib-enter HOST LIBRARY CMD [ARG...]: what `trib exec` becomes. Runs CMD as a host of the fabric
 * whose run directory TRIB_RUN names: libtribverbs preloaded, sysfs and /dev as that host has them.
 * It replaces itself, so the pid, signals, descriptors and the exit code are CMD's.
 *
 * Where namespaces are forbidden CMD runs without one, after a notice: programs that only call
 * libibverbs miss nothing.
 */
#include "host/sandbox/sandbox.h"
#include "io/preload.h"
#include "io/rundir.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static const char usage[] = "usage: trib-enter HOST LIBRARY CMD [ARG...]   (TRIB_RUN: the fabric's "
                            "run directory; HOST @rank: by the launcher's rank)\n";

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
    if (n && n->kind == FAB_HOST)
        return n;
    fprintf(stderr, "trib: found host \"%s\", expected one of fabric %s", name, f->name);
    for (unsigned i = 0; i < f->n_hosts && i < 8; i++)
        fprintf(stderr, "%s%s", i ? ", " : ": ", f->nodes[f->hosts[i]].name);
    fputs(f->n_hosts > 8 ? ", ...\n" : "\n", stderr);
    return NULL;
}

int main(int argc, char **argv)
{
    const char *run = getenv("TRIB_RUN"), *what = NULL;
    const struct fab_node *host;
    struct rundir rd;
    struct fabric *f;
    int rc;

    if (argc < 4 || !run || !*run) {
        fputs(usage, stderr);
        return 2;
    }
    if (rundir_open(&rd, run, NULL, false))
        return 1;
    f = rundir_fabric(&rd);
    host = f ? find_host(f, argv[1]) : NULL;
    if (!host)
        return 1;
    rc = enter_host(&rd, host, argv[2], &what);
    if (rc)
        fprintf(
            stderr,
            "trib: no private /sys and /dev for %s (%s: %s); verbs programs run, those that look "
            "there themselves (UCX, MPI) find no device\n",
            host->name, what, strerror(-rc));
    rc = preload_set(argv[2]);
    if (rc || setenv("TRIB_HOST", host->name, 1)) {
        fprintf(stderr,
                rc == -EINVAL ? "trib: found %s, expected a path without colons\n"
                              : "trib: cannot set the environment for %s\n",
                argv[2]);
        return 1;
    }
    execvp(argv[3], argv + 3);
    rc = errno == ENOENT ? 127 : 126; /* as shells say it */
    fprintf(stderr, "trib: cannot run %s: %s\n", argv[3], strerror(errno));
    return rc;
}
