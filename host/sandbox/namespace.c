/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The namespace and its mounts. Nothing can be created in sysfs and devtmpfs. So a small tmpfs
 * covers a directory that lacks a name, and all former entries of the directory are bind-mounted
 * into it. An overlay would not work: without root, devices in it cannot be opened.
 *
 * A child process tries all this first, because a process cannot leave a new user namespace after a
 * failure.
 */
#include "host/sandbox/isolated_view.h"
#include "host/sandbox/sandbox.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

static int new_namespace(bool *user_too, const char **what)
{
    int rc;

    *what = "a mount namespace";
    if (unshare(CLONE_NEWNS)) {
        *what = "a user namespace";
        rc = isolated_user_namespace(CLONE_NEWNS);
        if (rc)
            return rc;
        *user_too = true;
    }
    /* Later mounts of the machine still appear here; mounts made here do not appear there. */
    *what = "mounts of its own";
    return mount(NULL, "/", NULL, MS_REC | MS_SLAVE, NULL) ? -errno : 0;
}

static int dir_cover(const char *dir)
{
    return mount("tributary", dir, "tmpfs", MS_NOSUID, "mode=755,size=4m") ? -errno : 0;
}

/* ---- covered directories ---- */

/* Binds one entry of the covered directory, on which fd is open, into the cover. Skips an entry
 * that was removed meanwhile or that this user may not see. */
static int restore(int fd, const char *dir, const char *name)
{
    char from[512], to[512], text[512];
    struct stat st;
    ssize_t n;
    int rc;

    if (fstatat(fd, name, &st, AT_SYMLINK_NOFOLLOW))
        return 0;
    if (snprintf(from, sizeof(from), "/proc/self/fd/%d/%s", fd, name) >= (int)sizeof(from) ||
        snprintf(to, sizeof(to), "%s/%s", dir, name) >= (int)sizeof(to))
        return -ENAMETOOLONG;
    if (S_ISLNK(st.st_mode)) {
        n = readlinkat(fd, name, text, sizeof(text) - 1);
        if (n < 0)
            return 0;
        text[n] = 0;
        return symlink(text, to) ? -errno : 0;
    }
    if (S_ISDIR(st.st_mode))
        rc = mkdir(to, 0755);
    else
        rc = mknod(to, S_IFREG | 0644, 0);
    if (rc)
        return -errno;
    if (!mount(from, to, NULL, MS_BIND | MS_REC, NULL))
        return 0;
    return errno == ENOENT || errno == EACCES ? 0 : -errno;
}

/* Covers dir, restores its entries, and makes the empty directories `names` (two at most; NULL ends
 * the list), which replace entries of these names. */
static int make_dirs(const char *dir, const char *const names[2])
{
    struct dirent *e;
    char path[256];
    int rc = 0, fd;
    DIR *d;

    d = opendir(dir);
    if (!d)
        return -errno;
    fd = open(dir, O_PATH | O_DIRECTORY | O_CLOEXEC);
    rc = fd < 0 ? -errno : dir_cover(dir);
    while (!rc && (e = readdir(d))) {
        bool ours = (names[0] && !strcmp(e->d_name, names[0])) ||
                    (names[1] && !strcmp(e->d_name, names[1]));

        if (!ours && strcmp(e->d_name, ".") && strcmp(e->d_name, ".."))
            rc = restore(fd, dir, e->d_name);
    }
    for (unsigned i = 0; i < 2 && names[i] && !rc; i++) {
        snprintf(path, sizeof(path), "%s/%s", dir, names[i]);
        rc = mkdir(path, 0755) ? -errno : 0;
    }
    closedir(d);
    if (fd >= 0)
        close(fd);
    return rc;
}

static bool is_dir(const char *path)
{
    struct stat st;

    return !stat(path, &st) && S_ISDIR(st.st_mode);
}

/* ---- what the host sees ---- */

static int show_sys(const struct rundir *rd, const struct fab_node *host, const char **what)
{
    static const char *const names[2] = {"infiniband", "infiniband_verbs"};
    bool there = is_dir("/sys/class/infiniband") && is_dir("/sys/class/infiniband_verbs");
    int rc;

    *what = "/sys/class/infiniband";
    if (there) {
        rc = dir_cover("/sys/class/infiniband");
        rc = rc ? rc : dir_cover("/sys/class/infiniband_verbs");
    } else {
        rc = make_dirs("/sys/class", names);
    }
    rc = rc ? rc : tree_infiniband(rd, host, "/sys/class/infiniband");
    return rc ? rc : tree_infiniband_verbs(host, "/sys/class/infiniband_verbs");
}

/* Adds the HCAs as PCI devices. The machine's own devices, such as GPUs, stay. */
static int show_pci(const struct fab_node *host, const char **what)
{
    static const char *const domain[2] = {"pci" PCI_DOMAIN ":00", NULL}, *const none[2];
    int rc;

    *what = "/sys/devices";
    rc = make_dirs("/sys/devices", domain);
    rc = rc ? rc : tree_pci(host);
    if (rc ||
        !is_dir("/sys/class/pci_bus")) /* without it, no program looks for PCI devices there */
        return rc;
    *what = "/sys/class/pci_bus";
    rc = make_dirs("/sys/class/pci_bus", none);
    return rc ? rc : tree_pci_buses(host, "/sys/class/pci_bus");
}

/* Adds trib0 to /sys/class/net. Interfaces that the machine gets later do not appear. */
static int show_net(const struct rundir *rd, const struct fab_node *host, const char **what)
{
    static const char *const names[2] = {"trib0", NULL};
    int rc;

    *what = "/sys/class/net";
    if (!is_dir("/sys/class/net"))
        return 0;
    rc = make_dirs("/sys/class/net", names);
    return rc ? rc : tree_net(rd, host, "/sys/class/net");
}

static int show_dev(const struct fab_node *host, const char **what)
{
    static const char *const names[2] = {"infiniband", NULL};
    char path[64];
    int rc;

    *what = "/dev/infiniband";
    rc = is_dir("/dev/infiniband") ? dir_cover("/dev/infiniband") : make_dirs("/dev", names);
    for (unsigned p = 0; p < host->n_ports && !rc; p++) {
        snprintf(path, sizeof(path), "/dev/infiniband/trib%u", p);
        rc = mknod(path, S_IFREG | 0600, 0) || mount("/dev/null", path, NULL, MS_BIND, NULL)
                 ? -errno
                 : 0;
    }
    return rc;
}

/*
 * A program that lost LD_PRELOAD uses the system's libibverbs, which finds the devices and looks
 * for their driver. libtribhint stands for that driver, and prints what is missing. A driver's file
 * name ends in the version of libibverbs' driver interface, so there is a link for each version.
 * Without the hint everything else works.
 */
static void show_hint(const char *lib)
{
    static const char dir[] = "/etc/libibverbs.d", *const names[2] = {"trib.driver.d", NULL};
    char hint[512], at[128];
    const char *slash = strrchr(lib, '/');
    FILE *f;

    snprintf(hint, sizeof(hint), "%.*slibtribhint.so", slash ? (int)(slash - lib + 1) : 0, lib);
    if (*hint != '/' || access(hint, R_OK) || !is_dir(dir) || make_dirs(dir, names))
        return;
    for (unsigned v = 16; v < 100; v++) {
        snprintf(at, sizeof(at), "%s/%s/hint-rdmav%u.so", dir, names[0], v);
        if (symlink(hint, at))
            return;
    }
    f = fopen("/etc/libibverbs.d/trib.driver", "w");
    if (!f)
        return;
    fprintf(f, "driver %s/%s/hint\n", dir, names[0]);
    fchmod(fileno(f), 0444);
    fclose(f);
}

/*
 * Programs that look for the fastest transport (UCX, NCCL) assume that processes with the same boot
 * id share a machine and its memory; emulated hosts do not. So each host has its own boot id: the
 * machine's, with the host's address at the end. Two user namespaces cannot read each other's
 * memory even on one host, so there the id holds the pid too. (The bound file keeps its name:
 * nothing can be mounted over a file without a name, so a nested host could not have its own.)
 */
static int show_boot_id(const struct fab_node *host, unsigned pid, const char **what)
{
    static const char real[] = "/proc/sys/kernel/random/boot_id",
                      ours[] = "/dev/infiniband/.boot_id";
    char id[64] = "";
    FILE *f;
    int rc;

    *what = real;
    f = fopen(real, "r");
    if (!f)
        return errno == ENOENT ? 0 : -errno;
    rc = fscanf(f, "%36s", id) == 1 && strlen(id) == 36 ? 0 : -EINVAL;
    fclose(f);
    if (rc)
        return rc;
    f = fopen(ours, "wx");
    if (!f)
        return -errno;
    fprintf(f, "%.19s%04x-%04x%08x\n", id, pid >> 16 & 0xffff, pid & 0xffff, host->ip);
    fchmod(fileno(f), 0444);
    return fclose(f) || mount(ours, real, NULL, MS_BIND, NULL) ? -errno : 0;
}

int show_host(const struct rundir *rd, const struct fab_node *host, const char *lib, unsigned pid,
              const char **what)
{
    int rc = show_sys(rd, host, what);

    rc = rc ? rc : show_pci(host, what);
    rc = rc ? rc : show_net(rd, host, what);
    if (!rc)
        show_hint(lib);
    rc = rc ? rc : show_dev(host, what);
    return rc ? rc : show_boot_id(host, pid, what);
}

static int namespace_enter(const struct rundir *rd, const struct fab_node *host, const char *lib,
                           const char **what)
{
    bool user_too = false;
    int rc = new_namespace(&user_too, what);

    return rc ? rc : show_host(rd, host, lib, user_too ? (unsigned)getpid() : 0, what);
}

/* ---- public ---- */

static int try_in_child(const struct rundir *rd, const struct fab_node *host, const char *lib,
                        const char **what)
{
    struct {
        const char *what; /* a string literal, whose address is the same in parent and child */
        int rc;
    } answer = {"a child process", -EPERM};
    int fd[2];
    pid_t pid;

    *what = answer.what;
    if (pipe2(fd, O_CLOEXEC))
        return -errno;
    pid = fork();
    if (!pid) {
        answer.rc = namespace_enter(rd, host, lib, &answer.what);
        _exit(write(fd[1], &answer, sizeof(answer)) != sizeof(answer));
    }
    close(fd[1]);
    if (pid < 0)
        answer.rc = -errno;
    else if (read(fd[0], &answer, sizeof(answer)) != sizeof(answer))
        answer.rc = -EPERM;
    close(fd[0]);
    while (pid > 0 && waitpid(pid, NULL, 0) < 0 && errno == EINTR)
        ;
    *what = answer.what;
    return answer.rc;
}

int enter_host(const struct rundir *rd, const struct fab_node *host, const char *lib,
               const char **what)
{
    char cwd[4096];
    int rc = try_in_child(rd, host, lib, what);

    rc = rc ? rc : namespace_enter(rd, host, lib, what);
    /* Enter the working directory anew: it may be below /dev or /sys/class, in a new mount. */
    if (!rc && getcwd(cwd, sizeof(cwd)) && chdir(cwd))
        return 0;
    return rc;
}
