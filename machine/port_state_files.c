/* SPDX-License-Identifier: BSD-3-Clause */
#include "machine/port_state_files.h"

#include "system/temp_file.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <unistd.h>

/* The formats of drivers/infiniband/core/sysfs.c and net/core/net-sysfs.c. */
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

/* Writes under a temporary name and renames, so that a reader sees one state or the other. Several
 * processes, in several PID namespaces, may write at once. */
static int put_one(int dir, enum port_state_file f, bool up)
{
    const char *text = files[f].text[up];
    struct temp_file tmp;
    int fd = temp_file_open(&tmp, dir, files[f].name, 0644);
    bool whole;

    if (fd < 0)
        return fd;
    whole = write(fd, text, strlen(text)) == (ssize_t)strlen(text);
    close(fd);
    if (whole)
        return temp_file_publish(&tmp, files[f].name, false);
    temp_file_drop(&tmp);
    return -EIO;
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
        if (faccessat(dir, files[f].name, F_OK, AT_SYMLINK_NOFOLLOW))
            rc = put_one(dir, (enum port_state_file)f, true);
    return rc;
}
