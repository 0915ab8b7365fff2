/* SPDX-License-Identifier: BSD-3-Clause */
/* Who may connect to a memif, for how long it may take, and the page that both ends share. */
#include "io/memif/memif.h"
#include "io/memif/memif_wire.h"
#include "io/port/port.h"
#include "machine/shared.h"
#include "tests/support/eal.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h>

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

static char sock[64];
static struct rte_mempool *pool;

static struct io_port *open_port(bool listener, const char *secret)
{
    struct memif_cfg cfg = {.socket = sock,
                            .listener = listener,
                            .queues = 2,
                            .log2_ring = 4,
                            .name = "test",
                            .pool = pool,
                            .secret = secret};
    struct io_port *p;

    assert_int_equal(io_port_memif(&p, &cfg), 0);
    return p;
}

static bool both_up(struct io_port *a, struct io_port *b, unsigned ms)
{
    bool up = false;

    for (unsigned i = 0; !up && i < ms; i++, usleep(1000)) {
        bool one = io_port_up(a), other = io_port_up(b);

        up = one && other;
    }
    return up;
}

static int call(void)
{
    struct sockaddr_un un = {.sun_family = AF_UNIX};
    int fd = socket(AF_UNIX, SOCK_SEQPACKET, 0);

    snprintf(un.sun_path, sizeof(un.sun_path), "%s", sock);
    assert_int_equal(connect(fd, (struct sockaddr *)&un, sizeof(un)), 0);
    return fd;
}

static void only_who_has_the_secret_comes_in(void **state)
{
    static const char right[MEMIF_SECRET] = "0123456789abcdef0123456",
                      wrong[MEMIF_SECRET] = "0123456789abcdef0123457";
    static const struct {
        const char *server, *client;
        bool up;
    } rows[] = {
        {right, right, true}, {right, wrong, false}, {right, NULL, false}, {NULL, wrong, true}};

    (void)state;
    for (unsigned i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        struct io_port *s = open_port(true, rows[i].server), *c = open_port(false, rows[i].client);
        const char *why;

        assert_int_equal(both_up(s, c, rows[i].up ? 5000 : 100), rows[i].up);
        assert_int_equal(io_port_stats(s)->connects, rows[i].up);
        if (!rows[i].up) {
            assert_true(io_port_stats(s)->refused > 0);
            assert_int_equal(io_port_refused(s, &why), getpid());
            assert_non_null(strstr(why, "token"));
            io_port_refused(c, &why);
            assert_non_null(strstr(why, "token"));
        }
        io_port_close(c);
        io_port_close(s);
    }
}

/* Somebody who says nothing: for a second where nobody waits, else for a moment. */
static void a_half_open_connection_ends(void **state)
{
    struct io_port *s = open_port(true, NULL), *c;
    int fd = call(), more;
    char text[256];

    (void)state;
    assert_false(io_port_up(s));
    assert_false(io_port_expired(s));
    usleep(100000);
    assert_false(io_port_expired(s));
    more = call();
    assert_true(io_port_expired(s));
    assert_false(io_port_up(s)); /* ends the first */
    assert_int_equal(io_port_stats(s)->refused, 1);
    while (recv(fd, text, sizeof(text), 0) > 0)
        ;
    close(fd);
    assert_false(io_port_up(s)); /* takes the second */
    assert_false(io_port_expired(s));
    usleep(1100000);
    assert_true(io_port_expired(s));
    assert_false(io_port_up(s));
    close(more);
    c = open_port(false, NULL);
    assert_true(both_up(s, c, 5000));
    usleep(1100000);
    assert_false(io_port_expired(s)); /* that one is up */
    assert_true(io_port_up(s));
    io_port_close(c);
    io_port_close(s);
}

static void both_ends_have_one_page(void **state)
{
    struct io_port *s = open_port(true, NULL), *c = open_port(false, NULL);
    struct port_page *page = io_port_page(c);

    (void)state;
    assert_non_null(page);
    assert_null(io_port_page(s));
    assert_true(both_up(s, c, 5000));
    assert_non_null(io_port_page(s));
    atomic_store(&page->wants_room, 77);
    assert_int_equal(atomic_load(&io_port_page(s)->wants_room), 77);
    atomic_store(&io_port_page(s)->bell.seq, 5);
    assert_int_equal(atomic_load(&page->bell.seq), 5);
    io_port_orphan(c, true); /* the child of a fork shares nothing */
    atomic_store(&page->wants_room, 78);
    assert_int_equal(atomic_load(&io_port_page(s)->wants_room), 77);
    io_port_close(s);
    io_port_close(c);
}

static void offer_page(int to, int fd, uint64_t size)
{
    struct memif_msg msg = {.type = MEMIF_ADD_REGION};
    union {
        char buf[CMSG_SPACE(sizeof(int))];
        struct cmsghdr align;
    } ctl = {0};
    struct iovec iov = {&msg, sizeof(msg)};
    struct msghdr mh = {.msg_iov = &iov, .msg_iovlen = 1};

    msg.region.size = size;
    msg.region.kind = MEMIF_PORT_PAGE;
    if (fd >= 0) {
        struct cmsghdr *h;

        mh.msg_control = ctl.buf;
        mh.msg_controllen = sizeof(ctl.buf);
        h = CMSG_FIRSTHDR(&mh);
        h->cmsg_len = CMSG_LEN(sizeof(int));
        h->cmsg_level = SOL_SOCKET;
        h->cmsg_type = SCM_RIGHTS;
        memcpy(CMSG_DATA(h), &fd, sizeof(fd));
    }
    assert_int_equal(sendmsg(to, &mh, 0), sizeof(msg));
}

/* A page that could shrink would be a SIGBUS in the server. */
static void a_page_that_may_shrink_is_refused(void **state)
{
    static const struct {
        int seals;
        size_t bytes;
        uint64_t said;
    } rows[] = {
        {0, sizeof(struct port_page), sizeof(struct port_page)},
        {F_SEAL_SHRINK, sizeof(struct port_page), sizeof(struct port_page)},
        {F_SEAL_SHRINK | F_SEAL_GROW, 64, sizeof(struct port_page)},
        {F_SEAL_SHRINK | F_SEAL_GROW, sizeof(struct port_page), 64},
        {F_SEAL_SHRINK | F_SEAL_GROW, sizeof(struct port_page), UINT64_MAX},
        {-1, 0, sizeof(struct port_page)}, /* no file */
    };
    struct io_port *s = open_port(true, NULL);

    (void)state;
    for (unsigned i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        struct memif_msg init = {.type = MEMIF_INIT};
        int fd = call(), file = -1;

        if (rows[i].seals >= 0) {
            file = memfd_create("x", MFD_ALLOW_SEALING);
            assert_int_equal(ftruncate(file, (off_t)rows[i].bytes), 0);
            assert_int_equal(fcntl(file, F_ADD_SEALS, rows[i].seals), 0);
        }
        init.init.version = MEMIF_VERSION;
        assert_int_equal(send(fd, &init, sizeof(init), 0), sizeof(init));
        offer_page(fd, file, rows[i].said);
        assert_false(io_port_up(s));
        assert_int_equal(io_port_stats(s)->refused, i + 1);
        assert_null(io_port_page(s));
        if (file >= 0)
            close(file);
        close(fd);
    }
    io_port_close(s);
}

static int opened(const struct memif_cfg *cfg)
{
    struct io_port *p = (struct io_port *)&pool;
    int rc = io_port_memif(&p, cfg);

    if (rc)
        assert_null(p);
    else
        io_port_close(p);
    return rc;
}

static void what_a_memif_cannot_be_is_refused(void **state)
{
    static char longest[108], longer[109];
    const struct memif_cfg usual = {
        .socket = sock, .listener = true, .queues = 1, .log2_ring = 4, .pool = pool};
    struct io_port *s = open_port(true, NULL);
    struct memif_cfg cfg;

    (void)state;
    for (unsigned queues = 0; queues <= RIM_QUEUES + 1; queues++) {
        cfg = usual;
        cfg.listener = false;
        cfg.queues = queues;
        assert_int_equal(opened(&cfg), queues && queues <= RIM_QUEUES ? 0 : -EINVAL);
    }
    cfg = usual;
    cfg.listener = false;
    cfg.log2_ring = MEMIF_MAX_LOG2;
    assert_int_equal(opened(&cfg), 0);
    cfg.log2_ring++;
    assert_int_equal(opened(&cfg), -EINVAL);
    memset(longest, 'x', sizeof(longest) - 1);
    memset(longer, 'x', sizeof(longer) - 1);
    cfg = usual;
    cfg.listener = false;
    cfg.socket = longest; /* a client need not find it yet */
    assert_int_equal(opened(&cfg), 0);
    cfg.socket = longer;
    assert_int_equal(opened(&cfg), -EINVAL);
    cfg = usual; /* who listens has no frames of another to share */
    cfg.share = (const struct io_frames *)&pool;
    assert_int_equal(opened(&cfg), -EINVAL);
    io_port_close(s);
}

/* Where it cannot listen it says where and why. */
static void a_listener_without_a_place_names_it(void **state)
{
    const struct memif_cfg cfg = {.socket = "/nonexistent/memif.sock",
                                  .listener = true,
                                  .queues = 1,
                                  .log2_ring = 4,
                                  .pool = pool};
    int was = dup(STDERR_FILENO), rc;
    FILE *said = tmpfile();
    char text[256] = "";

    (void)state;
    assert_true(was >= 0 && said);
    dup2(fileno(said), STDERR_FILENO);
    rc = opened(&cfg);
    dup2(was, STDERR_FILENO);
    close(was);
    assert_int_equal(rc, -ENOENT);
    rewind(said);
    assert_non_null(fgets(text, sizeof(text), said));
    assert_string_equal(text,
                        "tributary: cannot listen on /nonexistent/memif.sock: No such file or "
                        "directory\n");
    fclose(said);
}

static void a_listener_introduces_itself_by_its_name(void **state)
{
    static const char *const names[] = {"leaf0", NULL};

    (void)state;
    for (unsigned i = 0; i < 2; i++) {
        struct memif_cfg cfg = {.socket = sock,
                                .listener = true,
                                .queues = 1,
                                .log2_ring = 4,
                                .name = names[i],
                                .pool = pool};
        struct memif_msg hello;
        struct io_port *s;
        int fd;

        assert_int_equal(io_port_memif(&s, &cfg), 0);
        fd = call();
        assert_false(io_port_up(s));
        assert_int_equal(recv(fd, &hello, sizeof(hello), MSG_DONTWAIT), sizeof(hello));
        assert_string_equal(hello.hello.name, names[i] ? names[i] : "tributary");
        assert_int_equal(hello.hello.max_log2_ring, MEMIF_MAX_LOG2);
        close(fd);
        io_port_close(s);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(only_who_has_the_secret_comes_in),
        cmocka_unit_test(a_half_open_connection_ends),
        cmocka_unit_test(both_ends_have_one_page),
        cmocka_unit_test(a_page_that_may_shrink_is_refused),
        cmocka_unit_test(what_a_memif_cannot_be_is_refused),
        cmocka_unit_test(a_listener_without_a_place_names_it),
        cmocka_unit_test(a_listener_introduces_itself_by_its_name),
    };

    snprintf(sock, sizeof(sock), "/tmp/trib-memifc-%d.sock", (int)getpid());
    test_eal_init();
    pool = test_pool(512);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
