/* SPDX-License-Identifier: BSD-3-Clause */
#include "io/port/port_state.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

/* In the formats of drivers/infiniband/core/sysfs.c and net/core/net-sysfs.c. */
static const struct {
    const char *name, *text[2]; /* down, up */
} files[PORT_STATE_FILES] = {
    [PORT_STATE] = {"state", {"1: DOWN\n", "4: ACTIVE\n"}},
    [PORT_PHYS_STATE] = {"phys_state", {"3: Disabled\n", "5: LinkUp\n"}},
    [PORT_CARRIER] = {"carrier", {"0\n", "1\n"}},
    [PORT_OPERSTATE] = {"operstate", {"down\n", "up\n"}},
};

const char *port_state_name(enum port_state_file f)
{
    return files[f].name;
}

void port_state_dir(char *buf, size_t size, const char *host, unsigned port)
{
    snprintf(buf, size, "port/%.64s/%u.state", host, port);
}

/* A service's users read it, whatever its umask. */
static int make_dir(const struct rundir *rd, const char *host, unsigned port)
{
    char in[128], path[RUN_PATH + 160];
    int rc = rundir_port_dir(rd, host);

    port_state_dir(in, sizeof(in), host, port);
    rc = rc ? rc : rundir_own_dir(rd, in);
    rc = rc ? rc : rundir_path(rd, path, sizeof(path), "%s", in);
    return rc || !chmod(path, 0755) || errno == EPERM ? rc : -errno;
}

/* Its own name until it is whole: a reader sees one state or the other. Several processes may see the
 * change, of several PID namespaces too. */
static int write_one(const struct rundir *rd, const char *host, unsigned port, unsigned i, bool up)
{
    const char *text = files[i].text[up];
    char from[RUN_PATH + 160], to[RUN_PATH + 160], in[128];
    int rc, fd;

    port_state_dir(in, sizeof(in), host, port);
    rc = rundir_path(rd, to, sizeof(to), "%s/%s", in, files[i].name);
    rc = rc ? rc : rundir_path(rd, from, sizeof(from), "%s/%s.XXXXXX", in, files[i].name);
    if (rc)
        return rc;
    fd = mkostemp(from, O_CLOEXEC);
    if (fd < 0)
        return -errno;
    rc = write(fd, text, strlen(text)) == (ssize_t)strlen(text) ? 0 : -EIO;
    fchmod(fd, 0644);
    close(fd);
    if (!rc && rename(from, to))
        rc = -errno;
    if (rc)
        unlink(from);
    return rc;
}

int port_state_make(const struct rundir *rd, const char *host, unsigned port)
{
    char path[RUN_PATH + 160], in[128];
    int rc = make_dir(rd, host, port);

    port_state_dir(in, sizeof(in), host, port);
    for (unsigned i = 0; i < PORT_STATE_FILES && !rc; i++) {
        rc = rundir_path(rd, path, sizeof(path), "%s/%s", in, files[i].name);
        if (!rc && access(path, F_OK))
            rc = write_one(rd, host, port, i, true);
    }
    return rc;
}

int port_state_write(const struct rundir *rd, const char *host, unsigned port, bool up)
{
    int rc = make_dir(rd, host, port);

    for (unsigned i = 0; i < PORT_STATE_FILES && !rc; i++)
        rc = write_one(rd, host, port, i, up);
    return rc;
}
