/* SPDX-License-Identifier: BSD-3-Clause */
#include "system/own_path.h"
#include "io/port/port.h"

#include <errno.h>
#include <rte_eal.h>
#include <rte_eal_memconfig.h>
#include <rte_errno.h>
#include <rte_lcore.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/mman.h>
#include <unistd.h>

#define MAX_ARGS 48

struct eal_args {
    char *argv[MAX_ARGS];
    int n;
};

static void arg(struct eal_args *a, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
static void arg(struct eal_args *a, const char *fmt, ...)
{
    va_list ap;

    va_start(ap, fmt);
    if (a->n < MAX_ARGS - 1 && vasprintf(&a->argv[a->n], fmt, ap) >= 0)
        a->n++;
    va_end(ap);
}

static unsigned free_huge_mb(void)
{
    FILE *f = fopen("/sys/kernel/mm/hugepages/hugepages-2048kB/free_hugepages", "re");
    unsigned n = 0;

    if (f && fscanf(f, "%u", &n) != 1)
        n = 0;
    if (f)
        fclose(f);
    return n * 2;
}

/* Names the CPUs of this thread, "0@(1,2,5)", so that EAL does not change its affinity. */
static void arg_lcores(struct eal_args *a)
{
    char list[2048];
    size_t len = 0;
    cpu_set_t set;

    if (sched_getaffinity(0, sizeof(set), &set))
        return;
    for (int c = 0; c < CPU_SETSIZE && len < sizeof(list) - 8; c++)
        if (CPU_ISSET(c, &set))
            len += (size_t)snprintf(list + len, sizeof(list) - len, "%s%d", len ? "," : "", c);
    arg(a, "--lcores=0@(%s)", list);
}

/*
 * EAL always makes <RUNTIME_DIRECTORY>/dpdk/<prefix>; this puts it into the fabric's run directory.
 * A program that has set the variable for itself keeps its value.
 */
static bool set_runtime_dir(const char *telemetry, char *prefix, size_t size)
{
    const char *slash = telemetry ? strrchr(telemetry, '/') : NULL, *run = getenv("TRIB_RUN");
    const char *host = getenv("TRIB_HOST");
    char dir[512], why[OWN_WHY];
    int fd;

    snprintf(prefix, size, "trib");
    if (slash) {
        snprintf(dir, sizeof(dir), "%.*s", (int)(slash - telemetry), telemetry);
        snprintf(prefix, size, "%s", slash + 1);
        return !setenv("RUNTIME_DIRECTORY", dir, 1);
    }
    if (run && host && own_dir_is_service(run)) { /* its users may write in port/HOST only */
        snprintf(dir, sizeof(dir), "%.200s/port/%.64s/eal.%u", run, host, (unsigned)geteuid());
        mkdir(dir, 0700);
        fd = own_dir_open(dir, false, why, sizeof(why));
        if (fd < 0) /* another user of the host made it */
            return false;
        close(fd);
        run = dir;
    }
    return run && !getenv("RUNTIME_DIRECTORY") && !setenv("RUNTIME_DIRECTORY", run, 0);
}

static bool names_pci(const char *const *extra, unsigned n)
{
    for (unsigned i = 0; i < n; i++)
        if (!strcmp(extra[i], "-a") || !strncmp(extra[i], "--allow", 7))
            return true;
    return false;
}

static int eal_init(const char *prog, const char *telemetry, unsigned mem_mb, bool huge,
                    const char *const *extra, unsigned n_extra)
{
    static struct eal_args a; /* EAL keeps pointers to the strings, and rearranges the array */
    char *argv[MAX_ARGS];
    char prefix[128];
    bool dir;
    int rc;

    dir = set_runtime_dir(telemetry, prefix, sizeof(prefix));
    a.n = 0;
    arg(&a, "%s", prog);
    /* Asks for twice the memory to be free: other processes of the fabric start at the same time. */
    if (huge && free_huge_mb() >= 2 * mem_mb) {
        arg(&a, "--in-memory");
    } else {
        arg(&a, "--no-huge");
        arg(&a, "--no-shconf");
        arg(&a, "-m");
        arg(&a, "%u", mem_mb);
    }
    arg(&a, "--file-prefix=%s", prefix);
    arg(&a, "--iova-mode=va");
    arg(&a, "--log-level=*:error");
    arg(&a, "--force-max-simd-bitwidth=512");
    if (!telemetry)
        arg(&a, "--no-telemetry");
    if (!names_pci(extra, n_extra))
        arg(&a, "--no-pci");
    arg_lcores(&a);
    for (unsigned i = 0; i < n_extra; i++)
        arg(&a, "%s", extra[i]);
    memcpy(argv, a.argv, sizeof(argv));
    rc = rte_eal_init(a.n, argv);
    if (dir)
        unsetenv("RUNTIME_DIRECTORY");
    if (rc < 0) {
        fprintf(stderr, "tributary: DPDK does not start with %u MB: %s\n", mem_mb,
                rte_strerror(rte_errno));
        return rte_errno ? -rte_errno : -EINVAL;
    }
    return 0;
}

static bool eal_done, eal_private;

int io_eal_init(const char *prog, const char *telemetry, unsigned mem_mb, const char *const *extra,
                unsigned n_extra)
{
    int rc = eal_done ? 0 : eal_init(prog, telemetry, mem_mb, true, extra, n_extra);

    eal_done |= rc == 0;
    return rc;
}

/* ---- memory that a fork copies ---- */

/* Replaces EAL's memory, as far as it is written (the data extents of its memfd), by private copies
 * at the same addresses. */
static int make_private(const struct rte_memseg_list *msl, void *arg)
{
    struct rte_memseg *ms = rte_mem_virt2memseg(msl->base_va, msl);
    int fd = ms ? rte_memseg_get_fd_thread_unsafe(ms) : -1;
    char *base = msl->base_va, *copy;
    off_t at = 0, end = 0;
    size_t used = 0;

    (void)arg;
    if (msl->external || !msl->len || fd < 0)
        return msl->external || !msl->len ? 0 : -1;
    while ((at = lseek(fd, end, SEEK_DATA)) >= 0 && (end = lseek(fd, at, SEEK_HOLE)) > at)
        used = (size_t)end;
    copy = used ? malloc(used) : NULL;
    if (used && !copy)
        return -1;
    for (end = 0; (at = lseek(fd, end, SEEK_DATA)) >= 0 && (end = lseek(fd, at, SEEK_HOLE)) > at;)
        memcpy(copy + at, base + at, (size_t)(end - at));
    if (mmap(base, msl->len, PROT_READ | PROT_WRITE, MAP_FIXED | MAP_PRIVATE | MAP_ANONYMOUS, -1,
             0) == MAP_FAILED) {
        free(copy);
        return -1;
    }
    for (end = 0; (at = lseek(fd, end, SEEK_DATA)) >= 0 && (end = lseek(fd, at, SEEK_HOLE)) > at;)
        memcpy(base + at, copy + at, (size_t)(end - at));
    free(copy);
    return ftruncate(fd, 0) ? -1 : 0;
}

int io_eal_init_private(const char *prog, unsigned mem_mb)
{
    int rc = eal_done ? 0 : eal_init(prog, NULL, mem_mb, false, NULL, 0);

    if (!rc && !eal_done)
        eal_private = rte_memseg_list_walk(make_private, NULL) == 0;
    eal_done |= rc == 0;
    return rc;
}

bool io_eal_is_private(void)
{
    return eal_private || !eal_done;
}

void io_eal_cleanup(void)
{
    rte_eal_cleanup();
}
