/* SPDX-License-Identifier: BSD-3-Clause */
#include "io/port/port_state_files.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <sys/random.h>
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

/* Its own name until it is whole: a reader sees one state or the other. Several processes may see the
 * change, of several PID namespaces too. */
static int put_one(int dir, enum port_state_file f, bool up)
{
    const char *text = files[f].text[up];
    char own[48];
    uint64_t random;
    int rc, fd;

    if (getrandom(&random, sizeof(random), 0) != sizeof(random))
        return -EIO;
    snprintf(own, sizeof(own), "%s.%016" PRIx64, files[f].name, random);
    fd = openat(dir, own, O_CREAT | O_EXCL | O_WRONLY | O_CLOEXEC, 0600);
    if (fd < 0)
        return -errno;
    rc = write(fd, text, strlen(text)) == (ssize_t)strlen(text) ? 0 : -EIO;
    fchmod(fd, 0644);
    close(fd);
    if (!rc && renameat(dir, own, dir, files[f].name))
        rc = -errno;
    if (rc)
        unlinkat(dir, own, 0);
    return rc;
}

int port_state_put(int dir, bool up)
{
    int rc = 0;

    for (unsigned f = 0; f < PORT_STATE_FILES && !rc; f++)
        rc = put_one(dir, (enum port_state_file)f, up);
    return rc;
}

int port_state_put_missing(int dir)
{
    int rc = 0;

    for (unsigned f = 0; f < PORT_STATE_FILES && !rc; f++)
        if (faccessat(dir, files[f].name, F_OK, 0))
            rc = put_one(dir, (enum port_state_file)f, true);
    return rc;
}
