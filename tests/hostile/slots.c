/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * slots DIR HOST SLOTS SECONDS: connects to the process slots of another host's port 0, eight times
 * each, and holds them: half say nothing, half begin memif's handshake as a client of another host
 * does, without the token. Whoever is disconnected comes again.
 */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <time.h>
#include <unistd.h>

#define MOST 64
#define EACH 8

static int fd[MOST][EACH];

/* The memif messages of a client, as far as they matter here: type, then what follows. */
static int say(int s, uint16_t type, const void *body, size_t len)
{
    char msg[128] = "";

    memcpy(msg, &type, 2);
    memcpy(msg + 2, body, len);
    return send(s, msg, sizeof(msg), MSG_NOSIGNAL | MSG_DONTWAIT) == sizeof(msg) ? 0 : -1;
}

static int call(const char *dir, const char *host, int slot, int greets)
{
    struct sockaddr_un un = {.sun_family = AF_UNIX};
    int s = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_NONBLOCK, 0);
    uint8_t init[7] = {0, 2}; /* version 2.0, id 0, mode 0, no secret */

    snprintf(un.sun_path, sizeof(un.sun_path), "%s/port/%s/0.%d.sock", dir, host, slot);
    if (!connect(s, (struct sockaddr *)&un, sizeof(un)) &&
        (!greets || !say(s, 3, init, sizeof(init))))
        return s;
    close(s);
    return -1;
}

int main(int argc, char **argv)
{
    struct timespec nap = {0, 2000000};
    unsigned connected = 0;
    time_t end;
    int slots;

    if (argc != 5 || (slots = atoi(argv[3])) < 1 || slots > MOST)
        return 2;
    memset(fd, -1, sizeof(fd));
    end = time(NULL) + atoi(argv[4]);
    while (time(NULL) < end) {
        for (int i = 0; i < slots * EACH; i++) {
            int *f = &fd[i % slots][i / slots];
            char msg[256];

            while (*f >= 0 && recv(*f, msg, sizeof(msg), MSG_DONTWAIT) > 0)
                ;
            if (*f >= 0 && recv(*f, msg, sizeof(msg), MSG_DONTWAIT | MSG_PEEK)) /* not over */
                continue;
            if (*f >= 0)
                close(*f);
            *f = call(argv[1], argv[2], i % slots, i & 1);
            connected += *f >= 0;
        }
        nanosleep(&nap, NULL);
    }
    printf("%u connections\n", connected);
    return 0;
}
