/* SPDX-License-Identifier: BSD-3-Clause */
#include "io/live/live.h"

#include "system/own_path.h"

#include <dirent.h>
#include <fcntl.h>
#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static void look_free(struct live_look *k)
{
    live_groups_free(k);
    free(k->dir);
    free(k->slot);
    *k = (struct live_look){0};
}

static void live_fabric_forget(struct live_fabric *x)
{
    if (!x)
        return;
    for (unsigned i = 0; i < x->n_procs; i++)
        live_close(&x->proc[i]);
    look_free(&x->now);
    look_free(&x->before);
    json_decref(x->totals);
    json_decref(x->aggregation);
    free(x->faults);
    if (x->f)
        fabric_free(x->f);
    free(x);
}

/* Loads the conf that the fabric's processes have loaded. False: it cannot be read. */
static bool live_fabric_load(struct live_fabric *x, const struct stat *st)
{
    x->f = rundir_fabric(&x->rd);
    x->conf_time = st->st_mtim;
    x->conf_inode = st->st_ino;
    if (x->f)
        x->faults = calloc(x->f->n_links + 1u, sizeof(*x->faults));
    return x->f && x->faults;
}

static struct live_fabric *live_known(struct live *l, const char *path)
{
    for (unsigned i = 0; i < l->n; i++)
        if (!strcmp(l->fab[i]->rd.path, path))
            return l->fab[i];
    return NULL;
}

static void live_fabric_drop(struct live *l, struct live_fabric *x)
{
    unsigned i = 0;

    while (i < l->n && l->fab[i] != x)
        i++;
    for (; i + 1 < l->n; i++)
        l->fab[i] = l->fab[i + 1];
    l->n--;
    live_fabric_forget(x);
}

static struct live_fabric *live_add(struct live *l, const char *path, const struct stat *st)
{
    struct live_fabric *x = l->n < LIVE_FABRICS ? calloc(1, sizeof(*x)) : NULL;
    unsigned at = l->n;

    if (!x)
        return NULL;
    snprintf(x->rd.path, sizeof(x->rd.path), "%s", path);
    if (!live_procs(x) || !live_fabric_load(x, st)) {
        live_fabric_forget(x);
        return NULL;
    }
    for (; at > 0 && strcmp(l->fab[at - 1]->rd.path, path) > 0; at--)
        l->fab[at] = l->fab[at - 1];
    l->fab[at] = x;
    l->n++;
    return x;
}

/* Looks at a run directory, and reads it if its fabric is up. */
static void look_at(struct live *l, const char *path)
{
    struct live_fabric *x = live_known(l, path);
    char why[OWN_WHY];
    struct stat st;
    int dir = own_dir_open(path, false, why, sizeof(why)), fd;

    fd = dir < 0 ? -1 : own_file_open(dir, "fabric.conf", O_RDONLY);
    if (dir >= 0)
        close(dir);
    if (fd < 0 || fstat(fd, &st))
        st = (struct stat){0};
    if (fd >= 0)
        close(fd);
    if (x && (x->conf_inode != st.st_ino || x->conf_time.tv_nsec != st.st_mtim.tv_nsec ||
              x->conf_time.tv_sec != st.st_mtim.tv_sec || !live_procs(x))) {
        live_fabric_drop(l, x); /* another fabric runs there, or none */
        x = NULL;
    }
    if (!x && fd >= 0)
        x = live_add(l, path, &st);
    if (!x)
        return;
    x->seen = true;
    live_read(x, l->what);
}

static void look_at_all(struct live *l)
{
    char base[RUN_PATH], path[RUN_PATH];
    struct dirent *e;
    DIR *d;

    d = rundir_default(base, sizeof(base), NULL, NULL) ? NULL : opendir(base);
    while (d && (e = readdir(d)))
        if (e->d_name[0] != '.' &&
            snprintf(path, sizeof(path), "%s/%s", base, e->d_name) < (int)sizeof(path))
            look_at(l, path);
    if (d)
        closedir(d);
}

void live_init(struct live *l, const char *dir, unsigned what)
{
    const char *run = getenv("TRIB_RUN");

    *l = (struct live){.dir = dir ? dir : run && *run ? run : NULL, .what = what};
}

void live_look(struct live *l)
{
    for (unsigned i = 0; i < l->n; i++)
        l->fab[i]->seen = false;
    if (l->dir)
        look_at(l, l->dir);
    else
        look_at_all(l);
    for (unsigned i = l->n; i-- > 0;)
        if (!l->fab[i]->seen)
            live_fabric_drop(l, l->fab[i]);
}

void live_end(struct live *l)
{
    while (l->n)
        live_fabric_drop(l, l->fab[0]);
}
