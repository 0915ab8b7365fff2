/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * What somebody in the network between machines can do who has not the key.
 *   trunk capture INTERFACE ADDRESS FILE SECONDS   keeps the datagrams to the trunk at ADDRESS
 *   trunk replay FILE ADDRESS SECONDS              sends them to it, in order, over and over
 */
#include <arpa/inet.h>
#include <linux/if_packet.h>
#include <net/ethernet.h>
#include <net/if.h>
#include <netinet/in.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#define PORT   4795
#define MOST   9216
#define BEFORE 42 /* Ethernet, IPv4 and UDP headers */
#define PAUSE  500000

static double seconds(void)
{
    struct timespec ts;

    clock_gettime(CLOCK_MONOTONIC, &ts);
    return (double)ts.tv_sec + (double)ts.tv_nsec * 1e-9;
}

static int capture(const char *interface, const char *address, const char *path, double until)
{
    struct sockaddr_ll at = {.sll_family = AF_PACKET,
                             .sll_protocol = htons(ETH_P_IP),
                             .sll_ifindex = (int)if_nametoindex(interface)};
    int fd = socket(AF_PACKET, SOCK_RAW, htons(ETH_P_IP));
    in_addr_t to = inet_addr(address);
    FILE *f = fopen(path, "we");
    unsigned n = 0;

    if (fd < 0 || !f || bind(fd, (struct sockaddr *)&at, sizeof(at)) ||
        setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &(struct timeval){.tv_usec = 100000},
                   sizeof(struct timeval))) {
        perror("capture");
        return 1;
    }
    printf("capturing\n");
    fflush(stdout);
    while (seconds() < until) {
        unsigned char frame[MOST + BEFORE];
        ssize_t got = recv(fd, frame, sizeof(frame), 0);
        unsigned short bytes = (unsigned short)(got - BEFORE);

        if (got <= BEFORE || frame[14] != 0x45 || frame[23] != IPPROTO_UDP ||
            memcmp(frame + 30, &to, sizeof(to)) != 0 || (frame[36] << 8 | frame[37]) != PORT)
            continue;
        fwrite(&bytes, sizeof(bytes), 1, f);
        fwrite(frame + BEFORE, bytes, 1, f);
        n++;
    }
    fclose(f);
    close(fd);
    printf("captured %u\n", n);
    return 0;
}

static int replay(const char *path, const char *address, double until)
{
    struct sockaddr_in to = {
        .sin_family = AF_INET, .sin_port = htons(PORT), .sin_addr.s_addr = inet_addr(address)};
    int fd = socket(AF_INET, SOCK_DGRAM, 0);
    FILE *f = fopen(path, "re");
    unsigned n = 0, rounds = 0;

    if (fd < 0 || !f) {
        perror(path);
        return 1;
    }
    while (seconds() < until) {
        unsigned char m[65536];
        unsigned short bytes;

        if (fread(&bytes, sizeof(bytes), 1, f) != 1 || fread(m, bytes, 1, f) != 1) {
            if (!n)
                return 1; /* nothing to send */
            rewind(f);
            rounds++;
            continue;
        }
        n += sendto(fd, m, bytes, 0, (struct sockaddr *)&to, sizeof(to)) == bytes;
        nanosleep(&(struct timespec){.tv_nsec = PAUSE}, NULL);
    }
    fclose(f);
    close(fd);
    printf("sent %u, %u times over\n", n, rounds);
    return 0;
}

int main(int argc, char **argv)
{
    if (argc == 6 && !strcmp(argv[1], "capture"))
        return capture(argv[2], argv[3], argv[4], seconds() + atof(argv[5]));
    if (argc == 5 && !strcmp(argv[1], "replay"))
        return replay(argv[2], argv[3], seconds() + atof(argv[4]));
    fprintf(stderr,
            "expected capture INTERFACE ADDRESS FILE SECONDS, or replay FILE ADDRESS SECONDS\n");
    return 2;
}
