/* SPDX-License-Identifier: BSD-3-Clause */
#include "machine/process_monitor.h"

#include "system/process.h"
#include "machine/suspect.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#define KEEPER_MS 1000 /* time for the keeper to record how a process ended */

struct watched {
    char name[FAB_NAME];
    int pid; /* 0: its death was reported */
    struct suspect stop;
    int64_t gone_ms; /* CLOCK_MONOTONIC when its lock was first found released; 0: held */
};

struct process_monitor {
    const struct rundir *rd;
    const struct fabric *fab;
    unsigned n, room;
    struct watched *proc;
    bool *used;                   /* by node: a host of the job, or a switch next to one */
    bool there[FAB_MAX_MACHINES]; /* machines that have been there since the job started */
};

static void process_monitor_add(struct process_monitor *w, const char *name, size_t len)
{
    struct watched *p = &w->proc[w->n];

    if (len >= sizeof(p->name) || w->n == w->room)
        return;
    memcpy(p->name, name, len);
    p->name[len] = '\0';
    p->pid = rundir_proc_pid(w->rd, p->name);
    w->n += p->pid > 0;
}

static void use_host(struct process_monitor *w, uint16_t node)
{
    const struct fab_node *host = &w->fab->nodes[node];

    w->used[node] = true;
    for (unsigned p = 0; p < host->n_ports; p++)
        if (host->ports[p].link != FAB_NONE)
            w->used[host->ports[p].peer_node] = true;
}

int process_monitor_start(struct process_monitor **out, const struct rundir *rd,
                          const struct fabric *fab, const uint16_t *host_of_rank, unsigned nranks)
{
    struct process_monitor *w = calloc(1, sizeof(*w));
    char path[RUN_PATH + 16];
    struct dirent *e;
    DIR *dir;

    *out = w;
    if (!w)
        return -ENOMEM;
    w->rd = rd;
    w->fab = fab;
    w->room = fab->n_nodes; /* each process runs at least one node */
    w->proc = calloc(w->room, sizeof(*w->proc));
    w->used = calloc(fab->n_nodes, sizeof(*w->used));
    if (!w->proc || !w->used)
        return -ENOMEM;
    for (unsigned r = 0; r < nranks; r++)
        use_host(w, fab->hosts[host_of_rank[r]]);
    if (rundir_path(rd, path, sizeof(path), "proc") || !(dir = opendir(path)))
        return -ENOENT;
    while ((e = readdir(dir)) != NULL) {
        size_t len = strlen(e->d_name);

        if (len > 4 && !strcmp(e->d_name + len - 4, ".pid"))
            process_monitor_add(w, e->d_name, len - 4);
    }
    closedir(dir);
    for (unsigned m = 0; m < fab->n_machines; m++)
        w->there[m] = rundir_machine_there(rd, fab->machines[m].name);
    return w->n ? 0 : -ENOENT;
}

void process_monitor_stop(struct process_monitor *w)
{
    if (!w)
        return;
    free(w->proc);
    free(w->used);
    free(w);
}

/* The conf's entry of the process; NULL: it was started with --nodes, and has the name of its first node. */
static const struct fab_proc *proc_of(const struct process_monitor *w, const struct watched *p)
{
    for (unsigned i = 0; i < w->fab->n_procs; i++)
        if (!strcmp(w->fab->procs[i].name, p->name))
            return &w->fab->procs[i];
    return NULL;
}

static bool is_needed(const struct process_monitor *w, const struct fab_proc *fp)
{
    for (unsigned i = 0; fp && i < fp->n_nodes; i++)
        if (w->used[fp->nodes[i]])
            return true;
    return !fp;
}

/* Reads how the process ended, as its trib-keep has recorded; "": nothing is recorded. */
static void how_it_ended(const struct process_monitor *w, const struct watched *p, char *how,
                         size_t size)
{
    int fd = rundir_file(w->rd, O_RDONLY, "proc/%s.ended", p->name);
    FILE *f = fd < 0 ? NULL : fdopen(fd, "r");

    *how = 0;
    if (f && fgets(how, (int)size, f))
        how[strcspn(how, "\n")] = 0;
    if (f)
        fclose(f);
}

static void process_monitor_describe(const struct process_monitor *w, const struct watched *p,
                                     const char *what, char *text, size_t size)
{
    const struct fab_proc *fp = proc_of(w, p);
    size_t at;

    if (p->pid == PROCESS_AWAY)
        at = (size_t)snprintf(text, size, "trib-switch %s (in another PID namespace", p->name);
    else
        at = (size_t)snprintf(text, size, "trib-switch %s (pid %d", p->name, p->pid);
    for (unsigned i = 0; fp && i < fp->n_nodes && at + FAB_NAME + 24 < size; i++)
        at += (size_t)snprintf(text + at, size - at, "%s%s", i ? ", " : ", nodes ",
                               w->fab->nodes[fp->nodes[i]].name);
    snprintf(text + at, size - at, ") %s", what);
}

/* Whether the keeper has had time to record how it ended: on a busy machine it does so some time after
 * the process's lock is released. */
static bool keeper_had_time(struct watched *p)
{
    struct timespec t;
    int64_t now;

    clock_gettime(CLOCK_MONOTONIC, &t);
    now = (int64_t)t.tv_sec * 1000 + t.tv_nsec / 1000000;
    if (!p->gone_ms)
        p->gone_ms = now;
    return now - p->gone_ms > KEEPER_MS;
}

static bool machine_gone(struct process_monitor *w, char *text, size_t size, bool *needed)
{
    for (unsigned m = 0; m < w->fab->n_machines; m++) {
        const char *name = w->fab->machines[m].name;

        if (!w->there[m] || rundir_machine_there(w->rd, name))
            continue;
        w->there[m] = *needed = false;
        for (unsigned i = 0; i < w->fab->n_procs; i++)
            *needed |= w->fab->procs[i].machine == m && is_needed(w, &w->fab->procs[i]);
        snprintf(text, size, "machine %s is gone: this one hears nothing of it", name);
        return true;
    }
    return false;
}

/* The kernel releases the lock on a pid file when its process ends, even before it is reaped. */
bool process_monitor_died(struct process_monitor *w, char *text, size_t size, bool *needed)
{
    for (unsigned i = 0; i < w->n; i++) {
        struct watched *p = &w->proc[i];
        int pid = p->pid ? rundir_proc_pid(w->rd, p->name) : 0;

        if (pid >= 0 && pid != p->pid) {
            char how[96], what[112];

            how_it_ended(w, p, how, sizeof(how));
            if (!*how && !keeper_had_time(p))
                continue;
            snprintf(what, sizeof(what), "has died%s%s", *how ? ": " : "", how);
            process_monitor_describe(w, p, what, text, size);
            *needed = is_needed(w, proc_of(w, p));
            p->pid = 0;
            return true;
        }
    }
    return machine_gone(w, text, size, needed);
}

bool process_monitor_waits(const struct process_monitor *w)
{
    for (unsigned i = 0; i < w->n; i++)
        if (w->proc[i].pid && w->proc[i].gone_ms)
            return true;
    return false;
}

void process_monitor_look(struct process_monitor *w, int64_t now_ms)
{
    for (unsigned i = 0; i < w->n; i++)
        if (w->proc[i].pid)
            suspect_note(&w->proc[i].stop, process_is_stopped(w->proc[i].pid), now_ms);
}

bool process_monitor_stopped(const struct process_monitor *w, int64_t now_ms, char *text,
                             size_t size, bool *stuck)
{
    char how[64];

    for (unsigned i = 0; i < w->n; i++) {
        if (!suspect_says(&w->proc[i].stop, now_ms, how, sizeof(how)))
            continue;
        process_monitor_describe(w, &w->proc[i], how, text, size);
        *stuck = suspect_is_stuck(&w->proc[i].stop, now_ms);
        return true;
    }
    return false;
}
