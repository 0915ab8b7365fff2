/* SPDX-License-Identifier: BSD-3-Clause */
/* The store over TCP inside: store_tcp.c (its calls), store_meet.c (who is a rank), store_net.c. */
#ifndef TRIB_HOST_SESSION_STORE_TCP_H
#define TRIB_HOST_SESSION_STORE_TCP_H

#include "host/session/store.h"
#include "host/session/store_secret.h"

struct addrinfo;

struct tcp_store {
    struct trib_store store;
    uint32_t rank, size;
    int64_t patience_ms; /* of every wait */
    int *fd;             /* rank 0: of each other rank; else fd[0] alone */
};

/* ---- store_meet.c ---- */

/* Rank 0: until every rank has come. 0 or -errno, with the reason in err. */
int store_serve(struct tcp_store *s, const struct addrinfo *a, const struct store_secret *secret,
                int64_t until_ms, char *err);
/* The others: until rank 0 has answered; it may not listen yet. */
int store_reach(struct tcp_store *s, const struct addrinfo *a, const struct store_secret *secret,
                int64_t until_ms, char *err);

/* ---- store_net.c: sockets do not block ---- */

int64_t store_now_ms(void);
/* All of it, in one direction. 0, -ETIMEDOUT, -ECONNRESET, -errno. */
int store_transfer(int fd, bool out, void *buf, size_t bytes, int64_t until_ms);
int store_resolve(const char *address, bool passive, struct addrinfo **list, char *err);
/* A descriptor or -errno. */
int store_listen(const struct addrinfo *a, char *err);
int store_connect(const struct addrinfo *a, int64_t until_ms);

/* Address and port of an end of a connection, the same for IPv4 and what IPv6 makes of it. */
struct store_place {
    uint8_t address[16];
    uint8_t port[2], zero[2];
};
/* Of the end here, or of the peer's. 0 or -errno. */
int store_place(int fd, bool peer, struct store_place *p);

#endif
