/* SPDX-License-Identifier: BSD-3-Clause */
#include "machine/port_state.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <sys/stat.h>
#include <unistd.h>

void port_state_dir(char *buf, size_t size, const char *host, unsigned port)
{
    snprintf(buf, size, "port/%.64s/%u" PORT_STATE_SUFFIX, host, port);
}

/* A descriptor or -errno. */
static int open_dir(const struct rundir *rd, const char *host, unsigned port)
{
    char in[128];

    port_state_dir(in, sizeof(in), host, port);
    return rundir_dir(rd, in);
}

/* Makes the directory readable for a service's users, whatever the umask. A descriptor or -errno. */
static int make_dir(const struct rundir *rd, const char *host, unsigned port)
{
    char in[128];
    int rc = rundir_port_dir(rd, host), fd;

    port_state_dir(in, sizeof(in), host, port);
    rc = rc ? rc : rundir_own_dir(rd, in);
    fd = rc ? rc : open_dir(rd, host, port);
    if (fd >= 0 && fchmod(fd, 0755) && errno != EPERM) {
        rc = -errno;
        close(fd);
        return rc;
    }
    return fd;
}

int port_state_make(const struct rundir *rd, const char *host, unsigned port)
{
    int fd = make_dir(rd, host, port), rc = fd < 0 ? fd : port_state_put_missing(fd);

    if (fd >= 0)
        close(fd);
    return rc;
}

int port_state_write(const struct rundir *rd, const char *host, unsigned port, bool up)
{
    int fd = make_dir(rd, host, port), rc = fd < 0 ? fd : port_state_put(fd, up);

    if (fd >= 0)
        close(fd);
    return rc;
}

int port_state_renew(const struct rundir *rd, const char *host, unsigned port, bool up)
{
    int fd = open_dir(rd, host, port), rc = fd < 0 ? fd : port_state_put(fd, up);

    if (fd >= 0)
        close(fd);
    return rc == -ENOENT ? 0 : rc;
}
