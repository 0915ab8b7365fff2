/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A memif whose other end is hostile: control messages with descriptors of any kind, and rings whose
 * indices, descriptors, offsets and lengths the input sets, before a burst and, by a thread, while it
 * runs. Nothing outside of the regions is touched (they are moved between pages without access),
 * frames have a length that their buffers have, and every frame, mapping and descriptor comes back.
 *
 * Input: which end is tested, then records { what, a, b, n, n bytes }.
 */
#include "roce/frame.h"
#include "tests/support/eal.h"
#include "tests/support/memif_peer.h"
#include "tests/fuzz/fuzz.h"

#include <pthread.h>
#include <rte_mempool.h>
#include <semaphore.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

int LLVMFuzzerInitialize(int *argc, char ***argv);
#define MBUFS       511u
#define SHARED      127u
#define ARENA       (MEMIF_PEER_PAGE * 512u)
#define BURST       32u
#define RACE_BURSTS 8u

enum end { SERVER, CLIENT, CLIENT_SHARED, ENDS };

static struct rte_mempool *pool;
static struct io_frames frames;
static uint8_t *arena[MEMIF_REGIONS];
static char sock[108];
static struct io_port *port;
static struct memif_peer peer;
static enum end end;

static struct memif *memif(void)
{
    return (struct memif *)port;
}

/* ---- a peer that writes while we read ---- */

static struct {
    sem_t go, done;
    volatile uint32_t *at;
    uint32_t a, b;
    _Atomic bool stop;
} race;

static void *racer(void *arg)
{
    (void)arg;
    for (;;) {
        while (sem_wait(&race.go))
            ;
        while (!race.stop)
            *race.at = race.a, *race.at = race.b;
        sem_post(&race.done);
    }
    return NULL;
}

static void race_begin(void *at, uint32_t a, uint32_t b)
{
    race.at = at, race.a = a, race.b = b;
    race.stop = false;
    sem_post(&race.go);
}

static void race_end(void)
{
    race.stop = true;
    while (sem_wait(&race.done))
        ;
}

/* ---- guards ---- */

/* Moves what the port has mapped into the arena, where the pages around it have no access. */
static void guard(void)
{
    struct memif *mf = memif();

    for (unsigned i = 0; i < mf->n_regions; i++) {
        struct memif_region *r = &mf->region[i];
        uint8_t *old = r->addr, *to = arena[i] + MEMIF_PEER_PAGE;
        struct memif_queue *q[] = {mf->rx, mf->tx};

        if (old == to || old == frames.at || r->size > ARENA - 2 * MEMIF_PEER_PAGE)
            continue;
        to = mremap(old, r->size, r->size, MREMAP_MAYMOVE | MREMAP_FIXED, to);
        check(to != MAP_FAILED, "mremap");
        r->addr = to;
        for (unsigned k = 0; k < 2 * RIM_QUEUES; k++) {
            struct memif_ring **ring = &q[k / RIM_QUEUES][k % RIM_QUEUES].ring;

            if ((uint8_t *)*ring >= old && (uint8_t *)*ring < old + r->size)
                *ring = (struct memif_ring *)((uint8_t *)*ring - old + to);
        }
    }
}

static void arenas(void)
{
    for (unsigned i = 0; i < MEMIF_REGIONS; i++) {
        int fixed = arena[i] ? MAP_FIXED : 0;

        arena[i] = mmap(arena[i], ARENA, PROT_NONE,
                        MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | fixed, -1, 0);
        check(arena[i] != MAP_FAILED, "mmap");
    }
}

/* Where it has unmapped them, nothing else may be mapped. */
static void up(void)
{
    uint16_t before = memif()->n_regions;

    io_port_up(port);
    if (before && !memif()->n_regions)
        arenas();
    guard();
}

/* ---- connecting ---- */

static void say(uint8_t type, uint8_t how, const uint8_t *patch, size_t n)
{
    memif_peer_say(&peer, type, how, patch, n);
    up();
}

/* The port notices that the last peer has gone, and connects or accepts. */
static void join(void)
{
    memif_peer_forget(&peer);
    if (end == SERVER)
        check(memif_peer_join(&peer), "connect");
    up();
    up();
    if (end != SERVER)
        memif_peer_join(&peer);
}

static void handshake(void)
{
    if (end != SERVER) {
        say(MEMIF_HELLO, 0, NULL, 0);
        memif_peer_take(&peer);
        say(MEMIF_CONNECTED, 0, NULL, 0);
        return;
    }
    say(MEMIF_INIT, 0, NULL, 0);
    say(MEMIF_ADD_REGION, 15, NULL, 0);
    for (unsigned i = 0; i < 2 * MEMIF_PEER_QUEUES; i++)
        say(MEMIF_ADD_RING, i < MEMIF_PEER_QUEUES, NULL, 0);
    say(MEMIF_CONNECT, 0, NULL, 0);
    memif_peer_take(&peer);
}

/* ---- rings ---- */

static void receive(unsigned queue, unsigned n)
{
    struct rte_mbuf *m[BURST];

    n = io_port_rx(port, (uint16_t)queue, m, (uint16_t)n);
    check(n <= BURST, "more frames than asked for");
    for (unsigned i = 0; i < n; i++) {
        check(m[i]->nb_segs == 1 && m[i]->pkt_len == m[i]->data_len && m[i]->data_len &&
                  m[i]->data_off + m[i]->data_len <= m[i]->buf_len,
              "a frame does not fit its buffer");
        rte_pktmbuf_free(m[i]);
    }
}

static void transmit(unsigned queue, unsigned n, uint32_t len)
{
    struct rte_mempool *from = end == CLIENT_SHARED && len & 1 ? frames.pool : pool;
    struct rte_mbuf *m[BURST];
    unsigned k = 0;

    len = 1 + len % (FRAME_ROOM - 1);
    while (k < n && (m[k] = frame_alloc(from)))
        memset(rte_pktmbuf_append(m[k++], (uint16_t)len), 0x5a, len);
    n = io_port_tx(port, (uint16_t)queue, m, (uint16_t)k);
    check(n <= k, "more frames sent than given");
    while (n < k)
        rte_pktmbuf_free(m[n++]);
}

static void look(void)
{
    for (uint16_t q = 0; q < RIM_QUEUES; q++) {
        check(io_port_pending(port, q) <= 1u << MEMIF_MAX_LOG2, "more is pending than a ring has");
        io_port_arrived(port, q);
        io_port_crowded(port, q);
        io_port_untaken(port, q);
    }
}

static uint32_t number(const uint8_t *p, size_t n)
{
    uint32_t v = 0;

    memcpy(&v, p, n < sizeof(v) ? n : sizeof(v));
    return v;
}

static void set_field(unsigned ring, unsigned which, const uint8_t *p, size_t n)
{
    uint32_t v = number(p, n);
    unsigned bytes;
    void *at = memif_peer_field(&peer, ring, which, &bytes);

    if (at)
        memcpy(at, &v, bytes);
}

/* Bursts while a field jumps between two values. */
static void race_field(unsigned ring, unsigned which, const uint8_t *p, size_t n)
{
    unsigned bytes;
    void *at = memif_peer_field(&peer, ring, which, &bytes);

    if (!at || n < 5)
        return;
    race_begin((void *)((uintptr_t)at & ~(uintptr_t)3), number(p, 4), number(p + 4, n - 4));
    for (unsigned i = 0; i < RACE_BURSTS; i++) {
        receive(i % MEMIF_PEER_QUEUES, 8);
        transmit(i % MEMIF_PEER_QUEUES, 4, 60u * i);
        look();
    }
    race_end();
}

/* Bytes anywhere in a region. */
static void scribble(uint8_t region, uint8_t page, const uint8_t *p, size_t n)
{
    unsigned r = region % MEMIF_REGIONS;
    size_t at = 16u * page;

    if (peer.at[r] && at + n <= peer.size[r])
        memcpy(peer.at[r] + at, p, n);
}

static void record(uint8_t what, uint8_t a, uint8_t b, const uint8_t *p, size_t n)
{
    switch (what % 10) {
    case 0:
        say(a, b, p, n);
        break;
    case 1:
        handshake();
        break;
    case 2:
        set_field(a, b, p, n);
        break;
    case 3:
        receive(a % (RIM_QUEUES + 1), b % (BURST + 1));
        break;
    case 4:
        transmit(a % (RIM_QUEUES + 1), b % (BURST + 1), number(p, n));
        break;
    case 5:
        scribble(a, b, p, n);
        break;
    case 6:
        race_field(a, b, p, n);
        break;
    case 7:
        memif_peer_take(&peer);
        look();
        break;
    case 8: /* a file that shrinks under the mapping */
        if (peer.n_regions)
            (void)!ftruncate(peer.memfd[a % peer.n_regions], MEMIF_PEER_PAGE * (off_t)b);
        break;
    default:
        join();
    }
}

static void start(void)
{
    struct memif_cfg cfg = {.socket = sock,
                            .listener = end == SERVER,
                            .id = MEMIF_PEER_ID,
                            .queues = MEMIF_PEER_QUEUES,
                            .log2_ring = MEMIF_PEER_LOG2,
                            .pool = pool,
                            .share = end == CLIENT_SHARED ? &frames : NULL};

    arenas();
    check(memif_peer_open(&peer, sock, end != SERVER), "listen");
    check(io_port_memif(&port, &cfg) == 0, "io_port_memif");
    join();
}

static void stop(void)
{
    memif_peer_forget(&peer);
    io_port_close(port);
    memif_peer_close(&peer);
}

int LLVMFuzzerInitialize(int *argc, char ***argv)
{
    pthread_t t;

    (void)argc, (void)argv;
    test_eal_init();
    pool = test_pool(MBUFS);
    check(io_frames_create(&frames, "fuzz", SHARED) == 0, "io_frames_create");
    snprintf(sock, sizeof(sock), "/tmp/fuzz_memif.%d", (int)getpid());
    check(!sem_init(&race.go, 0, 0) && !sem_init(&race.done, 0, 0) &&
              !pthread_create(&t, NULL, racer, NULL),
          "a thread");
    return 0;
}

static int free_fd(void)
{
    int fd = dup(0);

    close(fd);
    return fd;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    int least = free_fd();

    if (!size)
        return 0;
    end = data[0] % ENDS;
    start();
    for (data++, size--; size >= 4;) {
        size_t n = data[3] < size - 4 ? data[3] : size - 4;

        record(data[0], data[1], data[2], data + 4, n);
        data += 4 + n, size -= 4 + n;
    }
    stop();
    check(free_fd() == least, "a descriptor is left");
    check(rte_mempool_avail_count(pool) == MBUFS && rte_mempool_avail_count(frames.pool) == SHARED,
          "a frame is missing");
    return 0;
}
