/* What sysfs would say of an emulated host's HCAs. Formats are those of
 * drivers/infiniband/core/sysfs.c. */
#include "host/enter/enter.h"
#include "host/hca/guid.h"

#include <errno.h>
#include <stdarg.h>
#include <sys/stat.h>
#include <unistd.h>

/* One file with its directories; text as given and a newline. */
static int put(const char *dir, const char *name, const char *fmt, ...)
    __attribute__((format(printf, 3, 4)));
static int put(const char *dir, const char *name, const char *fmt, ...)
{
    char path[512];
    va_list ap;
    FILE *f;
    int n = snprintf(path, sizeof(path), "%s/%s", dir, name);

    if (n < 0 || n >= (int)sizeof(path))
        return -ENAMETOOLONG;
    for (char *s = path + strlen(dir) + 1; (s = strchr(s, '/')); *s++ = '/') {
        *s = 0;
        if (mkdir(path, 0755) && errno != EEXIST)
            return -errno;
    }
    f = fopen(path, "wx");
    if (!f)
        return -errno;
    va_start(ap, fmt);
    vfprintf(f, fmt, ap);
    va_end(ap);
    fputc('\n', f);
    n = ferror(f) ? EIO : 0;
    fchmod(fileno(f), 0444);
    return fclose(f) || n ? -EIO : 0;
}

/* All CPUs: an emulated device is near to each. Words of 32 bits, the highest first. */
static void all_cpus(char *mask, size_t size, long *n_cpus)
{
    long n = sysconf(_SC_NPROCESSORS_CONF);
    size_t len = 0;

    *n_cpus = n = n < 1 ? 1 : n > 1024 ? 1024 : n;
    for (long w = (n - 1) / 32; w >= 0 && len < size; w--) {
        long bits = n - w * 32;

        len += (size_t)snprintf(mask + len, size - len, "%s%08x", len ? "," : "",
                                bits >= 32 ? ~0u : (1u << bits) - 1);
    }
}

static void put_device(const struct fab_node *host, unsigned port, const char *dir, int *rc)
{
    uint32_t ip = host->ip_of_port[port];
    char mask[512] = "", guid[24];
    uint8_t g[8];
    long cpus;

    hca_guid_of_ip(ip, g);
    snprintf(guid, sizeof(guid), "%02x%02x:%02x%02x:%02x%02x:%02x%02x", g[0], g[1], g[2], g[3],
             g[4], g[5], g[6], g[7]);
    all_cpus(mask, sizeof(mask), &cpus);
    *rc = *rc ? *rc : put(dir, "node_type", "1: CA");
    *rc = *rc ? *rc : put(dir, "node_guid", "%s", guid);
    *rc = *rc ? *rc : put(dir, "sys_image_guid", "%s", guid);
    *rc = *rc ? *rc : put(dir, "node_desc", "%s", host->name);
    *rc = *rc ? *rc : put(dir, "fw_ver", "tributary");
    *rc = *rc ? *rc : put(dir, "device/numa_node", "-1");
    *rc = *rc ? *rc : put(dir, "device/local_cpus", "%s", mask);
    *rc = *rc ? *rc : put(dir, "device/local_cpulist", "0-%ld", cpus - 1);
    *rc = *rc ? *rc : put(dir, "ports/1/state", "4: ACTIVE");
    *rc = *rc ? *rc : put(dir, "ports/1/phys_state", "5: LinkUp");
    *rc = *rc ? *rc : put(dir, "ports/1/link_layer", "Ethernet");
    *rc =
        *rc ? *rc : put(dir, "ports/1/rate", "%g Gb/sec", (double)host->ports[port].rate_bps / 1e9);
    *rc = *rc ? *rc : put(dir, "ports/1/lid", "0x0");
    *rc = *rc ? *rc : put(dir, "ports/1/pkeys/0", "0xffff");
    *rc = *rc ? *rc
              : put(dir, "ports/1/gids/0", "0000:0000:0000:0000:0000:ffff:%04x:%04x", ip >> 16,
                    ip & 0xffff);
    *rc = *rc ? *rc
              : put(dir, "ports/1/gids/1", "fe80:0000:0000:0000:0054:%02xff:fe%02x:%04x", ip >> 24,
                    ip >> 16 & 0xff, ip & 0xffff);
    for (int i = 0; i < 2; i++) {
        char name[40];

        snprintf(name, sizeof(name), "ports/1/gid_attrs/types/%d", i);
        *rc = *rc ? *rc : put(dir, name, "RoCE v2");
        snprintf(name, sizeof(name), "ports/1/gid_attrs/ndevs/%d", i);
        *rc = *rc ? *rc : put(dir, name, "trib%u", port);
    }
}

int tree_infiniband(const struct fab_node *host, const char *dir)
{
    int rc = 0;

    for (unsigned p = 0; p < host->n_ports && !rc; p++) {
        char sub[128];

        snprintf(sub, sizeof(sub), "%s/trib%u", dir, p);
        if (mkdir(sub, 0755))
            return -errno;
        put_device(host, p, sub, &rc);
    }
    return rc;
}

int tree_infiniband_verbs(const struct fab_node *host, const char *dir)
{
    int rc = put(dir, "abi_version", "6");

    for (unsigned p = 0; p < host->n_ports && !rc; p++) {
        char name[64];

        snprintf(name, sizeof(name), "trib%u/ibdev", p);
        rc = put(dir, name, "trib%u", p);
        snprintf(name, sizeof(name), "trib%u/abi_version", p);
        rc = rc ? rc : put(dir, name, "1");
    }
    return rc;
}
