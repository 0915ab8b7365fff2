/* SPDX-License-Identifier: BSD-3-Clause */
/* Inside of the store over TCP: store_tcp.c (calls), store_meet.c (how ranks meet), store_net.c. */
#ifndef TRIB_HOST_SESSION_STORE_TCP_H
#define TRIB_HOST_SESSION_STORE_TCP_H

#include "host/session/store.h"
#include "host/session/store_secret.h"

struct addrinfo;

struct tcp_store {
    struct trib_store store;
    uint32_t rank, size;
    int64_t patience_ms; /* limit of each wait */
    int *fd;             /* rank 0: [size], a connection to each rank; else only fd[0] */
};

/* ---- store_meet.c ---- */

/* At rank 0: waits until every rank has come. 0 or -errno, with the reason in err. */
int store_serve(struct tcp_store *s, const struct addrinfo *a, const struct store_secret *secret,
                int64_t until_ms, char *err);
/* At the other ranks: tries until rank 0 has accepted this rank. Rank 0 may not listen yet. */
int store_reach(struct tcp_store *s, const struct addrinfo *a, const struct store_secret *secret,
                int64_t until_ms, char *err);

/* ---- store_net.c: non-blocking sockets ---- */

int64_t store_now_ms(void);
/* Sends (out) or receives exactly `bytes` bytes. 0, -ETIMEDOUT, -ECONNRESET or -errno. */
int store_transfer(int fd, bool out, void *buf, size_t bytes, int64_t until_ms);
int store_resolve(const char *address, bool passive, struct addrinfo **list, char *err);
/* A descriptor or -errno. */
int store_listen(const struct addrinfo *a, char *err);
int store_connect(const struct addrinfo *a, int64_t until_ms);

/* Address and port of one end of a connection. IPv4 addresses are IPv4-mapped. */
struct store_place {
    uint8_t address[16];
    uint8_t port[2], zero[2];
};
/* Gets the place of this end, or of the peer's. 0 or -errno. */
int store_place(int fd, bool peer, struct store_place *p);

#endif
