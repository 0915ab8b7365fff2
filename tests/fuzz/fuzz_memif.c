/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A memif whose other end is hostile: control messages with descriptors of any kind, and rings whose
 * indices, descriptors, offsets and lengths the input sets, before a burst and, by a thread, while it
 * runs. Nothing outside of the regions is touched (they are moved between pages without access),
 * frames have a length that their buffers have, and every frame, mapping and descriptor comes back.
 *
 * Input: which end is tested, then records { what, a, b, n, n bytes }.
 */
#include "io/memif.h"
#include "roce/frame.h"
#include "tests/support/eal.h"

#include <fcntl.h>
#include <pthread.h>
#include <rte_mempool.h>
#include <semaphore.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

int LLVMFuzzerInitialize(int *argc, char ***argv);
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

#define MBUFS       511u
#define SHARED      127u
#define QUEUES      2u
#define LOG2        2u
#define ID          7u
#define PAGE        4096u
#define PAGES       64u /* of a region that the peer makes, at most */
#define ARENA       (PAGE * 512u)
#define BURST       32u
#define RACE_BURSTS 8u

enum end { SERVER, CLIENT, CLIENT_SHARED, ENDS };

/* What the hostile end has. */
struct peer {
    int listen, fd;
    unsigned n_regions, n_rings[2];
    int memfd[MEMIF_REGIONS]; /* what it has sent, or received */
    uint8_t *at[MEMIF_REGIONS];
    size_t size[MEMIF_REGIONS];
    uint32_t ring_at[2 * QUEUES]; /* in region 0; C2S, then S2C */
};

static struct rte_mempool *pool;
static struct io_frames frames;
static uint8_t *arena[MEMIF_REGIONS];
static char sock[108];
static struct io_port *port;
static struct peer peer;
static enum end end;

static void check(bool ok, const char *what)
{
    if (!ok) {
        fprintf(stderr, "%s\n", what);
        abort();
    }
}

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
        uint8_t *old = r->addr, *to = arena[i] + PAGE;
        struct memif_queue *q[] = {mf->rx, mf->tx};

        if (old == to || old == frames.at || r->size > ARENA - 2 * PAGE)
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

/* ---- control messages ---- */

static void send_msg(const struct memif_msg *msg, size_t len, const int *fd, unsigned n_fds)
{
    union {
        char buf[CMSG_SPACE(2 * sizeof(int))];
        struct cmsghdr align;
    } ctl = {0};
    struct iovec iov = {(void *)(uintptr_t)msg, len};
    struct msghdr mh = {.msg_iov = &iov, .msg_iovlen = 1};

    if (n_fds) {
        mh.msg_control = ctl.buf;
        mh.msg_controllen = CMSG_SPACE(n_fds * sizeof(int));
        CMSG_FIRSTHDR(&mh)->cmsg_len = CMSG_LEN(n_fds * sizeof(int));
        CMSG_FIRSTHDR(&mh)->cmsg_level = SOL_SOCKET;
        CMSG_FIRSTHDR(&mh)->cmsg_type = SCM_RIGHTS;
        memcpy(CMSG_DATA(CMSG_FIRSTHDR(&mh)), fd, n_fds * sizeof(int));
    }
    sendmsg(peer.fd, &mh, MSG_NOSIGNAL | MSG_DONTWAIT);
}

static int make_file(uint8_t how, size_t size)
{
    int fd =
        how & 1 ? memfd_create("peer", MFD_CLOEXEC | MFD_ALLOW_SEALING) : eventfd(0, EFD_CLOEXEC);

    if (how & 1 && ftruncate(fd, (off_t)size))
        check(false, "ftruncate");
    if (how & 2)
        fcntl(fd, F_ADD_SEALS, F_SEAL_SHRINK);
    return fd;
}

/* A file that the next ADD_REGION is right for; the peer keeps its own mapping of it. */
static int region_file(uint8_t pages)
{
    size_t size = PAGE * (pages % PAGES + 1u);
    int fd = make_file(3, size);
    unsigned i = peer.n_regions;

    if (i == MEMIF_REGIONS)
        return fd;
    peer.at[i] = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    check(peer.at[i] != MAP_FAILED, "mmap");
    peer.size[i] = size;
    peer.memfd[i] = dup(fd);
    peer.n_regions++;
    return fd;
}

static struct memif_ring *peer_ring(unsigned i)
{
    uint32_t at = peer.ring_at[i % (2 * QUEUES)];
    size_t need = sizeof(struct memif_ring) + (sizeof(struct memif_desc) << LOG2);

    return peer.at[0] && at + need <= peer.size[0] ? (struct memif_ring *)(peer.at[0] + at) : NULL;
}

/* A valid next ring with its buffers, behind those there are. */
static void next_ring(struct memif_msg *msg, uint8_t flags)
{
    bool c2s = flags & MEMIF_RING_C2S;
    unsigned n = peer.n_rings[c2s], i = (c2s ? 0 : QUEUES) + n;
    struct memif_ring *r;

    msg->ring.flags = flags;
    msg->ring.index = (uint16_t)n;
    msg->ring.offset = 256u * i;
    msg->ring.log2_size = LOG2;
    if (n >= QUEUES)
        return;
    peer.n_rings[c2s]++;
    peer.ring_at[i] = 256u * i;
    r = peer_ring(i);
    if (!r)
        return;
    r->cookie = MEMIF_COOKIE;
    r->head = c2s ? 0 : 1u << LOG2;
    for (unsigned d = 0; d < 1u << LOG2; d++)
        r->desc[d] =
            (struct memif_desc){.length = 512, .offset = PAGE + 512u * (i * (1u << LOG2) + d)};
}

/* A message that is right for the other end's state, as far as `type` is, with bytes replaced. */
static void say(uint8_t type, uint8_t how, const uint8_t *patch, size_t n)
{
    struct memif_msg msg = {.type = type % 10};
    int fd[2] = {-1, -1};
    unsigned n_fds = how >> 6;
    size_t len = sizeof(msg);

    switch (msg.type) {
    case MEMIF_HELLO:
        msg.hello.min_version = msg.hello.max_version = MEMIF_VERSION;
        msg.hello.max_region = 3;
        msg.hello.max_c2s_ring = msg.hello.max_s2c_ring = QUEUES - 1;
        msg.hello.max_log2_ring = LOG2;
        break;
    case MEMIF_INIT:
        msg.init.version = MEMIF_VERSION;
        msg.init.id = ID;
        break;
    case MEMIF_ADD_REGION:
        msg.region.index = (uint16_t)peer.n_regions;
        fd[0] = region_file(how);
        msg.region.size = PAGE * (how % PAGES + 1u);
        break;
    case MEMIF_ADD_RING:
        next_ring(&msg, how & 1);
        break;
    default:
        break;
    }
    for (size_t i = 0; i + 1 < n; i += 2)
        ((uint8_t *)&msg)[patch[i] % sizeof(msg)] = patch[i + 1];
    if (n & 1)
        len = patch[n - 1] % (sizeof(msg) + 1);
    if (n_fds == 1 && fd[0] >= 0) { /* another kind of file */
        close(fd[0]);
        fd[0] = make_file(how, PAGE);
    }
    if (fd[0] < 0 && n_fds)
        fd[0] = make_file(how, PAGE);
    if (n_fds == 3)
        fd[1] = make_file(how, PAGE);
    send_msg(&msg, len, fd, (fd[0] >= 0) + (fd[1] >= 0));
    for (unsigned i = 0; i < 2; i++)
        if (fd[i] >= 0)
            close(fd[i]);
    up();
}

/* What the tested client has sent: its regions, which the peer maps too. */
static void take_all(void)
{
    struct memif_msg msg;
    union {
        char buf[CMSG_SPACE(sizeof(int))];
        struct cmsghdr align;
    } ctl;
    struct iovec iov = {&msg, sizeof(msg)};

    for (;;) {
        struct msghdr mh = {.msg_iov = &iov, .msg_iovlen = 1, .msg_control = ctl.buf};
        struct cmsghdr *c;
        int fd = -1;

        mh.msg_controllen = sizeof(ctl.buf);
        if (recvmsg(peer.fd, &mh, MSG_DONTWAIT | MSG_CMSG_CLOEXEC) != sizeof(msg))
            return;
        c = CMSG_FIRSTHDR(&mh);
        if (c)
            memcpy(&fd, CMSG_DATA(c), sizeof(fd));
        if (end != SERVER && msg.type == MEMIF_ADD_REGION && fd >= 0 && peer.n_regions < 2) {
            unsigned i = peer.n_regions++;

            peer.size[i] = msg.region.size;
            peer.at[i] = mmap(NULL, msg.region.size, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
            check(peer.at[i] != MAP_FAILED, "mmap");
            peer.memfd[i] = dup(fd);
        }
        if (end != SERVER && msg.type == MEMIF_ADD_RING)
            peer.ring_at[(msg.ring.flags & MEMIF_RING_C2S ? 0 : QUEUES) + msg.ring.index] =
                msg.ring.offset;
        if (fd >= 0)
            close(fd);
    }
}

/* ---- connecting ---- */

static void forget(void)
{
    for (unsigned i = 0; i < peer.n_regions; i++) {
        munmap(peer.at[i], peer.size[i]);
        close(peer.memfd[i]);
    }
    if (peer.fd >= 0)
        close(peer.fd);
    peer = (struct peer){.listen = peer.listen, .fd = -1};
}

static void join(void)
{
    struct sockaddr_un un = {.sun_family = AF_UNIX};

    forget();
    snprintf(un.sun_path, sizeof(un.sun_path), "%s", sock);
    if (end == SERVER) {
        peer.fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);
        if (connect(peer.fd, (struct sockaddr *)&un, sizeof(un)))
            check(false, "connect");
        up();
        up();
        return;
    }
    up(); /* it notices that the last peer has gone, */
    up(); /* and connects */
    peer.fd = accept4(peer.listen, NULL, NULL, SOCK_CLOEXEC);
}

static void handshake(void)
{
    if (end == SERVER) {
        say(MEMIF_INIT, 0, NULL, 0);
        say(MEMIF_ADD_REGION, 15, NULL, 0);
        for (unsigned i = 0; i < 2 * QUEUES; i++)
            say(MEMIF_ADD_RING, i < QUEUES, NULL, 0);
        say(MEMIF_CONNECT, 0, NULL, 0);
        take_all();
        return;
    }
    say(MEMIF_HELLO, 0, NULL, 0);
    take_all();
    say(MEMIF_CONNECTED, 0, NULL, 0);
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

/* A field of a ring: head, tail, flags, cookie, or one of its descriptors. */
static void *field(unsigned ring, unsigned which, unsigned *bytes)
{
    struct memif_ring *r = peer_ring(ring);
    struct memif_desc *d = r ? &r->desc[which >> 4 & ((1u << LOG2) - 1)] : NULL;

    *bytes = which % 8 < 3 || which % 8 == 5 || which % 8 == 6 ? 2 : 4;
    if (!r)
        return NULL;
    switch (which % 8) {
    case 0:
        return &r->head;
    case 1:
        return &r->tail;
    case 2:
        return &r->flags;
    case 3:
        return &d->length;
    case 4:
        return &d->offset;
    case 5:
        return &d->region;
    case 6:
        return &d->flags;
    default:
        return &r->cookie;
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
    void *at = field(ring, which, &bytes);

    if (at)
        memcpy(at, &v, bytes);
}

/* Bursts while a field jumps between two values. */
static void race_field(unsigned ring, unsigned which, const uint8_t *p, size_t n)
{
    unsigned bytes;
    void *at = field(ring, which, &bytes);

    if (!at || n < 5)
        return;
    race_begin((void *)((uintptr_t)at & ~(uintptr_t)3), number(p, 4), number(p + 4, n - 4));
    for (unsigned i = 0; i < RACE_BURSTS; i++) {
        receive(i % QUEUES, 8);
        transmit(i % QUEUES, 4, 60u * i);
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
        take_all();
        look();
        break;
    case 8: /* a file that shrinks under the mapping */
        if (peer.n_regions)
            (void)!ftruncate(peer.memfd[a % peer.n_regions], PAGE * (off_t)b);
        break;
    default:
        join();
    }
}

static void start(void)
{
    struct memif_cfg cfg = {.socket = sock,
                            .listener = end == SERVER,
                            .id = ID,
                            .queues = QUEUES,
                            .log2_ring = LOG2,
                            .pool = pool,
                            .share = end == CLIENT_SHARED ? &frames : NULL};

    arenas();
    peer = (struct peer){.listen = -1, .fd = -1};
    if (end != SERVER) {
        struct sockaddr_un un = {.sun_family = AF_UNIX};

        snprintf(un.sun_path, sizeof(un.sun_path), "%s", sock);
        unlink(sock);
        peer.listen = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
        check(!bind(peer.listen, (struct sockaddr *)&un, sizeof(un)) && !listen(peer.listen, 8),
              "listen");
    }
    check(io_port_memif(&port, &cfg) == 0, "io_port_memif");
    join();
}

static void stop(void)
{
    forget();
    io_port_close(port);
    if (peer.listen >= 0)
        close(peer.listen);
    unlink(sock);
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
