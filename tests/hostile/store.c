/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * store rank ADDR RANK SIZE SECONDS     a rank: meets the others, tells them its word, prints all words
 *       twelve PORT                     twelve bytes, as a rank that cannot be
 *       silent PORT N SECONDS           so many connections that say nothing
 *       drip PORT SECONDS               a byte each 100 ms
 *       place PORT RANK SIZE            takes a rank's place without the secret, prints what it is told
 *       relay PORT FILE                 passes one connection on to who listens there next, and keeps both
 *                                       sides' bytes
 *       replay PORT FILE                sends a rank's bytes of it again, prints what it is told
 *       impostor PORT FILE              is rank 0 with the bytes of it
 * Ports of 127.0.0.1.
 */
#include <tributary/coll.h>

#include <arpa/inet.h>
#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#define BYTES     4096
#define CHALLENGE 36 /* bytes that rank 0 tells everybody */

struct exchange {
    size_t n[2]; /* of the rank, of rank 0 */
    unsigned char from[2][BYTES];
};

static void nap(double s)
{
    nanosleep(&(struct timespec){(time_t)s, (long)((s - (double)(time_t)s) * 1e9)}, NULL);
}

/* ---- sockets ---- */

static struct sockaddr_in at(const char *port)
{
    return (struct sockaddr_in){.sin_family = AF_INET,
                                .sin_port = htons((uint16_t)atoi(port)),
                                .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
}

/* Waits until somebody listens. */
static int dial(const char *port)
{
    struct sockaddr_in a = at(port);

    for (int i = 0; i < 1000; i++) {
        int fd = socket(AF_INET, SOCK_STREAM, 0);

        if (fd >= 0 && !connect(fd, (struct sockaddr *)&a, sizeof(a)))
            return fd;
        close(fd);
        nap(0.01);
    }
    fprintf(stderr, "store: nobody listens at %s\n", port);
    exit(1);
}

static int serve(const char *port)
{
    struct sockaddr_in a = at(port);
    int fd = socket(AF_INET, SOCK_STREAM, 0), on = 1;

    setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof(on));
    if (bind(fd, (struct sockaddr *)&a, sizeof(a)) || listen(fd, 8)) {
        perror("store: listen");
        exit(1);
    }
    return fd;
}

/* Bytes that come within the time, or until it is hung up. */
static size_t hear(int fd, unsigned char *to, double seconds)
{
    size_t got = 0;
    ssize_t n = 1;

    for (int i = 0; n > 0 && i < (int)(seconds * 100) && got < BYTES; i++) {
        struct pollfd p = {.fd = fd, .events = POLLIN};

        if (poll(&p, 1, 10) < 1)
            continue;
        n = recv(fd, to + got, BYTES - got, 0);
        got += n > 0 ? (size_t)n : 0;
    }
    return got;
}

/* ---- a rank ---- */

static int rank(char **argv)
{
    uint32_t me = (uint32_t)atoi(argv[1]), size = (uint32_t)atoi(argv[2]);
    char err[TRIB_TEXT] = "", mine[16], all[16 * 64] = "";
    struct trib_store *store;
    struct trib_oob oob;

    if (trib_store_open(&store, argv[0], me, size, atof(argv[3]), err)) {
        printf("rank %u: %s\n", me, err);
        return 1;
    }
    trib_store_oob(store, &oob);
    snprintf(mine, sizeof(mine), "word%u", me);
    if (oob.gather(oob.ctx, 0, mine, all, sizeof(mine)) ||
        oob.bcast(oob.ctx, all, size * sizeof(mine), 0)) {
        printf("rank %u: lost\n", me);
        return 1;
    }
    printf("rank %u:", me);
    for (uint32_t r = 0; r < size; r++)
        printf(" %s", all + r * sizeof(mine));
    printf("\n");
    trib_store_close(store);
    return 0;
}

/* ---- strangers ---- */

static int twelve(char **argv)
{
    uint32_t hello[3] = {0x54524942u, 9, 9};
    int fd = dial(argv[0]);

    return send(fd, hello, sizeof(hello), MSG_NOSIGNAL) != sizeof(hello);
}

static int silent(char **argv)
{
    int n = atoi(argv[1]);

    for (int i = 0; i < n; i++)
        dial(argv[0]);
    printf("%d silent\n", n);
    fflush(stdout);
    nap(atof(argv[2]));
    return 0;
}

static int drip(char **argv)
{
    int fd = dial(argv[0]);

    for (double s = 0; s < atof(argv[1]); s += 0.1) {
        if (send(fd, "T", 1, MSG_NOSIGNAL) != 1) {
            printf("hung up after %.1f s\n", s);
            return 0;
        }
        nap(0.1);
    }
    return 0;
}

static void told(const char *what, size_t n)
{
    printf("%s: told %zu bytes beside the challenge\n", what, n > CHALLENGE ? n - CHALLENGE : 0);
}

static int place(char **argv)
{
    uint32_t old[3] = {0x54524942u, (uint32_t)atoi(argv[1]), (uint32_t)atoi(argv[2])};
    unsigned char answer[96], got[BYTES];
    int fd = dial(argv[0]);

    send(fd, old, sizeof(old), MSG_NOSIGNAL);
    told("as before", hear(fd, got, 1.5));
    close(fd);
    fd = dial(argv[0]);
    memset(answer, 0x5a, sizeof(answer));
    memcpy(answer, "3MRT", 4);
    memcpy(answer + 4, old + 1, 8);
    send(fd, answer, sizeof(answer), MSG_NOSIGNAL);
    told("a false proof", hear(fd, got, 1.5));
    return 0;
}

/* ---- captured ---- */

static int relay(char **argv)
{
    int door = serve(argv[0]), end[2] = {accept(door, NULL, NULL), -1}, open = 2;
    struct exchange x = {.n = {0, 0}};
    FILE *f;

    close(door);
    printf("taken\n");
    fflush(stdout);
    end[1] = dial(argv[0]);
    while (open == 2) {
        struct pollfd p[2] = {{end[0], POLLIN, 0}, {end[1], POLLIN, 0}};

        poll(p, 2, -1);
        for (int i = 0; i < 2; i++) {
            unsigned char *to = x.from[i] + x.n[i];
            ssize_t n = p[i].revents ? recv(end[i], to, BYTES - x.n[i], 0) : 0;

            if (p[i].revents && n <= 0)
                open--;
            else if (n > 0 && send(end[!i], to, (size_t)n, MSG_NOSIGNAL) == n)
                x.n[i] += (size_t)n;
        }
    }
    f = fopen(argv[1], "w");
    return !f || fwrite(&x, sizeof(x), 1, f) != 1 || fclose(f);
}

static struct exchange captured(const char *path)
{
    struct exchange x;
    FILE *f = fopen(path, "r");

    if (!f || fread(&x, sizeof(x), 1, f) != 1 || !x.n[0] || !x.n[1]) {
        fprintf(stderr, "store: nothing captured in %s\n", path);
        exit(1);
    }
    fclose(f);
    return x;
}

static int replay(char **argv)
{
    struct exchange x = captured(argv[1]);
    unsigned char got[BYTES];
    int fd = dial(argv[0]);

    send(fd, x.from[0], x.n[0], MSG_NOSIGNAL);
    told("replayed", hear(fd, got, 1.5));
    return 0;
}

static int impostor(char **argv)
{
    struct exchange x = captured(argv[1]);
    int door = serve(argv[0]), fd = accept(door, NULL, NULL);
    unsigned char got[BYTES];

    close(door); /* whoever is rank 0 may listen now */
    send(fd, x.from[1], x.n[1], MSG_NOSIGNAL);
    printf("impostor: %zu bytes\n", hear(fd, got, 0.5));
    return 0;
}

int main(int argc, char **argv)
{
    static const struct {
        const char *name;
        int words;
        int (*run)(char **argv);
    } what[] = {{"rank", 4, rank},     {"twelve", 1, twelve},    {"silent", 3, silent},
                {"drip", 2, drip},     {"place", 3, place},      {"relay", 2, relay},
                {"replay", 2, replay}, {"impostor", 2, impostor}};

    for (unsigned i = 0; argc > 1 && i < sizeof(what) / sizeof(what[0]); i++)
        if (!strcmp(argv[1], what[i].name) && argc == what[i].words + 2)
            return what[i].run(argv + 2);
    fprintf(stderr, "usage: see the head of store.c\n");
    return 2;
}
