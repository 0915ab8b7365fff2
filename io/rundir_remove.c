/* SPDX-License-Identifier: BSD-3-Clause */
/* Removes a run directory: only files that its processes create, so that a wrong path does no
 * harm. */
#include "io/rundir.h"
#include "base/own_path.h"

#include <dirent.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

/* Removes files of dead processes in sub/: sockets and locks. Logs stay, and so does the directory.
 * */
static void sweep(const struct rundir *rd, const char *sub, const char *const *suffixes)
{
    char path[RUN_PATH + 300];
    struct dirent *e;
    DIR *d;

    snprintf(path, sizeof(path), "%s/%s", rd->path, sub);
    d = opendir(path);
    while (d && (e = readdir(d))) {
        const char *dot = strrchr(e->d_name, '.');

        for (const char *const *s = suffixes; dot && *s; s++)
            if (!strcmp(dot, *s) && !rundir_path(rd, path, sizeof(path), "%s/%s", sub, e->d_name))
                unlink(path);
    }
    if (d)
        closedir(d);
    if (!rundir_path(rd, path, sizeof(path), "%s", sub))
        rmdir(path);
}

/* Removes a directory of files, path: not where a link of a host's user leads. */
static void sweep_all(const char *path)
{
    char why[OWN_WHY];
    struct dirent *e;
    int fd = own_dir_open(path, false, why, sizeof(why));
    DIR *d = fd < 0 ? NULL : fdopendir(fd);

    while (d && (e = readdir(d)))
        if (e->d_name[0] != '.')
            unlinkat(fd, e->d_name, 0);
    if (d)
        closedir(d);
    rmdir(path);
}

/* port/<host>: sockets, locks, <port>.counters with files and two directories of files, <port>.state. */
static void sweep_host(const struct rundir *rd, const char *host)
{
    static const char *const socks[] = {".sock", ".lock", ".token", NULL};
    static const char *const subs[] = {"/counters", "/hw_counters", ""};
    char path[RUN_PATH + 600], sub[300];
    struct dirent *e;
    DIR *d;

    if (rundir_path(rd, path, sizeof(path), "port/%s", host))
        return;
    d = opendir(path);
    while (d && (e = readdir(d))) {
        const char *dot = strrchr(e->d_name, '.');

        if (!dot || (strcmp(dot, ".counters") != 0 && strcmp(dot, ".state") != 0))
            continue;
        for (unsigned i = 0; i < 3; i++)
            if (!rundir_path(rd, path, sizeof(path), "port/%s/%s%s", host, e->d_name, subs[i]))
                sweep_all(path);
    }
    if (d)
        closedir(d);
    snprintf(sub, sizeof(sub), "port/%s", host);
    sweep(rd, sub, socks);
}

static void sweep_ports(const struct rundir *rd)
{
    char path[RUN_PATH + 16];
    struct dirent *e;
    DIR *d;

    if (rundir_path(rd, path, sizeof(path), "port"))
        return;
    d = opendir(path);
    while (d && (e = readdir(d)))
        if (e->d_name[0] != '.')
            sweep_host(rd, e->d_name);
    if (d)
        closedir(d);
    rmdir(path);
}

static bool anybody_runs(const struct rundir *rd)
{
    char path[RUN_PATH + 16], name[256];
    struct dirent *e;
    bool found = false;
    DIR *d;

    snprintf(path, sizeof(path), "%s/proc", rd->path);
    d = opendir(path);
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

/* Removes files of DPDK's telemetry: dpdk/<process>/... */
static void sweep_dpdk(const struct rundir *rd)
{
    char path[RUN_PATH + 600];
    struct dirent *e, *f;
    DIR *d, *sub;

    rundir_path(rd, path, sizeof(path), "dpdk");
    d = opendir(path);
    while (d && (e = readdir(d))) {
        if (e->d_name[0] == '.' || rundir_path(rd, path, sizeof(path), "dpdk/%s", e->d_name))
            continue;
        sub = opendir(path);
        while (sub && (f = readdir(sub)))
            if (f->d_name[0] != '.' &&
                !rundir_path(rd, path, sizeof(path), "dpdk/%s/%s", e->d_name, f->d_name))
                unlink(path);
        if (sub)
            closedir(sub);
        if (!rundir_path(rd, path, sizeof(path), "dpdk/%s", e->d_name))
            rmdir(path);
    }
    if (d)
        closedir(d);
    if (!rundir_path(rd, path, sizeof(path), "dpdk"))
        rmdir(path);
}

void rundir_remove(const struct rundir *rd)
{
    static const char *const files[] = {"shared", "fabric.conf", "fabric.path", "machine"};
    static const char *const socks[] = {".sock", NULL};
    static const char *const procs[] = {".pid", ".ready", ".page", NULL};
    char path[RUN_PATH + 32], why[OWN_WHY];
    int fd = own_dir_open(rd->path, false, why, sizeof(why));

    if (fd < 0)
        return;
    close(fd);
    if (anybody_runs(rd))
        return;
    sweep_ports(rd);
    sweep(rd, "link", socks);
    sweep(rd, "proc", procs);
    sweep_dpdk(rd);
    if (!rundir_path(rd, path, sizeof(path), "machines"))
        sweep_all(path);
    for (unsigned i = 0; i < sizeof(files) / sizeof(*files); i++)
        if (!rundir_path(rd, path, sizeof(path), "%s", files[i]))
            unlink(path);
    rmdir(rd->path);
}
