/* SPDX-License-Identifier: BSD-3-Clause */
#include "io/live/live.h"

#include "machine/telemetry_client.h"

#include <dirent.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

void live_close(struct live_proc *p)
{
    if (p->fd >= 0)
        close(p->fd);
    p->fd = -1;
}

const char *live_proc_state(const struct live_proc *p)
{
    static const char *const states[] = {"starting", "silent", "ready"};

    if (!p->pid)
        return "ended";
    return p->state == LIVE_SILENT && process_is_stopped(p->pid) ? "stopped" : states[p->state];
}

static struct live_proc *live_procs_find(struct live_fabric *x, const char *name)
{
    for (unsigned i = 0; i < x->n_procs; i++)
        if (!strcmp(x->proc[i].name, name))
            return &x->proc[i];
    return NULL;
}

static void update(struct live_fabric *x, const char *name)
{
    struct live_proc *p = live_procs_find(x, name);
    char ready[2 * RUN_PATH];
    int pid = rundir_proc_pid(&x->rd, name);

    if (!p && x->n_procs < FAB_MAX_PROCS) {
        p = &x->proc[x->n_procs++];
        *p = (struct live_proc){.fd = -1};
        snprintf(p->name, sizeof(p->name), "%s", name);
    }
    if (!p)
        return;
    if (pid != p->pid) { /* a new process of that name */
        live_close(p);
        p->patience = 0;
        p->state = LIVE_STARTING;
    }
    p->pid = pid > 0 ? pid : 0;
    rundir_path(&x->rd, ready, sizeof(ready), "proc/%s.ready", name);
    if (!p->pid || access(ready, F_OK))
        p->state = LIVE_STARTING;
    else if (p->state == LIVE_STARTING)
        p->state = LIVE_READY;
}

bool live_procs(struct live_fabric *x)
{
    char path[2 * RUN_PATH], name[FAB_NAME];
    bool any = false;
    struct dirent *e;
    DIR *d;

    if (rundir_path(&x->rd, path, sizeof(path), "proc"))
        return false;
    d = opendir(path);
    while (d && (e = readdir(d))) {
        size_t len = strlen(e->d_name);

        if (len < 5 || len - 4 >= sizeof(name) || strcmp(e->d_name + len - 4, ".pid") != 0)
            continue;
        snprintf(name, sizeof(name), "%.*s", (int)len - 4, e->d_name);
        update(x, name);
    }
    if (d)
        closedir(d);
    for (unsigned i = 0; i < x->n_procs; i++)
        any |= x->proc[i].pid > 0;
    return any;
}
