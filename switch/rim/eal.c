#include "switch/rim/port.h"

#include <errno.h>
#include <rte_eal.h>
#include <rte_errno.h>
#include <rte_lcore.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
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

/* The CPUs that this thread may use, so that EAL leaves them as they are: "0@(1,2,5)". */
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
 * EAL makes <RUNTIME_DIRECTORY>/dpdk/<prefix> in any case; it shall be inside the fabric's run
 * directory. A program that has the variable set for itself keeps it.
 */
static bool set_runtime_dir(const char *telemetry, char *prefix, size_t size)
{
    const char *slash = telemetry ? strrchr(telemetry, '/') : NULL, *run = getenv("TRIB_RUN");
    char dir[512];

    snprintf(prefix, size, "trib");
    if (slash) {
        snprintf(dir, sizeof(dir), "%.*s", (int)(slash - telemetry), telemetry);
        snprintf(prefix, size, "%s", slash + 1);
        return !setenv("RUNTIME_DIRECTORY", dir, 1);
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

int rim_eal_init(const char *prog, const char *telemetry, unsigned mem_mb, const char *const *extra,
                 unsigned n_extra)
{
    static bool done;
    static struct eal_args a; /* EAL keeps pointers to the strings, and rearranges the array */
    char *argv[MAX_ARGS];
    char prefix[128];
    bool dir;
    int rc;

    if (done)
        return 0;
    dir = set_runtime_dir(telemetry, prefix, sizeof(prefix));
    a.n = 0;
    arg(&a, "%s", prog);
    /* Twice what is needed: other processes of the fabric start at the same time. */
    if (free_huge_mb() >= 2 * mem_mb) {
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
    done = true;
    return 0;
}

void rim_eal_cleanup(void)
{
    rte_eal_cleanup();
}
