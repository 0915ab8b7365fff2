/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A small machine in a mount namespace of a child process: its own /sys, /dev and /etc, of known names. What is
 * done there is told as a text.
 */
#ifndef TESTS_SANDBOX_WORLD_H
#define TESTS_SANDBOX_WORLD_H

#include "host/sandbox/isolated_view.h"
#include "tests/host/sandbox/listing.h"
#include "tests/support/captured.h"

#include <fcntl.h>
#include <sched.h>
#include <signal.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/wait.h>

struct world {
    struct rundir rd;
    struct fab_node host;
    char lib[256]; /* of which libtribhint.so is beside */
    FILE *out;
};

static inline void world_need(int failed, const char *what)
{
    if (failed) {
        fprintf(stderr, "world: %s: %s\n", what, strerror(errno));
        _exit(77);
    }
}

static inline void world_dir(const char *path)
{
    world_need(mkdir(path, 0755), path);
}

static inline void world_text(const char *path, const char *text)
{
    FILE *f = fopen(path, "w");

    world_need(!f, path);
    fputs(text, f);
    world_need(fclose(f), path);
}

static inline void world_link(const char *to, const char *path)
{
    world_need(symlink(to, path), path);
}

static inline void world_tmpfs(const char *path)
{
    world_need(mount("world", path, "tmpfs", 0, "mode=755,size=1m"), path);
}

static inline void world_bind(const char *from, const char *to)
{
    world_need(mount(from, to, NULL, MS_BIND, NULL), to);
}

static inline void world_sys(void)
{
    world_tmpfs("/sys");
    world_dir("/sys/class");
    world_dir("/sys/class/block");
    world_text("/sys/class/block/size", "17\n");
    world_dir("/sys/class/net");
    world_dir("/sys/class/net/lo");
    world_link("../../devices/eth0", "/sys/class/net/eth0");
    world_dir("/sys/class/pci_bus");
    world_link("../../devices/pci0000:00", "/sys/class/pci_bus/0000:00");
    world_text("/sys/class/version", "1\n");
    world_dir("/sys/devices");
    world_dir("/sys/devices/mounted");
    world_tmpfs("/sys/devices/mounted"); /* as a part of the machine may be */
    world_text("/sys/devices/mounted/inner", "x\n");
    world_dir("/sys/devices/pci0000:00");
    world_text("/sys/devices/pci0000:00/class", "0x030000\n");
    world_dir("/sys/devices/system");
    world_dir("/sys/devices/system/node");
    world_dir("/sys/devices/system/node/node0");
}

static inline void world_dev(void)
{
    int null = open("/dev/null", O_PATH);
    char from[64];

    world_tmpfs("/dev");
    world_text("/dev/null", "");
    snprintf(from, sizeof(from), "/proc/self/fd/%d", null);
    world_bind(from, "/dev/null");
    world_link("/proc/self/fd", "/dev/fd");
    world_dir("/dev/shm");
    world_dir("/dev/pts");
    close(null);
}

/* The namespace; propagation as on machines that systemd runs. */
static inline void world_begin(struct world *w)
{
    world_need(geteuid() ? isolated_user_namespace(CLONE_NEWNS) : unshare(CLONE_NEWNS), "unshare");
    world_need(mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL), "private");
    world_sys();
    world_dev();
    world_tmpfs("/etc");
    world_dir("/etc/libibverbs.d");
    world_text("/etc/libibverbs.d/mlx5.driver", "driver mlx5\n");
    snprintf(w->lib, sizeof(w->lib), "%s/lib", w->rd.path);
    world_dir(w->lib);
    strcat(w->lib, "/libtribhint.so");
    world_text(w->lib, "");
    snprintf(w->lib, sizeof(w->lib), "%s/lib/libtribverbs.so", w->rd.path);
    world_need(mount(NULL, "/", NULL, MS_REC | MS_SHARED, NULL), "shared");
}

static inline void world_boot_id(const struct world *w, const char *text)
{
    char path[256];

    snprintf(path, sizeof(path), "%s/boot_id", w->rd.path);
    world_text(path, text);
    world_bind(path, "/proc/sys/kernel/random/boot_id");
}

/* What f does and prints in a child of a host of so many ports; NULL: no such namespace can be had here. */
static inline const char *world_do(void (*f)(struct world *), unsigned ports)
{
    static char text[65536 + 64];
    struct world w = {.host = listed_host(ports), .out = captured_file()};
    const char *said;
    int status;
    pid_t pid;

    listed_run(&w.rd);
    fflush(NULL);
    pid = fork();
    if (!pid) {
        prctl(PR_SET_PDEATHSIG, SIGKILL);
        alarm(100);
        world_begin(&w);
        f(&w);
        fflush(w.out);
        _exit(0);
    }
    if (pid < 0 || waitpid(pid, &status, 0) != pid)
        abort();
    said = captured_text(w.out);
    snprintf(text, sizeof(text), "%s%s", said,
             status == 0 || status == 77 << 8 ? "" : "it ended badly\n");
    listed_remove(w.rd.path);
    return status == 77 << 8 ? NULL : text;
}

#define ASSERT_WORLD(f, ports, expected)                                                           \
    do {                                                                                           \
        const char *said_ = world_do(f, ports);                                                    \
                                                                                                   \
        if (!said_)                                                                                \
            skip();                                                                                \
        assert_string_equal(said_, expected);                                                      \
    } while (0)

#endif
