/* SPDX-License-Identifier: BSD-3-Clause */
#include "io/port/port_pci.h"

#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

#define NETWORK    2u    /* PCI class */
#define LOCKED_MIN 1024u /* MiB of locked memory that DPDK needs for a small fabric */

static const char *const shared_drivers[] = {"mlx5_core", "mlx4_core", "mana"};
static const char *const own_drivers[] = {"vfio-pci", "uio_pci_generic", "igb_uio"};

bool port_pci_is(const char *spec)
{
    unsigned domain, bus, slot, fn;

    return sscanf(spec, "%x:%x:%x.%x", &domain, &bus, &slot, &fn) == 4 ||
           sscanf(spec, "%x:%x.%x", &bus, &slot, &fn) == 3;
}

static bool in_list(const char *name, const char *const *list, size_t n)
{
    for (size_t i = 0; i < n; i++)
        if (!strcmp(name, list[i]))
            return true;
    return false;
}
#define IN(name, list) in_list(name, list, sizeof(list) / sizeof((list)[0]))

/* The hexadecimal number in a file of the device; 0: there is none. */
static unsigned number_in(const char *device, const char *file)
{
    char path[PATH_MAX];
    unsigned n = 0;
    FILE *f;

    snprintf(path, sizeof(path), "%s/%s", device, file);
    f = fopen(path, "re");
    if (f && fscanf(f, "%x", &n) != 1)
        n = 0;
    if (f)
        fclose(f);
    return n;
}

/* The last component of a symbolic link's target; "" if there is no link. */
static void name_of_link(const char *device, const char *link, char name[NAME_MAX + 1])
{
    char path[PATH_MAX], target[PATH_MAX];
    const char *slash;
    ssize_t n;

    snprintf(path, sizeof(path), "%s/%s", device, link);
    n = readlink(path, target, sizeof(target) - 1);
    target[n < 0 ? 0 : n] = 0;
    slash = strrchr(target, '/');
    snprintf(name, NAME_MAX + 1, "%.*s", NAME_MAX, slash ? slash + 1 : target);
}

/* The reason for a device that is bound to vfio-pci. */
static void vfio_why(const char *device, const char *dev, char *text, size_t size)
{
    char group[NAME_MAX + 1], path[PATH_MAX];
    struct rlimit locked;

    name_of_link(device, "iommu_group", group);
    if (!*group) {
        snprintf(text, size,
                 "found it without an IOMMU group, expected an IOMMU that is on (intel_iommu=on or "
                 "amd_iommu=on on the kernel's command line, VT-d or AMD-Vi in the firmware)");
        return;
    }
    snprintf(path, sizeof(path), "%s/vfio/%s", dev, group);
    if (access(path, R_OK | W_OK)) {
        snprintf(text, size,
                 "cannot open %.100s: %s: it must belong to the user whose fabric it is, with all "
                 "devices of its IOMMU group bound to vfio-pci",
                 path, strerror(errno));
        return;
    }
    if (!getrlimit(RLIMIT_MEMLOCK, &locked) && geteuid() != 0 &&
        locked.rlim_cur < (rlim_t)LOCKED_MIN << 20) {
        snprintf(text, size,
                 "found a limit of %llu MiB of locked memory, expected %u MiB or more (ulimit -l)",
                 (unsigned long long)(locked.rlim_cur >> 20), LOCKED_MIN);
        return;
    }
    snprintf(text, size, "DPDK has no driver for %04x:%04x, or it does not start",
             number_in(device, "vendor"), number_in(device, "device"));
}

const char *port_pci_why(const char *sys, const char *dev, const char *spec, char *text,
                         size_t size)
{
    int len = (int)strcspn(spec, ",");
    const char *first = memchr(spec, ':', (size_t)len);
    bool has_domain = first && memchr(first + 1, ':', (size_t)len - (size_t)(first + 1 - spec));
    char device[PATH_MAX], driver[NAME_MAX + 1], address[64];
    unsigned class;

    snprintf(address, sizeof(address), "%s%.*s", has_domain ? "" : "0000:", len, spec);
    snprintf(device, sizeof(device), "%s/bus/pci/devices/%s", sys, address);
    class = number_in(device, "class");
    name_of_link(device, "driver", driver);
    if (access(device, F_OK))
        snprintf(text, size, "found no PCI device %s, expected one of dpdk-devbind.py --status",
                 address);
    else if (class >> 16 != NETWORK)
        snprintf(text, size, "found a PCI device of class 0x%06x, expected a NIC (0x02....)",
                 class);
    else if (!*driver)
        snprintf(text, size,
                 "found it without a driver, expected vfio-pci: dpdk-devbind.py --bind=vfio-pci %s",
                 address);
    else if (IN(driver, shared_drivers))
        snprintf(text, size,
                 "found it at %.32s, as expected, but DPDK did not take it: that needs "
                 "CAP_NET_RAW, and the device's ibverbs library (apt install ibverbs-providers)",
                 driver);
    else if (!IN(driver, own_drivers))
        snprintf(text, size,
                 "found it at the kernel's driver %.32s, expected vfio-pci (its interface goes "
                 "away): dpdk-devbind.py --bind=vfio-pci %s",
                 driver, address);
    else
        vfio_why(device, dev, text, size);
    return text;
}
