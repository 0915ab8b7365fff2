/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The HCAs as PCI devices, each behind its own root port, in a PCI domain of their own and in the
 * formats of drivers/pci/pci-sysfs.c. NCCL reads a NIC's distance from a GPU there, UCX its
 * bandwidth. They are not below /sys/bus/pci, where programs expect a configuration space.
 */
#include "host/sandbox/sandbox.h"
#include "host/sandbox/tree_put.h"

#include <errno.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

_Static_assert(FAB_MAX_HOST_PORTS < 32, "a device of bus 0 for each root port");

void tree_pci_device(unsigned port, char path[PCI_PATH])
{
    snprintf(path, PCI_PATH, "/sys/devices/pci%s:00/%s:00:%02x.0/%s:%02x:00.0", PCI_DOMAIN,
             PCI_DOMAIN, port, PCI_DOMAIN, port + 1);
}

/* The mask of all CPUs, since an emulated device is local to each: 32-bit words, the highest first.
 */
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

/* The NUMA node of a machine with one node. -1 if there are several, as none is nearer. */
static int numa_node(void)
{
    bool one = !access("/sys/devices/system/node/node0", F_OK) &&
               access("/sys/devices/system/node/node1", F_OK);

    return one ? 0 : -1;
}

/* A PCIe link that programs know and that carries the port's rate. */
static void link_of(double rate_bps, const char **speed, unsigned *width)
{
    *speed = rate_bps > 500e9 ? "64.0 GT/s PCIe" : "32.0 GT/s PCIe";
    *width = rate_bps > 1000e9 ? 32 : 16;
}

static int put_link(const char *dir, const struct fab_port *port)
{
    const char *speed;
    unsigned width;
    int rc;

    link_of((double)port->rate_bps, &speed, &width);
    rc = put(dir, "max_link_speed", "%s", speed);
    rc = rc ? rc : put(dir, "current_link_speed", "%s", speed);
    rc = rc ? rc : put(dir, "max_link_width", "%u", width);
    return rc ? rc : put(dir, "current_link_width", "%u", width);
}

static int put_function(const char *dir, const char *class, unsigned device)
{
    char mask[512] = "";
    long cpus;
    int rc;

    all_cpus(mask, sizeof(mask), &cpus);
    rc = put(dir, "class", "%s", class);
    rc = rc ? rc : put(dir, "vendor", "0x0000"); /* a vendor that no program knows */
    rc = rc ? rc : put(dir, "device", "0x%04x", device);
    rc = rc ? rc : put(dir, "subsystem_vendor", "0x0000");
    rc = rc ? rc : put(dir, "subsystem_device", "0x%04x", device);
    rc = rc ? rc : put(dir, "numa_node", "%d", numa_node());
    rc = rc ? rc : put(dir, "local_cpus", "%s", mask);
    rc = rc ? rc : put(dir, "local_cpulist", "0-%ld", cpus - 1);
    return rc;
}

static int link_to(const char *to, const char *dir, const char *name)
{
    char at[256];

    snprintf(at, sizeof(at), "%s/%s", dir, name);
    return symlink(to, at) ? -errno : 0;
}

static int put_port(const struct fab_node *host, unsigned port)
{
    char nic[PCI_PATH], bridge[PCI_PATH], bus[64];
    char *slash;
    int rc;

    tree_pci_device(port, nic);
    snprintf(bridge, sizeof(bridge), "%s", nic);
    slash = strrchr(bridge, '/');
    *slash = 0;
    snprintf(bus, sizeof(bus), "pci_bus/%s:%02x/uevent", PCI_DOMAIN, port + 1);
    rc = mkdir(bridge, 0755) || mkdir(nic, 0755) ? -errno : 0;
    rc = rc ? rc : put_function(bridge, "0x060400", 2);
    rc = rc ? rc : put_link(bridge, &host->ports[port]);
    rc = rc ? rc : put(bridge, bus, "%s", "");
    rc = rc ? rc : put_function(nic, "0x020000", 1); /* an Ethernet controller */
    rc = rc ? rc : put_link(nic, &host->ports[port]);
    return rc ? rc : link_to("/sys/bus/pci", nic, "subsystem");
}

int tree_pci(const struct fab_node *host)
{
    int rc = 0;

    for (unsigned p = 0; p < host->n_ports && !rc; p++)
        rc = put_port(host, p);
    return rc;
}

int tree_pci_buses(const struct fab_node *host, const char *dir)
{
    char to[128], name[16];
    int rc = 0;

    for (unsigned p = 0; p < host->n_ports && !rc; p++) {
        snprintf(name, sizeof(name), "%s:%02x", PCI_DOMAIN, p + 1);
        snprintf(to, sizeof(to), "/sys/devices/pci%s:00/%s:00:%02x.0/pci_bus/%s", PCI_DOMAIN,
                 PCI_DOMAIN, p, name);
        rc = link_to(to, dir, name);
        rc = rc == -EEXIST ? 0 : rc; /* an outer trib exec made the same link */
    }
    return rc;
}
