/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * This process makes the mounts in a user namespace in which it has every capability. A program
 * that keeps these (root does, over an exec) could unmount them. So init then enters a second user
 * and mount namespace: the kernel locks mounts that a less privileged namespace inherits, for the
 * program and for any namespace that it creates.
 *
 * Rejected: covering the run directory's files one by one. Sockets of further slots are created on
 * demand, so the host's directory is bound as a whole.
 */
#include "host/sandbox/isolated_view.h"

#include "host/sandbox/terminal.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <unistd.h>

/* ---- namespaces ---- */

static int write_file(const char *path, const char *text)
{
    int fd = open(path, O_WRONLY | O_CLOEXEC);
    ssize_t n = fd < 0 ? -1 : write(fd, text, strlen(text));
    int rc = n == (ssize_t)strlen(text) ? 0 : -errno;

    if (fd >= 0)
        close(fd);
    return rc;
}

int isolated_user_namespace(int others)
{
    char uid[64], gid[64];
    int rc;

    snprintf(uid, sizeof(uid), "%u %u 1", geteuid(), geteuid());
    snprintf(gid, sizeof(gid), "%u %u 1", getegid(), getegid());
    if (unshare(CLONE_NEWUSER | others))
        return -errno;
    rc = write_file("/proc/self/setgroups", "deny");
    rc = rc ? rc : write_file("/proc/self/uid_map", uid);
    return rc ? rc : write_file("/proc/self/gid_map", gid);
}

static int isolated_view_show(const char *from, const char *to, bool is_dir)
{
    int fd;

    if (is_dir) {
        if (mkdir(to, 0700))
            return -errno;
    } else {
        fd = open(to, O_CREAT | O_EXCL | O_WRONLY | O_CLOEXEC, 0600);
        if (fd < 0)
            return -errno;
        close(fd);
    }
    return mount(from, to, NULL, MS_BIND | MS_REC, NULL) ? -errno : 0;
}

static int view_cover(const char *dir, const char *mode)
{
    return mount("tributary", dir, "tmpfs", MS_NOSUID | MS_NODEV, mode) ? -errno : 0;
}

/* ---- the run directory ---- */

/* Remounts path read-only. It repeats the other flags, which the kernel does not let an inherited
 * mount lose. */
static int make_read_only(const char *path)
{
    unsigned long flags = MS_REMOUNT | MS_BIND | MS_RDONLY;
    struct statvfs st;

    if (statvfs(path, &st))
        return -errno;
    flags |= st.f_flag & ST_NOSUID ? MS_NOSUID : 0;
    flags |= st.f_flag & ST_NODEV ? MS_NODEV : 0;
    flags |= st.f_flag & ST_NOEXEC ? MS_NOEXEC : 0;
    flags |= st.f_flag & ST_NOATIME ? MS_NOATIME : 0;
    flags |= st.f_flag & ST_NODIRATIME ? MS_NODIRATIME : 0;
    flags |= st.f_flag & ST_RELATIME ? MS_RELATIME : 0;
    return mount(NULL, path, NULL, flags, NULL) ? -errno : 0;
}

/* Shows a file of the run directory, on which fd is open, if it exists. All are read-only, except
 * for the host's own directory. */
static int show_file(int fd, const char *dir, const char *name)
{
    bool writable = !strncmp(name, "port/", 5);
    int rc;
    char from[64 + RUN_PATH], to[3 * RUN_PATH];
    struct stat st;

    if (fstatat(fd, name, &st, AT_SYMLINK_NOFOLLOW))
        return errno == ENOENT ? 0 : -errno;
    if (S_ISLNK(st.st_mode)) /* the mount would follow it */
        return -EPERM;
    snprintf(from, sizeof(from), "/proc/self/fd/%d/%s", fd, name);
    snprintf(to, sizeof(to), "%s/%s", dir, name);
    rc = isolated_view_show(from, to, S_ISDIR(st.st_mode));
    return rc || writable || S_ISSOCK(st.st_mode) ? rc : make_read_only(to);
}

/* Shows the sockets at which trib-switch processes hand out clock and pages. */
static int show_page_sockets(int fd, const char *dir)
{
    int sub = openat(fd, "proc", O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC), rc = 0;
    DIR *d = sub < 0 ? NULL : fdopendir(sub);
    struct dirent *e;
    char name[300];

    while (d && !rc && (e = readdir(d))) {
        const char *dot = strrchr(e->d_name, '.');

        if (!dot || strcmp(dot, ".page") != 0)
            continue;
        snprintf(name, sizeof(name), "proc/%s", e->d_name);
        rc = strlen(e->d_name) < RUN_PATH - 8 ? show_file(fd, dir, name) : -ENAMETOOLONG;
    }
    if (d)
        closedir(d);
    return rc;
}

static int show_run(int fd, const char *dir, const char *host)
{
    static const char *const subs[] = {"proc", "port", "link"};
    static const char *const files[] = {"fabric.conf", "fabric.path"};
    char path[2 * RUN_PATH];
    int rc = 0;

    for (unsigned i = 0; i < 3 && !rc; i++) {
        snprintf(path, sizeof(path), "%s/%s", dir, subs[i]);
        rc = mkdir(path, 0700) ? -errno : 0;
    }
    for (unsigned i = 0; i < 2 && !rc; i++)
        rc = show_file(fd, dir, files[i]);
    rc = rc ? rc : show_page_sockets(fd, dir);
    snprintf(path, sizeof(path), "port/%s", host);
    return rc ? rc : show_file(fd, dir, path);
}

/* Covers the directory of this user's fabrics in `parent`, unless it is `but`. */
static int cover_base(const char *parent, const char *but)
{
    char base[RUN_PATH + 64];
    struct stat st;

    if (rundir_default(base, sizeof(base), parent, NULL) || !strcmp(base, but) ||
        lstat(base, &st) || !S_ISDIR(st.st_mode))
        return 0;
    return view_cover(base, "mode=700,size=64k");
}

/*
 * Hides this user's run directories, and shows of this fabric's what the host needs. If that one is
 * in a directory of all fabrics (tributary-UID), that directory is covered, else the run directory
 * itself.
 */
static int hide_run(const struct rundir *rd, const char *host, const char **what)
{
    char base[RUN_PATH], *slash;
    const char *xdg = getenv("XDG_RUNTIME_DIR");
    int fd = open(rd->path, O_PATH | O_DIRECTORY | O_CLOEXEC), rc;

    *what = rd->path;
    if (fd < 0)
        return -errno;
    snprintf(base, sizeof(base), "%s", rd->path);
    slash = strrchr(base, '/');
    if (slash) {
        *slash = 0;
        slash = strrchr(base, '/');
        if (!slash || strncmp(slash, "/tributary-", 11) != 0)
            snprintf(base, sizeof(base), "%s", rd->path);
    }
    rc = cover_base("/tmp", base);
    if (!rc && xdg && *xdg && strcmp(xdg, "/tmp") != 0)
        rc = cover_base(xdg, base);
    rc = rc ? rc : view_cover(base, "mode=700,size=4m");
    if (!rc && strcmp(base, rd->path) != 0)
        rc = mkdir(rd->path, 0700) ? -errno : 0;
    rc = rc ? rc : show_run(fd, rd->path, host);
    close(fd);
    return rc;
}

int isolated_mounts(const struct rundir *rd, const struct fab_node *host, const char *lib,
                    unsigned pid, const char **what)
{
    char cwd[4096] = "/";
    int rc;

    if (!getcwd(cwd, sizeof(cwd)) || chdir("/")) /* leave directories that will be covered */
        snprintf(cwd, sizeof(cwd), "/");
    *what = "mounts of its own";
    if (mount(NULL, "/", NULL, MS_REC | MS_SLAVE, NULL))
        return -errno;
    *what = "a /proc of its own";
    if (mount("proc", "/proc", "proc", MS_NOSUID | MS_NODEV | MS_NOEXEC, NULL))
        return -errno;
    rc = show_host(rd, host, lib, pid, what);
    if (!rc) {
        *what = "a /dev/shm of its own";
        rc = view_cover("/dev/shm", "mode=1777");
        rc = rc == -ENOENT ? 0 : rc;
    }
    rc = rc ? rc : hide_run(rd, host->name, what);
    if (!rc) {
        *what = "a /dev/pts of its own";
        rc = terminal_mounts();
    }
    if (rc)
        return rc;
    *what = "a second user namespace";
    rc = isolated_user_namespace(CLONE_NEWNS);
    if (!rc && chdir(cwd) && chdir("/"))
        rc = -errno;
    return rc;
}
