/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Removes a run directory: only files that its processes create, so a wrong path does no harm, and only
 * through descriptors (system/own_clear.h), so links put in their place by a host's process lead nowhere.
 */
#include "system/own_clear.h"
#include "system/own_path.h"
#include "machine/rundir.h"

#include <dirent.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

static bool ends_in(const char *name, const char *const *suffixes)
{
    const char *dot = strrchr(name, '.');

    for (; dot && *suffixes; suffixes++)
        if (!strcmp(dot, *suffixes))
            return true;
    return false;
}

static enum own_takes in_proc(const char *name)
{
    static const char *const files[] = {".pid", ".ready", ".page", NULL};

    return ends_in(name, files) ? OWN_FILE : OWN_LEAVE; /* logs stay */
}

static enum own_takes in_link(const char *name)
{
    static const char *const files[] = {".sock", NULL};

    return ends_in(name, files) ? OWN_FILE : OWN_LEAVE;
}

/* Removes sockets, locks and tokens, and <port>.counters and <port>.state with their contents. */
static enum own_takes in_host(const char *name)
{
    static const char *const files[] = {".sock", ".lock", ".token", NULL};
    static const char *const trees[] = {".counters", ".state", NULL};

    return ends_in(name, files) ? OWN_FILE : ends_in(name, trees) ? OWN_TREE : OWN_LEAVE;
}

/* Removes the files of a directory that `takes` selects, and then the directory if it is empty. */
static void sweep(int dir, const char *name, enum own_takes (*takes)(const char *))
{
    int fd = own_subdir_open(dir, name);

    if (fd < 0)
        return;
    (void)own_clear_if(fd, takes);
    close(fd);
    (void)own_rmdir(dir, name);
}

/* Sweeps port/<host>; keeps whatever is not a directory there. */
static void sweep_ports(int dir)
{
    int fd = own_subdir_open(dir, "port"), again = fd < 0 ? -1 : dup(fd);
    DIR *d = again < 0 ? NULL : fdopendir(again);
    const struct dirent *e;

    while (d && (e = readdir(d)))
        if (e->d_name[0] != '.')
            sweep(fd, e->d_name, in_host);
    if (d)
        closedir(d);
    if (fd >= 0)
        close(fd);
    (void)own_rmdir(dir, "port");
}

static bool anybody_runs(const struct rundir *rd, int dir)
{
    int fd = own_subdir_open(dir, "proc");
    DIR *d = fd < 0 ? NULL : fdopendir(fd);
    const struct dirent *e;
    bool found = false;
    char name[256];

    while (d && !found && (e = readdir(d))) {
        size_t len = strlen(e->d_name);

        if (len < 5 || len >= sizeof(name) || strcmp(e->d_name + len - 4, ".pid"))
            continue;
        snprintf(name, sizeof(name), "%.*s", (int)len - 4, e->d_name);
        found = rundir_proc_pid(rd, name) > 0;
    }
    if (d)
        closedir(d);
    return found;
}

void rundir_remove(const struct rundir *rd)
{
    /* dpdk: the sockets of DPDK's telemetry, dpdk/<process>/... */
    static const char *const rest[] = {"dpdk",        "machines",    "shared",
                                       "fabric.conf", "fabric.path", "machine"};
    char why[OWN_WHY];
    int dir = own_dir_open(rd->path, false, why, sizeof(why));

    if (dir >= 0 && !anybody_runs(rd, dir)) {
        sweep_ports(dir);
        sweep(dir, "link", in_link);
        sweep(dir, "proc", in_proc);
        for (unsigned i = 0; i < sizeof(rest) / sizeof(*rest); i++)
            (void)own_remove(dir, rest[i]);
        if (own_dir_is(rd->path, dir))
            (void)own_rmdir(AT_FDCWD, rd->path);
    }
    if (dir >= 0)
        close(dir);
}
