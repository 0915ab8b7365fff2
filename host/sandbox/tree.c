/* SPDX-License-Identifier: BSD-3-Clause */
/* The sysfs files of an emulated host's HCAs, in the formats of drivers/infiniband/core/sysfs.c. */
#include "host/hca/guid.h"
#include "host/sandbox/sandbox.h"
#include "host/sandbox/tree_put.h"
#include "machine/port_counters.h"
#include "machine/port_state.h"

#include <errno.h>
#include <stdarg.h>
#include <sys/stat.h>
#include <unistd.h>

int put(const char *dir, const char *name, const char *fmt, ...)
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
    fchmod(fileno(f), 0444);
    errno = 0;
    return fclose(f) ? -(errno ? errno : EIO) : 0; /* fclose() writes the buffer */
}

/* Links to a file of the port's state in the run directory. */
static int link_state(const struct rundir *rd, const struct fab_node *host, unsigned port,
                      const char *dir, enum port_state_file f)
{
    const char *name = port_state_name(f);
    char to[RUN_PATH + 64], at[512];
    char in[128];
    int rc;

    port_state_dir(in, sizeof(in), host->name, port);
    rc = rundir_path(rd, to, sizeof(to), "%s/%s", in, name);
    snprintf(at, sizeof(at), "%s/%s", dir, name);
    return rc ? rc : symlink(to, at) ? -errno : 0;
}

/* The files of /sys/class/net. The interface index is above those that a kernel assigns. */
static int put_net(const struct rundir *rd, const struct fab_node *host, unsigned port,
                   const char *dir)
{
    uint32_t ip = host->ip_of_port[port];
    int rc = put(dir, "address", "02:54:%02x:%02x:%02x:%02x", ip >> 24, ip >> 16 & 255,
                 ip >> 8 & 255, ip & 255);

    rc = rc ? rc : put(dir, "addr_len", "6");
    rc = rc ? rc : put(dir, "type", "1");
    rc = rc ? rc : put(dir, "mtu", "4200");
    rc = rc ? rc : put(dir, "ifindex", "%u", (1u << 30) + port);
    rc = rc ? rc : put(dir, "dev_id", "0x0");
    rc = rc ? rc : put(dir, "dev_port", "0");
    rc = rc ? rc : port_state_make(rd, host->name, port);
    rc = rc ? rc : link_state(rd, host, port, dir, PORT_CARRIER);
    rc = rc ? rc : link_state(rd, host, port, dir, PORT_OPERSTATE);
    return rc ? rc : put(dir, "speed", "%.0f", (double)host->ports[port].rate_bps / 1e6);
}

/* Links to the live counters in the run directory, which all processes of the host share. */
static int link_counters(const struct rundir *rd, const struct fab_node *host, unsigned port,
                         const char *dir)
{
    static const char *const names[] = {"counters", "hw_counters"};
    char in[128];
    int rc = port_counters_make(rd, host->name, port);
    char to[RUN_PATH + 64], at[512];

    for (unsigned i = 0; i < 2 && !rc; i++) {
        snprintf(at, sizeof(at), "%s/ports/1/%s", dir, names[i]);
        port_counters_dir(in, sizeof(in), rd, host->name, port);
        rc = rundir_path(rd, to, sizeof(to), "%s/%s", in, names[i]);
        rc = rc ? rc : symlink(to, at) ? -errno : 0;
    }
    snprintf(at, sizeof(at), "%s/ports/1", dir);
    rc = rc ? rc : port_state_make(rd, host->name, port);
    rc = rc ? rc : link_state(rd, host, port, at, PORT_STATE);
    return rc ? rc : link_state(rd, host, port, at, PORT_PHYS_STATE);
}

static void put_device(const struct rundir *rd, const struct fab_node *host, unsigned port,
                       const char *dir, int *rc)
{
    uint32_t ip = host->ip_of_port[port];
    char guid[24];
    uint8_t g[8];

    hca_guid_of_ip(ip, g);
    snprintf(guid, sizeof(guid), "%02x%02x:%02x%02x:%02x%02x:%02x%02x", g[0], g[1], g[2], g[3],
             g[4], g[5], g[6], g[7]);
    *rc = *rc ? *rc : put(dir, "node_type", "1: CA");
    *rc = *rc ? *rc : put(dir, "node_guid", "%s", guid);
    *rc = *rc ? *rc : put(dir, "sys_image_guid", "%s", guid);
    *rc = *rc ? *rc : put(dir, "node_desc", "%s", host->name);
    *rc = *rc ? *rc : put(dir, "fw_ver", "tributary");
    *rc = *rc ? *rc : put(dir, "hca_type", "tributary");
    *rc = *rc ? *rc : put(dir, "board_id", "tributary");
    *rc = *rc ? *rc : put(dir, "hw_rev", "0x0");
    *rc = *rc ? *rc : put(dir, "ports/1/link_layer", "Ethernet");
    *rc =
        *rc ? *rc : put(dir, "ports/1/rate", "%g Gb/sec", (double)host->ports[port].rate_bps / 1e9);
    *rc = *rc ? *rc : put(dir, "ports/1/lid", "0x0");
    *rc = *rc ? *rc : put(dir, "ports/1/lid_mask_count", "0");
    *rc = *rc ? *rc : put(dir, "ports/1/sm_lid", "0x0");
    *rc = *rc ? *rc : put(dir, "ports/1/sm_sl", "0");
    *rc = *rc ? *rc : put(dir, "ports/1/cap_mask", "0x%08x", HCA_PORT_CAPS);
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
    *rc = *rc ? *rc : link_counters(rd, host, port, dir);
    /* device/net is left out: programs (rdma-core's tests) would pass the interface in it to `ip`,
     * which does not know it. */
}

int tree_net(const struct rundir *rd, const struct fab_node *host, const char *dir)
{
    char sub[128], device[128], at[160];
    int rc = 0;

    for (unsigned p = 0; p < host->n_ports && !rc; p++) {
        snprintf(sub, sizeof(sub), "%s/trib%u", dir, p);
        rc = mkdir(sub, 0755) && errno != EEXIST ? -errno : put_net(rd, host, p, sub);
        snprintf(at, sizeof(at), "%s/device", sub);
        snprintf(device, sizeof(device), "/sys/class/infiniband/trib%u/device", p);
        rc = rc ? rc : symlink(device, at) ? -errno : 0;
    }
    return rc;
}

int tree_infiniband(const struct rundir *rd, const struct fab_node *host, const char *dir)
{
    int rc = 0;

    for (unsigned p = 0; p < host->n_ports && !rc; p++) {
        char sub[128], at[160], device[PCI_PATH];

        snprintf(sub, sizeof(sub), "%s/trib%u", dir, p);
        if (mkdir(sub, 0755))
            return -errno;
        put_device(rd, host, p, sub, &rc);
        tree_pci_device(p, device);
        snprintf(at, sizeof(at), "%s/device", sub);
        rc = rc ? rc : symlink(device, at) ? -errno : 0;
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
        snprintf(name, sizeof(name), "trib%u/dev", p); /* /dev/null's, as in /dev/infiniband */
        rc = rc ? rc : put(dir, name, "1:3");
        snprintf(name, sizeof(name), "trib%u/abi_version", p);
        rc = rc ? rc : put(dir, name, "1");
    }
    return rc;
}
