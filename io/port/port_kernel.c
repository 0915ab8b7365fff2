/* SPDX-License-Identifier: BSD-3-Clause */
#include "io/port/port_kernel.h"

#include <dirent.h>
#include <linux/ethtool.h>
#include <linux/if_packet.h>
#include <linux/sockios.h>
#include <net/if.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <unistd.h>

static bool is_of(int fd, unsigned ifindex)
{
    struct sockaddr_ll at = {0};
    socklen_t n = sizeof(at);

    return !getsockname(fd, (struct sockaddr *)&at, &n) && at.sll_family == AF_PACKET &&
           at.sll_ifindex == (int)ifindex;
}

int port_kernel_socket(const char *iface)
{
    unsigned ifindex = *iface ? if_nametoindex(iface) : 0;
    DIR *d = ifindex ? opendir("/proc/self/fd") : NULL;
    struct dirent *e;
    int found = -1;

    while (d && found < 0 && (e = readdir(d))) {
        int fd = atoi(e->d_name);

        if (fd > 0 && fd != dirfd(d) && is_of(fd, ifindex))
            found = fd;
    }
    if (d)
        closedir(d);
    return found;
}

/* Reading the statistics resets them in the kernel. */
uint64_t port_kernel_missed(int socket)
{
    struct tpacket_stats s = {0};
    socklen_t n = sizeof(s);

    return socket >= 0 && !getsockopt(socket, SOL_PACKET, PACKET_STATISTICS, &s, &n) ? s.tp_drops
                                                                                     : 0;
}

static bool port_kernel_ask(int fd, const char *iface, void *what)
{
    struct ifreq r = {.ifr_data = what};

    snprintf(r.ifr_name, sizeof(r.ifr_name), "%s", iface);
    return !ioctl(fd, SIOCETHTOOL, &r);
}

bool port_kernel_omits_checksums(const char *iface)
{
    struct ethtool_drvinfo driver = {.cmd = ETHTOOL_GDRVINFO};
    struct ethtool_value tx = {.cmd = ETHTOOL_GTXCSUM};
    int fd = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
    bool omits = fd >= 0 && port_kernel_ask(fd, iface, &driver) &&
                 (!strcmp(driver.driver, "veth") || !strcmp(driver.driver, "tun")) &&
                 port_kernel_ask(fd, iface, &tx) && tx.data;

    if (fd >= 0)
        close(fd);
    return omits;
}
