/* SPDX-License-Identifier: BSD-3-Clause */
/* memif between two processes: bursts pass whole and in order, and a peer may be killed at any
 * moment. */
#include "io/memif/memif.h"
#include "roce/frame.h"
#include "tests/support/eal.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h>

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define QUEUES 2
#define LOG2   6

static char sock[64];

static int64_t mono_ms(void)
{
    struct timespec ts;

    clock_gettime(CLOCK_MONOTONIC, &ts);
    return ts.tv_sec * 1000 + ts.tv_nsec / 1000000;
}

/* share: a client's frames, instead of pool; else NULL. */
static struct io_port *open_port_of(bool listener, struct rte_mempool *pool,
                                    const struct io_frames *share)
{
    struct memif_cfg cfg = {.socket = sock,
                            .listener = listener,
                            .id = 7,
                            .queues = QUEUES,
                            .log2_ring = LOG2,
                            .name = "test",
                            .pool = pool,
                            .share = share};
    struct io_port *p;

    if (io_port_memif(&p, &cfg))
        abort();
    return p;
}

static struct io_port *open_port(bool listener, struct rte_mempool *pool)
{
    return open_port_of(listener, pool, NULL);
}

static bool wait_up(struct io_port *p, bool up)
{
    for (int64_t end = mono_ms() + 10000; io_port_up(p) != up; usleep(200))
        if (mono_ms() > end)
            return false;
    return true;
}

/* A frame whose every byte follows from seq; odd ones are chains of two segments. */
static struct rte_mbuf *make_frame(struct rte_mempool *pool, uint32_t seq)
{
    uint32_t len = 60 + seq * 37 % 4000, head = seq % 2 ? 60 : len;
    struct rte_mbuf *m = frame_alloc(pool), *t = NULL;
    uint8_t *b;

    if (!m)
        return NULL;
    if (head < len && !(t = frame_alloc(pool))) {
        rte_pktmbuf_free(m);
        return NULL;
    }
    b = (uint8_t *)rte_pktmbuf_append(m, (uint16_t)head);
    for (uint32_t i = 0; i < head; i++)
        b[i] = (uint8_t)(seq + i);
    if (t) {
        b = (uint8_t *)rte_pktmbuf_append(t, (uint16_t)(len - head));
        for (uint32_t i = head; i < len; i++)
            b[i - head] = (uint8_t)(seq + i);
        rte_pktmbuf_chain(m, t);
    }
    memcpy(rte_pktmbuf_mtod(m, void *), &seq, sizeof(seq));
    return m;
}

static bool frame_is(struct rte_mbuf *m, uint32_t seq)
{
    const uint8_t *b = rte_pktmbuf_mtod(m, const uint8_t *);
    uint32_t len = 60 + seq * 37 % 4000;

    if (m->nb_segs != 1 || m->pkt_len != len || memcmp(b, &seq, sizeof(seq)))
        return false;
    for (uint32_t i = sizeof(seq); i < len; i++)
        if (b[i] != (uint8_t)(seq + i))
            return false;
    return frame_meta(m)->due_ps == 0 && frame_meta(m)->flags == 0;
}

#define SHARED (2 * (QUEUES << LOG2) + 128)

/* The other process: echoes frames until it is killed; with flood, it also sends as fast as it can.
 * share: its frames are those of its rings. */
static int peer_main(bool flood, bool share)
{
    struct io_frames frames;
    struct rte_mempool *pool;
    struct io_port *p;
    uint32_t seq = 0;

    test_eal_init();
    if (share && io_frames_create(&frames, "shared", SHARED))
        abort();
    pool = share ? frames.pool : test_pool(1024);
    p = open_port_of(false, pool, share ? &frames : NULL);
    for (unsigned idle = 0;;) {
        struct rte_mbuf *m[32];
        uint16_t n = 0;

        if (idle++ % 64 == 0 && !io_port_up(p) && getppid() == 1)
            return 0;
        for (uint16_t q = 0; q < QUEUES; q++) {
            uint16_t sent;

            n = io_port_rx(p, q, m, 32);
            sent = 0;
            for (int tries = 0; sent < n && (tries < 1000 || !flood); tries++) {
                sent += io_port_tx(p, q, m + sent, (uint16_t)(n - sent));
                if (sent < n && !io_port_up(p))
                    break;
            }
            rte_pktmbuf_free_bulk(m + sent, n - sent);
        }
        if (flood && io_port_up(p) && (m[0] = make_frame(pool, seq++)) && !io_port_tx(p, 1, m, 1))
            rte_pktmbuf_free(m[0]);
        if (!n && !flood)
            usleep(20);
    }
}

static pid_t spawn_peer(const char *kind)
{
    pid_t pid = fork();

    if (!pid) {
        execl("/proc/self/exe", "test_memif", kind, sock, (char *)NULL);
        _exit(127);
    }
    return pid;
}

static void reap(pid_t pid)
{
    kill(pid, SIGKILL);
    waitpid(pid, NULL, 0);
}

static void bursts_pass(const char *peer)
{
    struct rte_mempool *pool = test_pool(2048);
    struct io_port *p = open_port(true, pool);
    unsigned before = rte_mempool_avail_count(pool);
    pid_t pid = spawn_peer(peer);
    uint32_t tx[QUEUES] = {0}, rx[QUEUES] = {0};
    int64_t end = mono_ms() + 20000;

    assert_true(wait_up(p, true));
    while ((rx[0] < 5000 || rx[1] < 5000) && mono_ms() < end) {
        for (uint16_t q = 0; q < QUEUES; q++) {
            struct rte_mbuf *m[48];
            uint16_t n = 0, k;

            while (n < 20 && tx[q] + n < 5000 && (m[n] = make_frame(pool, tx[q] + n)))
                n++;
            k = io_port_tx(p, q, m, n);
            tx[q] += k;
            rte_pktmbuf_free_bulk(m + k, n - k);
            n = io_port_rx(p, q, m, 48);
            for (uint16_t i = 0; i < n; i++)
                assert_true(frame_is(m[i], rx[q]++));
            rte_pktmbuf_free_bulk(m, n);
        }
    }
    assert_int_equal(rx[0], 5000);
    assert_int_equal(rx[1], 5000);
    assert_int_equal(io_port_stats(p)->rx_bad + io_port_stats(p)->tx_bad, 0);
    reap(pid);
    assert_true(wait_up(p, false));
    io_port_close(p);
    assert_int_equal(rte_mempool_avail_count(pool), before);
    assert_int_equal(access(sock, F_OK), -1);
}

static void bursts_pass_whole_and_in_order_on_every_queue(void **state)
{
    (void)state;
    bursts_pass("echo");
}

static void shared_frames_pass_whole_and_in_order_on_every_queue(void **state)
{
    (void)state;
    bursts_pass("echo_shared");
}

static uint16_t receive(struct io_port *p, struct rte_mbuf **m, uint16_t n)
{
    uint16_t got = 0;

    for (int tries = 0; got < n && tries < 1000; tries++)
        got += io_port_rx(p, 0, m + got, (uint16_t)(n - got));
    return got;
}

/* A client with shared frames sends and receives its own mbufs, and all of them come back, whatever
 * happens to the peer. */
static void shared_frames_are_not_copied_and_come_back(void **state)
{
    struct rte_mempool *pool = test_pool(512);
    struct io_port *l = open_port(true, pool), *c;
    struct io_frames frames;
    struct rte_mbuf *m[8], *r[8];
    unsigned before;

    (void)state;
    assert_int_equal(io_frames_create(&frames, "shared", SHARED), 0);
    before = rte_mempool_avail_count(pool);
    c = open_port_of(false, NULL, &frames);
    for (int i = 0; i < 10; i++)
        io_port_up(i % 2 ? l : c);
    assert_true(io_port_up(l) && io_port_up(c));
    for (uint32_t round = 0; round < 200; round++) {
        uint8_t *data[8];

        for (uint32_t i = 0; i < 8; i++) {
            m[i] = make_frame(frames.pool, 8 * round + i);
            data[i] = rte_pktmbuf_mtod(m[i], uint8_t *);
        }
        assert_int_equal(io_port_tx(c, 0, m, 8), 8);
        if (round % 2) /* even ones are not chains */
            *data[0] ^= 0xff;
        assert_int_equal(receive(l, r, 8), 8);
        for (uint32_t i = 0; i < 8; i++) {
            if (round % 2 && i == 0) /* changed after it was sent, and visible: not copied */
                *rte_pktmbuf_mtod(r[0], uint8_t *) ^= 0xff;
            assert_true(frame_is(r[i], 8 * round + i));
        }
        assert_int_equal(io_port_tx(l, 0, r, 8), 8);
        assert_int_equal(receive(c, r, 8), 8);
        for (uint32_t i = 0; i < 8; i++) {
            const uint8_t *p = rte_pktmbuf_mtod(r[i], const uint8_t *);

            assert_true(frame_is(r[i], 8 * round + i));
            assert_true(p >= frames.at && p < frames.at + frames.bytes);
        }
        rte_pktmbuf_free_bulk(r, 8);
    }
    m[0] = make_frame(frames.pool, 0); /* on its way when the peer goes */
    assert_int_equal(io_port_tx(c, 0, m, 1), 1);
    io_port_close(l);
    assert_false(io_port_up(c));
    assert_int_equal(rte_mempool_avail_count(frames.pool), SHARED);
    io_port_close(c);
    io_frames_destroy(&frames);
    assert_int_equal(rte_mempool_avail_count(pool), before);
}

static void what_cannot_pass_is_freed_and_counted(void **state)
{
    struct rte_mempool *pool = test_pool(64);
    struct io_port *p = open_port(true, pool);
    unsigned before = rte_mempool_avail_count(pool);
    struct rte_mbuf *m[3];
    pid_t pid = spawn_peer("echo");

    (void)state;
    assert_true(wait_up(p, true));
    m[0] = frame_alloc(pool);
    m[1] = frame_alloc(pool);
    rte_pktmbuf_append(m[0], 4608);
    rte_pktmbuf_append(m[1], 60);
    rte_pktmbuf_chain(m[0], m[1]);
    m[1] = make_frame(pool, 0);
    frame_meta(m[1])->flags = FRAME_F_VIRTUAL;
    m[2] = make_frame(pool, 2);
    while (!io_port_tx(p, 0, m, 1))
        usleep(100);
    assert_int_equal(io_port_tx(p, 0, m + 1, 2), 2);
    assert_int_equal(io_port_stats(p)->tx_bad, 2);
    while (!io_port_rx(p, 0, m, 3))
        usleep(100);
    assert_true(frame_is(m[0], 2));
    assert_int_equal(m[0]->data_off, FRAME_HEADROOM);
    rte_pktmbuf_free(m[0]);
    assert_int_equal(rte_mempool_avail_count(pool), before);
    reap(pid);
    io_port_close(p);
}

/* Memory that any client may write: a descriptor of its ring, from the start of its buffer. */
static void describe(struct io_port *client, uint16_t slot, uint16_t flags, uint32_t len, int byte)
{
    struct memif *mf = (struct memif *)client;
    struct memif_desc *d = &mf->tx[0].ring->desc[slot & mf->tx[0].mask];

    d->flags = flags;
    d->length = len;
    if (len <= MEMIF_BUFFER)
        memset(mf->region[d->region].addr + d->offset, byte, len);
}

static void publish(struct io_port *client, uint16_t head)
{
    __atomic_store_n(&((struct memif *)client)->tx[0].ring->head, head, __ATOMIC_RELEASE);
}

static bool frame_has(const struct rte_mbuf *m, uint32_t a, int byte_a, uint32_t b, int byte_b)
{
    const uint8_t *p = rte_pktmbuf_mtod(m, const uint8_t *);
    bool ok = m->pkt_len == a + b && m->data_len == a + b && m->nb_segs == 1;

    for (uint32_t i = 0; ok && i < a + b; i++)
        ok = p[i] == (i < a ? byte_a : byte_b);
    return ok;
}

static void chains_pass_when_they_are_whole_and_nonsense_is_counted(void **state)
{
    struct rte_mempool *pool = test_pool(64), *other = test_pool(64);
    struct io_port *l = open_port(true, pool), *c = open_port(false, other);
    struct rte_mbuf *m[8];
    struct memif_desc *desc;

    (void)state;
    for (int i = 0; i < 10; i++)
        io_port_up(i % 2 ? l : c);
    assert_true(io_port_up(l) && io_port_up(c));
    desc = ((struct memif *)c)->tx[0].ring->desc;

    describe(c, 0, MEMIF_DESC_NEXT, 100, 1);
    publish(c, 1);
    assert_int_equal(io_port_rx(l, 0, m, 1), 0);
    assert_int_equal(io_port_rx(l, 0, m, 8), 0);
    describe(c, 1, 0, 50, 2);
    describe(c, 2, 0, 60, 3);
    describe(c, 3, MEMIF_DESC_NEXT, 40, 4);
    publish(c, 4);
    assert_int_equal(io_port_rx(l, 0, m, 1), 1);
    assert_int_equal(io_port_rx(l, 0, m + 1, 1), 1);
    describe(c, 4, 0, 33, 5);
    publish(c, 5); /* the rest of a chain whose beginning is known */
    assert_int_equal(io_port_rx(l, 0, m + 2, 1), 1);
    assert_true(frame_has(m[0], 100, 1, 50, 2));
    assert_true(frame_has(m[1], 60, 3, 0, 0));
    assert_true(frame_has(m[2], 40, 4, 33, 5));
    frame_free_burst(m, 3);

    describe(c, 5, 0, 60, 6);
    desc[5].offset = 0x7fffffff;
    describe(c, 6, 0, 60, 6);
    desc[6].region = 9;
    describe(c, 7, 0, 0, 0);
    describe(c, 8, MEMIF_DESC_NEXT, MEMIF_BUFFER, 6); /* longer than a frame */
    describe(c, 9, 0, MEMIF_BUFFER, 6);
    describe(c, 10, 0, UINT32_MAX, 6);
    describe(c, 11, 0, 64, 7);
    publish(c, 12);
    assert_int_equal(io_port_rx(l, 0, m, 8), 1);
    assert_true(frame_has(m[0], 64, 7, 0, 0));
    assert_int_equal(io_port_stats(l)->rx_bad, 5);
    assert_int_equal(io_port_stats(l)->rx, 4);
    publish(c, 12 + 1000); /* cannot be */
    assert_int_equal(io_port_rx(l, 0, m + 1, 8), 0);
    rte_pktmbuf_free(m[0]);
    assert_int_equal(rte_mempool_avail_count(pool), 64);
    io_port_close(c);
    io_port_close(l);
}

static unsigned kills(void)
{
    const char *n = getenv("TRIB_TEST_KILLS");

    return n ? (unsigned)atoi(n) : 50;
}

static void a_busy_peer_may_be_killed_again_and_again(void **state)
{
    struct rte_mempool *pool = test_pool(512);
    struct io_port *p = open_port(true, pool);
    unsigned before = rte_mempool_avail_count(pool), n_kills = kills();
    pid_t pid = spawn_peer("flood");
    uint64_t got = 0;

    (void)state;
    for (unsigned k = 0; k < n_kills; k++) {
        pid_t next;
        uint32_t seq = 0;
        int64_t until;

        assert_true(wait_up(p, true));
        next = spawn_peer(
            k % 2 ? "flood"
                  : "flood_shared"); /* waits in the backlog, so that the listener is never alone */
        until = mono_ms() + 5 + k % 7;
        for (bool dead = false; !dead;) {
            struct rte_mbuf *m[32];
            uint16_t n = 0, s;

            while (n < 32 && (m[n] = make_frame(pool, seq + n)))
                n++;
            s = io_port_tx(p, 0, m, n);
            seq += s;
            rte_pktmbuf_free_bulk(m + s, n - s);
            for (uint16_t q = 0; q < QUEUES; q++) {
                n = io_port_rx(p, q, m, 32);
                got += n;
                rte_pktmbuf_free_bulk(m, n);
            }
            if (until && mono_ms() >= until && seq > 500) {
                kill(pid, SIGKILL);
                until = 0;
            }
            if (!until)
                dead = !io_port_up(p);
        }
        waitpid(pid, NULL, 0);
        pid = next;
    }
    assert_true(got > 500ull * n_kills);
    assert_true(wait_up(p, true));
    assert_int_equal(io_port_stats(p)->connects, n_kills + 1);
    assert_int_equal(rte_mempool_avail_count(pool), before);
    reap(pid);
    io_port_close(p);
}

/* Arbitrary messages on the socket must not stop the listener. */
static void nonsense_on_the_control_channel_is_refused(void **state)
{
    struct rte_mempool *pool = test_pool(64);
    struct io_port *p = open_port(true, pool);
    pid_t pid;

    (void)state;
    for (unsigned i = 0; i < 300; i++) {
        struct sockaddr_un un = {.sun_family = AF_UNIX};
        struct memif_msg msg, init = {.type = MEMIF_INIT};
        int fd = socket(AF_UNIX, SOCK_SEQPACKET, 0);

        snprintf(un.sun_path, sizeof(un.sun_path), "%s", sock);
        assert_int_equal(connect(fd, (struct sockaddr *)&un, sizeof(un)), 0);
        srand(i);
        for (unsigned b = 0; b < sizeof(msg); b++)
            ((uint8_t *)&msg)[b] = (uint8_t)rand();
        msg.type = (uint16_t)(i % 12);
        init.init.version = MEMIF_VERSION;
        init.init.id = 7;
        if (i % 2)
            assert_int_equal(send(fd, &init, sizeof(init), 0), sizeof(init));
        assert_int_equal(send(fd, &msg, i % 5 ? sizeof(msg) : 17, 0), i % 5 ? sizeof(msg) : 17);
        assert_false(io_port_up(p));
        close(fd);
        assert_false(io_port_up(p));
    }
    pid = spawn_peer("echo");
    assert_true(wait_up(p, true));
    reap(pid);
    io_port_close(p);
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(bursts_pass_whole_and_in_order_on_every_queue),
        cmocka_unit_test(shared_frames_pass_whole_and_in_order_on_every_queue),
        cmocka_unit_test(shared_frames_are_not_copied_and_come_back),
        cmocka_unit_test(chains_pass_when_they_are_whole_and_nonsense_is_counted),
        cmocka_unit_test(what_cannot_pass_is_freed_and_counted),
        cmocka_unit_test(nonsense_on_the_control_channel_is_refused),
        cmocka_unit_test(a_busy_peer_may_be_killed_again_and_again),
    };

    if (argc == 3) {
        snprintf(sock, sizeof(sock), "%s", argv[2]);
        return peer_main(!strncmp(argv[1], "flood", 5), strstr(argv[1], "shared") != NULL);
    }
    snprintf(sock, sizeof(sock), "/tmp/trib-memif-%d.sock", (int)getpid());
    test_eal_init();
    return cmocka_run_group_tests(tests, NULL, NULL);
}
