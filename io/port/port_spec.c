/* SPDX-License-Identifier: BSD-3-Clause */
#include "io/port/port_spec.h"

#include "base/assert.h"
#include "system/own_clear.h"
#include "io/port/port_pci.h"

#include <errno.h>
#include <fcntl.h>
#include <rte_errno.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

/* Frame slots of af_packet's rings. DPDK's default of 2,048 bytes silently drops longer frames. A slot of
 * these fits a frame's buffer, and 8 of them fill a block of whole pages. */
#define AF_PACKET_FRAMES ",blocksz=36864,framesz=4608,framecnt=512"

int port_refuse(const char *text, int rc, const char *why)
{
    fprintf(stderr, "tributary: port \"%s\": %s%s%s\n", text, why, rc ? ": " : "",
            rc ? rte_strerror(-rc) : "");
    return rc ? rc : -EINVAL;
}

/* ---- "vhost:PATH" ---- */

/* Removes a stale socket, which a killed process left behind. Any other file stays. */
static int clear_socket(const char *text, const char *path)
{
    struct sockaddr_un sa = {.sun_family = AF_UNIX};
    struct stat st;
    int fd, rc;

    if (strlen(path) >= sizeof(sa.sun_path))
        return port_refuse(text, -ENAMETOOLONG, "found a path too long for a socket");
    memcpy(sa.sun_path, path, strlen(path));
    if (lstat(path, &st))
        return 0;
    if (!S_ISSOCK(st.st_mode))
        return port_refuse(text, -EEXIST, "found something that is no socket at its path");
    fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    if (fd < 0)
        return port_refuse(text, -errno, "cannot look at its socket");
    rc = connect(fd, (struct sockaddr *)&sa, sizeof(sa)) ? -errno : 0;
    close(fd);
    if (rc != -ECONNREFUSED)
        return port_refuse(text, -EADDRINUSE, "found another process that listens at its socket");
    own_socket_clear(path);
    return 0;
}

/* Makes the arguments of a vhost port. This end listens, so that guests may come and go. */
static int vhost_args(struct port_spec *s, const char *dir, unsigned n)
{
    const char *given = s->text + strlen("vhost:"), *slash;
    char path[512], parent[512];
    int rc;

    if (strchr(given, ','))
        return port_refuse(s->text, 0, "found a comma in the path, expected none");
    snprintf(path, sizeof(path), "%s%s%s", given[0] == '/' ? "" : dir, given[0] == '/' ? "" : "/",
             given);
    slash = strrchr(path, '/');
    T_ASSERT(slash, "a socket's path without a folder");
    snprintf(parent, sizeof(parent), "%.*s", (int)(slash - path) + 1, path);
    if (access(parent, W_OK | X_OK)) {
        rc = -errno;
        fprintf(stderr, "tributary: port \"%s\": cannot make a socket in %s: %s\n", s->text, parent,
                strerror(-rc));
        return rc;
    }
    rc = clear_socket(s->text, path);
    if (!rc && snprintf(s->args, sizeof(s->args), "net_vhost_port%u,iface=%s,queues=1", n, path) >=
                   (int)sizeof(s->args))
        rc = port_refuse(s->text, -ENAMETOOLONG, "found a path too long for a socket");
    return rc;
}

/* ---- the kernel's interfaces ---- */

static bool is_driver(const char *text, const char *driver)
{
    return !strncmp(text, driver, strlen(driver));
}

/* Refuses an interface that does not exist, and names those that do. */
static int find_interface(struct port_spec *s)
{
    struct if_nameindex *all;
    char why[400];
    size_t len;

    if (if_nametoindex(s->iface))
        return 0;
    len = (size_t)snprintf(why, sizeof(why), "found no interface %s, expected one of", s->iface);
    all = if_nameindex();
    for (const struct if_nameindex *i = all; i && i->if_index && len < sizeof(why) - 40; i++)
        len += (size_t)snprintf(why + len, sizeof(why) - len, " %s", i->if_name);
    if (all)
        if_freenameindex(all);
    return port_refuse(s->text, 0, why);
}

/* Refuses an interface that this process may not open: DPDK's own message would say less. */
static int may_open(const struct port_spec *s)
{
    bool tap = is_driver(s->text, "net_tap");
    int fd = tap ? open("/dev/net/tun", O_RDWR | O_CLOEXEC)
                 : socket(AF_PACKET, SOCK_RAW | SOCK_CLOEXEC, 0);

    if (fd < 0)
        return port_refuse(s->text, -errno,
                           tap ? "cannot open /dev/net/tun, which needs CAP_NET_ADMIN"
                           : is_driver(s->text, "net_af_xdp")
                               ? "cannot open the interface, which needs CAP_NET_RAW and CAP_BPF"
                               : "cannot open the interface, which needs CAP_NET_RAW");
    close(fd);
    return 0;
}

static int interface_args(struct port_spec *s)
{
    const char *iface = strstr(s->text, ",iface=");
    bool tap = is_driver(s->text, "net_tap"), packet = is_driver(s->text, "net_af_packet");
    int rc;

    if (!tap && !packet && !is_driver(s->text, "net_af_xdp"))
        return 0;
    if (iface)
        snprintf(s->iface, sizeof(s->iface), "%.*s", (int)strcspn(iface + 7, ","), iface + 7);
    else if (!tap)
        return port_refuse(s->text, 0, "found no interface, expected \",iface=NAME\"");
    rc = tap ? 0 : find_interface(s);
    if (!rc)
        rc = may_open(s);
    if (!rc && packet && !strstr(s->text, ",framesz=") && !strstr(s->text, ",blocksz="))
        strncat(s->args, AF_PACKET_FRAMES, sizeof(s->args) - strlen(s->args) - 1);
    return rc;
}

int port_spec_read(struct port_spec *s, const char *text, const char *dir, unsigned n)
{
    T_ASSERT(text && *text, "a port to the outside without a text");
    *s = (struct port_spec){.text = text};
    if (!strncmp(text, "vhost:", 6))
        return vhost_args(s, dir, n);
    if (strlen(text) + sizeof(AF_PACKET_FRAMES) > sizeof(s->args))
        return port_refuse(text, -ENAMETOOLONG, "found too many arguments");
    snprintf(s->args, sizeof(s->args), "%s", text);
    return interface_args(s);
}

int port_spec_refuse(const struct port_spec *s, int rc)
{
    char why[400];

    if (port_pci_is(s->text))
        return port_refuse(s->text, 0, port_pci_why("/sys", "/dev", s->text, why, sizeof(why)));
    return port_refuse(s->text, rc ? rc : -ENODEV,
                       *s->iface ? "DPDK cannot open the interface"
                                 : "found a device that DPDK does not make, expected vhost:PATH, "
                                   "a PCI address, or net_af_packet, net_af_xdp, net_tap, "
                                   "net_pcap, net_null, net_vhost with a number and their "
                                   "arguments");
}

bool port_spec_is_xdp(const struct port_spec *s)
{
    return is_driver(s->text, "net_af_xdp");
}

unsigned port_spec_mtu(const struct port_spec *s)
{
    struct ifreq r = {0};
    int fd = *s->iface ? socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0) : -1, rc;

    if (fd < 0)
        return 0;
    _Static_assert(sizeof(r.ifr_name) == sizeof(s->iface), "an interface's name in both");
    memcpy(r.ifr_name, s->iface, sizeof(r.ifr_name));
    rc = ioctl(fd, SIOCGIFMTU, &r);
    close(fd);
    return rc || r.ifr_mtu < 0 ? 0 : (unsigned)r.ifr_mtu;
}
