/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * UDP ping-pong with blocking sockets, as anybody would write it: bench_udp server PORT echoes
 * until it is killed; bench_udp ADDRESS PORT BYTES ROUNDS prints the mean half round trip in
 * microseconds.
 */
#include <arpa/inet.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <time.h>

#define WARM_UP 1000

static int64_t now_ns(void)
{
    struct timespec ts;

    clock_gettime(CLOCK_MONOTONIC, &ts);
    return ts.tv_sec * 1000000000LL + ts.tv_nsec;
}

static int die(const char *what)
{
    perror(what);
    return 1;
}

static int serve(int fd)
{
    char buf[65536];
    struct sockaddr_in from;

    for (;;) {
        socklen_t n = sizeof(from);
        ssize_t got = recvfrom(fd, buf, sizeof(buf), 0, (struct sockaddr *)&from, &n);

        if (got < 0 || sendto(fd, buf, (size_t)got, 0, (struct sockaddr *)&from, n) != got)
            return die("bench_udp: server");
    }
}

static int ask(int fd, size_t bytes, long rounds)
{
    char buf[65536] = {0};
    int64_t begin = 0;

    for (long i = -WARM_UP; i < rounds; i++) {
        if (i == 0)
            begin = now_ns();
        if (send(fd, buf, bytes, 0) != (ssize_t)bytes ||
            recv(fd, buf, sizeof(buf), 0) != (ssize_t)bytes)
            return die("bench_udp: client");
    }
    printf("%.3f\n", (double)(now_ns() - begin) / 2e3 / (double)rounds);
    return 0;
}

int main(int argc, char **argv)
{
    struct sockaddr_in at = {.sin_family = AF_INET};
    bool server = argc == 3 && !strcmp(argv[1], "server");
    struct timeval patience = {5, 0}; /* a lost datagram ends the run instead of hanging it */
    int fd = socket(AF_INET, SOCK_DGRAM, 0);

    if (!server && argc != 5) {
        fprintf(stderr, "usage: bench_udp server PORT | bench_udp ADDRESS PORT BYTES ROUNDS\n");
        return 2;
    }
    at.sin_port = htons((uint16_t)atoi(argv[2]));
    if (fd < 0)
        return die("bench_udp: socket");
    if (server) {
        if (bind(fd, (struct sockaddr *)&at, sizeof(at)))
            return die("bench_udp: bind");
        return serve(fd);
    }
    if (inet_pton(AF_INET, argv[1], &at.sin_addr) != 1 ||
        setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof(patience)) ||
        connect(fd, (struct sockaddr *)&at, sizeof(at)))
        return die("bench_udp: connect");
    return ask(fd, (size_t)atoi(argv[3]), atol(argv[4]));
}
