/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Marks the ports of an ended trib-switch as down for readers of sysfs
 * (machine/port_state_files.h). The NICs of its hosts ended with it, and no other process may be
 * left to say so: one process may run the whole fabric.
 */
#include "system/own_path.h"
#include "host/keep/keep.h"
#include "machine/port_state_files.h"

#include <dirent.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define NODES "nodes" /* first word of the line of proc/NAME.ready that names the nodes */

#define SOCKET ".0.sock" /* suffix of the socket of a port's first slot */

/* Creates the port's folder if no reader has created it yet, and marks the port as down. */
static void lose_port(int host, const char *sock)
{
    size_t port = strlen(sock) - strlen(SOCKET);
    char name[32];
    int fd;

    if (snprintf(name, sizeof(name), "%.*s" PORT_STATE_SUFFIX, (int)port, sock) >=
        (int)sizeof(name))
        return;
    (void)mkdirat(host, name, 0755);
    fd = own_subdir_open(host, name);
    if (fd < 0)
        return;
    (void)port_state_put(fd, false);
    close(fd);
}

/* Marks all ports of a host as down. In a service's directory it leaves files of other users alone.
 */
static void lose_host(int port, const char *name)
{
    int fd = own_subdir_open(port, name);
    DIR *d = fd < 0 ? NULL : fdopendir(fd);
    const struct dirent *e;

    while (d && (e = readdir(d))) {
        const char *dot = strchr(e->d_name, '.');

        if (dot && dot != e->d_name && !strcmp(dot, SOCKET))
            lose_port(fd, e->d_name);
    }
    if (d)
        closedir(d);
    else if (fd >= 0)
        close(fd);
}

void keep_lose_ports(int dir, const char *proc)
{
    char ready[KEEP_NAME + 16], *line = NULL, *at = NULL;
    int port = own_subdir_open(dir, "port"), fd;
    size_t room = 0;
    FILE *f;

    snprintf(ready, sizeof(ready), "proc/%s.ready", proc);
    fd = port < 0 ? -1 : own_file_open(dir, ready, O_RDONLY);
    f = fd < 0 ? NULL : fdopen(fd, "r");
    while (f && getline(&line, &room, f) > 0) {
        const char *word = strtok_r(line, " \n", &at);

        while (word && !strcmp(line, NODES) && (word = strtok_r(NULL, " \n", &at)))
            lose_host(port, word);
    }
    free(line);
    if (f)
        fclose(f);
    else if (fd >= 0)
        close(fd);
    if (port >= 0)
        close(port);
}
