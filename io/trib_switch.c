/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * trib-switch: runs nodes of a fabric, by default all of them, until it receives SIGINT or SIGTERM.
 */
#include "base/options.h"
#include "system/own_path.h"
#include "io/access.h"
#include "io/loop.h"
#include "machine/page_server.h"
#include "io/pool.h"
#include "io/port/port.h"
#include "io/port/port_pci.h"
#include "machine/port_state.h"
#include "io/switch_nodes.h"
#include "io/telemetry/telemetry.h"
#include "machine/telemetry_client.h"
#include "io/telemetry/telemetry_server.h"
#include "io/trunk/trunk.h"
#include "protocols/host/call.h"
#include "protocols/host/load.h"
#include "roce/frame.h"
#include "switch/net/net.h"

#include <errno.h>
#include <fcntl.h>
#include <rte_errno.h>
#include <rte_mempool.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

struct options {
    const char *conf, *nodes, *proc, *machine, *run, *lcores, *ask;
    unsigned dilation, frames;
    uint64_t seed;
};

#define AT(f)   .offset = offsetof(struct options, f)
#define ROWS(a) (a), sizeof(a) / sizeof((a)[0])

static const struct option_row which[] = {
    {.name = "nodes",
     .arg = "LIST",
     AT(nodes),
     .type = OPTION_TEXT,
     .shown = "all",
     .help = "run these nodes only, separated by commas"},
    {.name = "proc",
     .arg = "NAME",
     AT(proc),
     .type = OPTION_TEXT,
     .help = "run the nodes that the conf assigns to this process; \"" FAB_TRUNK
             "\": join this machine to the others"},
    {.name = "machine",
     .arg = "NAME",
     AT(machine),
     .type = OPTION_TEXT,
     .shown = "by its addresses",
     .help = "the machine of the conf that this one is"},
};
static const struct option_row how[] = {
    {.name = "run",
     .arg = "DIR",
     AT(run),
     .type = OPTION_TEXT,
     .shown = "$XDG_RUNTIME_DIR/tributary-UID/FABRIC",
     .help = "run directory, created if missing"},
    {.name = "dilation",
     .arg = "N",
     AT(dilation),
     .type = OPTION_UINT,
     .min = 1,
     .max = UINT32_MAX,
     .shown = "the conf's",
     .help = "fabric time runs N times slower than wall time"},
    {.name = "lcores",
     .arg = "LIST",
     AT(lcores),
     .type = OPTION_TEXT,
     .help = "CPUs to run on: 1 or 0-3,6"},
    {.name = "frames",
     .arg = "N",
     AT(frames),
     .type = OPTION_UINT,
     .min = 1,
     .max = UINT32_MAX,
     .shown = "by ports",
     .help = "frames in the pool"},
    {.name = "seed",
     .arg = "N",
     AT(seed),
     .type = OPTION_U64,
     .max = UINT64_MAX,
     .initial = "0",
     .help = "seed of the links' faults"},
    {.name = "ask",
     .arg = "DIR",
     AT(ask),
     .type = OPTION_TEXT,
     .instead = "trib telemetry",
     .help = "send CONF as a telemetry command to the processes of run directory DIR"},
};
static const struct option_row words[] = {
    {.arg = "CONF",
     AT(conf),
     .type = OPTION_TEXT,
     .how = OPTION_REQUIRED,
     .help = "the fabric's conf file"},
};
static const struct option_group groups[] = {
    {"Nodes", ROWS(which)}, {"Process", ROWS(how)}, {NULL, NULL, 0}};
static const struct option_note exits[] = {
    {"0", "ended by SIGTERM or SIGINT"},
    {"1", "the process cannot start; the reason is on stderr"},
    {"2", "the command line is wrong"},
    {NULL, NULL},
};
static const struct option_program program = {
    .name = "trib-switch",
    .summary = "run the switches and NICs of an emulated fabric",
    .synopsis = "[OPTION...] CONF",
    .text = "Runs nodes of a fabric, all of them by default, until SIGTERM or SIGINT. trib up "
            "starts these processes; several of them share one fabric's nodes where the conf says "
            "so, or by --nodes. Links between processes are memif.",
    .words = words,
    .n_words = 1,
    .groups = groups,
    .exits = exits,
    .see = "trib(1), trib-plan(1)",
};

/* ---- life ---- */

static volatile sig_atomic_t stop;

static void on_signal(int sig)
{
    stop = sig;
}

static void take_signals(void)
{
    struct sigaction sa = {.sa_handler = on_signal};

    sigaction(SIGTERM, &sa, NULL);
    sigaction(SIGINT, &sa, NULL);
    signal(SIGPIPE, SIG_IGN);
    signal(SIGXFSZ, SIG_IGN); /* a file over the user's limit must give an error, not a signal */
}

static int set_cpus(const char *list)
{
    cpu_set_t set;
    const char *p = list;

    CPU_ZERO(&set);
    while (*p) {
        char *end;
        unsigned long a = strtoul(p, &end, 10), b = a;

        if (end != p && *end == '-') {
            p = end + 1;
            b = strtoul(p, &end, 10);
        }
        if (end == p || (*end && *end != ',') || b < a || b >= CPU_SETSIZE)
            break;
        for (; a <= b; a++)
            CPU_SET(a, &set);
        p = *end ? end + 1 : end;
        if (!*p && !sched_setaffinity(0, sizeof(set), &set))
            return 0;
    }
    fprintf(stderr,
            "trib-switch: --lcores: found \"%s\", expected CPUs of this machine: 1 or 0-3,6\n",
            list);
    return -EINVAL;
}

struct process {
    struct options opt;
    struct fabric *fab;
    struct rundir rd;
    struct page_server *pages;
    struct loop *loop;
    struct trunk *trunk; /* instead of a loop */
    struct rte_mempool *pool;
    bool *mine;
    unsigned proc;
    int pid_fd;
    bool refused; /* set-up failed at the last moment: it must not become ready */
    char name[FAB_NAME];
};

/* Makes the port states of our hosts: for a service all, because its users cannot make them for one
 * another; else it renews those that exist, left by a predecessor that died. */
static int make_states(const struct process *p)
{
    __typeof__(port_state_write) *put =
        own_dir_is_service(p->rd.path) ? port_state_write : port_state_renew;
    const struct fabric *f = p->fab;
    int rc = 0;

    for (unsigned h = 0; h < f->n_hosts; h++) {
        const struct fab_node *n = &f->nodes[f->hosts[h]];

        for (unsigned i = 0; p->mine[f->hosts[h]] && !n->outside && i < n->n_ports && !rc; i++)
            rc = put(&p->rd, n->name, i, true);
    }
    return rc;
}

static void say_ready(void *ctx)
{
    struct process *p = ctx;
    int fd;

    if (make_states(p) || access_give(&p->rd, p->fab, p->mine, p->name)) {
        p->refused = true;
        stop = SIGTERM;
        return;
    }
    fd = rundir_file(&p->rd, O_CREAT | O_TRUNC | O_WRONLY, "proc/%s.ready", p->name);
    if (fd >= 0) {
        dprintf(fd, "pid %d\ntelemetry %s/dpdk/%s/dpdk_telemetry.v2\nnodes", (int)getpid(),
                p->rd.path, p->name);
        for (uint16_t i = 0; i < p->fab->n_nodes; i++)
            if (p->mine[i])
                dprintf(fd, " %s", p->fab->nodes[i].name);
        dprintf(fd, "\n");
        close(fd);
        (void)access_give(&p->rd, p->fab, NULL, p->name);
    }
    printf("trib-switch: %s of %s is ready in %s, dilation %u\n", p->name, p->fab->name, p->rd.path,
           clock_dilation(p->rd.sh));
    fflush(stdout);
}

/* Adds a PCI device to EAL's args, as "-a ADDRESS": EAL has to know it when it starts. */
static void add_pci(const char *dev, const char **args, unsigned max, unsigned *n_args)
{
    if (!args || *n_args + 2 > max || !port_pci_is(dev))
        return;
    args[(*n_args)++] = "-a";
    args[(*n_args)++] = dev;
}

/* Counts the outside ports of our nodes, or of all nodes if mine is NULL. */
static unsigned find_outside(const struct fabric *f, const bool *mine, const char **args,
                             unsigned max, unsigned *n_args)
{
    unsigned n = 0;

    *n_args = 0;
    for (uint16_t i = 0; i < f->n_nodes; i++)
        for (uint16_t p = 0; (!mine || mine[i]) && p < f->nodes[i].n_ports; p++) {
            n += f->nodes[i].ports[p].external[0] != 0;
            add_pci(f->nodes[i].ports[p].external, args, max, n_args);
        }
    return n;
}

static int begin_trunk(struct process *p, uint32_t dilation)
{
    int machine = trunk_machine(p->fab, p->opt.machine);
    struct trunk_cfg cfg = {p->fab, &p->rd, (unsigned)machine, dilation};

    return machine < 0 ? machine : trunk_begin(&p->trunk, &p->pages, &cfg, &stop);
}

/* Shares the pages; the first process makes the clock. Outside ports force dilation 1. */
static int share_pages(struct process *p)
{
    struct page_server_cfg cfg = {.dir = p->rd.path,
                                  .name = p->name,
                                  .proc = p->proc,
                                  .fab = p->fab,
                                  .mine = p->mine,
                                  .dilation = p->opt.dilation};
    unsigned n_args;
    int rc;

    if (!cfg.dilation)
        cfg.dilation = p->fab->dilation ? p->fab->dilation : 1000;
    if (cfg.dilation > 1 && find_outside(p->fab, NULL, NULL, 0, &n_args)) {
        fprintf(stderr, "trib-switch: found dilation %u, ports to the outside force 1\n",
                cfg.dilation);
        cfg.dilation = 1;
    }
    if (switch_is_trunk(p->fab, p->opt.proc))
        return begin_trunk(p, cfg.dilation);
    cfg.joins = p->fab->n_machines && p->opt.proc ? &stop : NULL;
    rc = page_server_start(&p->pages, &p->rd.sh, &cfg);
    if (!rc && p->opt.dilation && clock_dilation(p->rd.sh) != cfg.dilation)
        fprintf(stderr,
                "trib-switch: found dilation %u, the clock that another process of this fabric "
                "has made runs at %u\n",
                cfg.dilation, clock_dilation(p->rd.sh));
    return rc;
}

static int switch_load(struct process *p)
{
    struct fab_errors *errs = calloc(1, sizeof(*errs));
    char why[PROTO_CONF_TEXT];
    int rc;

    if (!errs)
        return -ENOMEM;
    p->fab = fabric_load(p->opt.conf, errs);
    if (!p->fab)
        fab_errors_print(errs, stderr);
    free(errs);
    if (!p->fab)
        return -EINVAL;
    if (proto_setup(p->fab, why)) {
        fprintf(stderr, "%s\n", why);
        return -EINVAL;
    }
    p->mine = calloc(p->fab->n_nodes, sizeof(bool));
    if (!p->mine)
        return -ENOMEM;
    rc = switch_nodes(p->fab, p->opt.nodes, p->opt.proc, p->mine, &p->proc, p->name,
                      sizeof(p->name));
    if (rc)
        return rc;
    rc = rundir_open(&p->rd, p->opt.run, p->fab->name, true);
    if (!rc)
        rc = rundir_install(&p->rd, p->fab);
    if (!rc)
        rc = rundir_claim_proc(&p->rd, p->name, &p->pid_fd);
    return rc ? rc : share_pages(p);
}

/* Raises the soft limit of descriptors: each process of a host takes two, so the usual 1,024 is too low. */
static void allow_descriptors(void)
{
    struct rlimit l;

    if (!getrlimit(RLIMIT_NOFILE, &l) && l.rlim_cur < l.rlim_max) {
        l.rlim_cur = l.rlim_max;
        setrlimit(RLIMIT_NOFILE, &l);
    }
}

static int switch_start(struct process *p)
{
    unsigned frames = p->opt.frames ? p->opt.frames
                      : p->trunk    ? trunk_pool_frames(p->trunk)
                                    : loop_pool_frames(p->fab, p->mine);
    char telemetry[RUN_PATH + 64];
    struct loop_cfg lc = {.fab = p->fab, .rd = &p->rd, .mine = p->mine, .seed = p->opt.seed};
    const char *args[32];
    unsigned n_args, outside, ports = 0;
    int rc;

    allow_descriptors();
    if (p->opt.lcores && set_cpus(p->opt.lcores))
        return -EINVAL;
    snprintf(telemetry, sizeof(telemetry), "%s/%s", p->rd.path, p->name);
    outside = find_outside(p->fab, p->mine, args, RTE_DIM(args), &n_args);
    for (unsigned i = 0; p->trunk && i < FAB_MACHINE_DEVICES; i++) {
        const char *dev = trunk_device(p->trunk, i);

        ports += dev[0] != 0;
        add_pci(dev, args, RTE_DIM(args), &n_args);
    }
    rc = io_eal_init("trib-switch", telemetry, frames / 190 + (outside + ports ? 128 : 64), args,
                     n_args);
    if (rc)
        return rc;
    lc.pool = pool_create("frames", frames, 256, outside > 0);
    p->pool = lc.pool;
    lc.parts = lc.pool ? frame_parts_create("parts", NET_PARTS, 256) : NULL;
    if (!lc.parts) {
        fprintf(stderr, "trib-switch: no memory for %u frames: %s\n", frames,
                rte_strerror(rte_errno));
        return -ENOMEM;
    }
    if (p->trunk)
        return 0;
    rc = loop_create(&p->loop, &lc);
    if (rc)
        fprintf(stderr, "trib-switch: %s: %s\n", p->name, strerror(-rc));
    return rc;
}

static void serve_telemetry(const struct process *p)
{
    char path[RUN_PATH + 64];
    int rc = rundir_path(&p->rd, path, sizeof(path), "dpdk/%s/dpdk_telemetry.v2", p->name);

    rc = rc ? rc : telemetry_server_start(path);
    if (rc)
        fprintf(stderr, "trib-switch: %s: DPDK serves ten telemetry clients at most: %s\n", p->name,
                strerror(-rc));
}

static void switch_finish(struct process *p)
{
    telemetry_serve(NULL, NULL);
    loop_destroy(p->loop);
    trunk_end(p->trunk);
    if (p->pid_fd >= 0) {
        (void)rundir_unlink(&p->rd, "proc/%s.ready", p->name);
        (void)rundir_unlink(&p->rd, "proc/%s.pid", p->name);
        close(p->pid_fd);
        io_eal_cleanup();
    }
    page_server_stop(p->pages);
    if (*p->rd.path) /* the last process to end removes the directory */
        rundir_remove(&p->rd);
    rundir_close(&p->rd);
    free(p->mine);
    fabric_free(p->fab);
}

int main(int argc, char **argv)
{
    struct process p = {.pid_fd = -1};
    struct option_result r;
    int rc;

    if (!options_begin(&program, (void *[]){&p.opt}, argc, argv, &r, &rc))
        return rc;
    if (p.opt.ask)
        return telemetry_client_query("trib-switch", p.opt.ask, p.opt.conf,
                                      &(struct telemetry_whom){.proc = NULL});
    take_signals();
    proto_name_ends(1);
    umask(077); /* connecting to a socket takes write permission */
    rc = switch_load(&p);
    if (!rc)
        rc = switch_start(&p);
    if (!rc && p.trunk) {
        serve_telemetry(&p);
        rc = trunk_run(p.trunk, p.pool, &stop, say_ready, &p);
    } else if (!rc) {
        telemetry_serve(p.loop, p.mine);
        serve_telemetry(&p);
        loop_run(p.loop, &stop, say_ready, &p);
    }
    switch_finish(&p);
    return rc || p.refused ? 1 : 0;
}
