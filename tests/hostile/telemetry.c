/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * telemetry SOCKET HOW N SECONDS: N connections to a telemetry socket that are of no use to anybody.
 * idle: they say nothing; slow: they ask and do not read; huge: commands of 200 KB, and of the
 * longest length; hasty: they leave at once and come again.
 */
#include <errno.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <time.h>
#include <unistd.h>

#define MOST 512

static int fd[MOST];
static char huge[200000];

static int call(const char *path)
{
    struct sockaddr_un un = {.sun_family = AF_UNIX};
    int s = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_NONBLOCK, 0), size = 2 * (int)sizeof(huge);

    snprintf(un.sun_path, sizeof(un.sun_path), "%s", path);
    setsockopt(s, SOL_SOCKET, SO_SNDBUF, &size, sizeof(size));
    if (!connect(s, (struct sockaddr *)&un, sizeof(un)))
        return s;
    close(s);
    return -1;
}

static void use(int i, const char *path, const char *how, unsigned round)
{
    static const char *const asked[] = {"/trib/ports", "/trib/totals", "/", "/trib/link,x,down"};
    const char *cmd = asked[round % 4];

    if (fd[i] < 0)
        fd[i] = call(path);
    if (fd[i] < 0 || !strcmp(how, "idle"))
        return;
    if (!strcmp(how, "huge")) {
        if (send(fd[i], huge, round % 2 ? sizeof(huge) : 1024 + round % 3 - 1, MSG_NOSIGNAL) > 0)
            return;
    } else if (!strcmp(how, "slow")) {
        if (send(fd[i], cmd, strlen(cmd), MSG_NOSIGNAL) > 0 || errno == EAGAIN)
            return;
    }
    close(fd[i]);
    fd[i] = -1;
}

int main(int argc, char **argv)
{
    struct timespec nap = {0, 1000000};
    time_t end;
    int n;

    if (argc != 5 || (n = atoi(argv[3])) < 1 || n > MOST)
        return 2;
    memset(huge, '/', sizeof(huge));
    for (int i = 0; i < n; i++)
        fd[i] = -1;
    end = time(NULL) + atoi(argv[4]);
    for (unsigned round = 0; time(NULL) < end; round++) {
        for (int i = 0; i < n; i++)
            use(i, argv[1], argv[2], round);
        nanosleep(&nap, NULL);
    }
    return 0;
}
