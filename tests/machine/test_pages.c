/* SPDX-License-Identifier: BSD-3-Clause */
/* The pages that processes of a fabric share: who makes, finds and may write them. */
#include "machine/page_server.h"
#include "machine/rundir.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h>

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

static char base[32], dir[64];
static struct fabric *fab;
static struct rundir rd;

static int setup(void **state)
{
    static const char conf[] =
        "mtu = 4096; single_switch = { hosts = 2; host_link = { rate = \"400Gb/s\"; "
        "latency = \"300ns\"; }; };";
    struct fab_errors errs = {0};

    (void)state;
    snprintf(base, sizeof(base), "/tmp/trib-pages-XXXXXX");
    if (!mkdtemp(base))
        return -1;
    snprintf(dir, sizeof(dir), "%s/run", base);
    fab = fabric_load_string(conf, "pair.conf", &errs);
    return fab ? rundir_open(&rd, dir, NULL, true) : -1;
}

static int teardown(void **state)
{
    char cmd[128];

    (void)state;
    fabric_free(fab);
    snprintf(cmd, sizeof(cmd), "rm -rf %s", base);
    return system(cmd);
}

static struct page_server *serve(struct shared **sh, const char *name, unsigned dilation)
{
    struct page_server_cfg cfg = {.dir = dir, .name = name, .fab = fab, .dilation = dilation};
    struct page_server *ps;

    assert_int_equal(page_server_start(&ps, sh, &cfg), 0);
    return ps;
}

static void the_first_one_makes_the_clock_and_all_see_it(void **state)
{
    struct shared *a, *b, *c;
    struct page_server *pa = serve(&a, "a", 7), *pb = serve(&b, "b", 9);

    (void)state;
    assert_non_null(a->own_clock);
    assert_null(b->own_clock);
    assert_int_equal(clock_dilation(b), 7);
    assert_int_equal(shared_join(&c, dir), 0);
    assert_int_equal(c->n_sw, 2);
    clock_set_dilation(a->own_clock, 11);
    assert_int_equal(clock_dilation(c), 11);
    atomic_store(&b->own->cuts, 5);
    assert_int_equal(c->sw[0].page->cuts + c->sw[1].page->cuts, 5);
    page_server_stop(pa);
    page_server_stop(pb);
    shared_free(c);
    shared_free(a);
    shared_free(b);
}

static void many_at_once_share_one_clock(void **state)
{
    int status, go[2], said[2];
    uint32_t dilation;
    pid_t pid[8];
    char c;

    (void)state;
    assert_int_equal(pipe(go), 0);
    assert_int_equal(pipe(said), 0);
    for (unsigned i = 0; i < 8; i++) {
        pid[i] = fork();
        if (!pid[i]) {
            struct shared *sh;
            char name[8];

            close(go[1]);
            snprintf(name, sizeof(name), "p%u", i);
            serve(&sh, name, 100 + i);
            dilation = clock_dilation(sh);
            if (write(said[1], &dilation, sizeof(dilation)) != sizeof(dilation))
                _exit(1);
            (void)!read(go[0], &c, 1); /* until all are up */
            _exit(0);
        }
    }
    for (unsigned i = 0, first = 0; i < 8; i++) {
        assert_int_equal(read(said[0], &dilation, sizeof(dilation)), sizeof(dilation));
        first = i ? first : dilation;
        assert_int_equal(dilation, first);
    }
    close(go[1]);
    for (unsigned i = 0; i < 8; i++) {
        assert_int_equal(waitpid(pid[i], &status, 0), pid[i]);
        assert_int_equal(status, 0);
    }
}

/* A view's mappings are read-only, and no descriptor of them can be mapped or written again. */
static void who_joins_cannot_write_clock_or_pages(void **state)
{
    struct shared *a, *b;
    struct page_server *ps = serve(&a, "a", 7);
    int fd, clock;
    char path[64];

    (void)state;
    b = calloc(1, sizeof(*b));
    assert_int_equal(shared_find(b, dir, &clock), 0);
    assert_int_equal(mprotect((void *)(uintptr_t)b->clock, sizeof(*b->clock), PROT_WRITE), -1);
    assert_int_equal(mprotect((void *)(uintptr_t)b->sw[0].page, sizeof(*b->sw[0].page), PROT_WRITE),
                     -1);
    snprintf(path, sizeof(path), "/proc/self/fd/%d", clock);
    fd = open(path, O_RDWR);
    assert_true(fd >= 0);
    assert_ptr_equal(mmap(NULL, 4096, PROT_WRITE, MAP_SHARED, fd, 0), MAP_FAILED);
    assert_int_equal(write(fd, "x", 1), -1);
    assert_int_equal(ftruncate(fd, 0), -1);
    assert_int_equal(ftruncate(fd, 1 << 20), -1);
    close(fd);
    close(clock);
    page_server_stop(ps);
    shared_free(a);
    shared_free(b);
}

static void a_file_without_its_seals_is_not_mapped(void **state)
{
    static const int seals[] = {0, F_SEAL_SHRINK, F_SEAL_GROW, F_SEAL_SHRINK | F_SEAL_GROW};
    int fd;

    (void)state;
    for (unsigned i = 0; i < 4; i++) {
        fd = memfd_create("x", MFD_ALLOW_SEALING);
        assert_int_equal(ftruncate(fd, 4096), 0);
        assert_int_equal(fcntl(fd, F_ADD_SEALS, seals[i]), 0);
        assert_null(shared_map(fd, 4096, false)); /* its writer is not known to be the only one */
        if (i < 3)
            assert_null(shared_map(fd, 4096, true));
        close(fd);
    }
    assert_non_null(shared_make("x", 4096, &fd));
    assert_null(shared_map(fd, 8192, true));
    assert_null(shared_map(fd, 64, true));
    assert_non_null(shared_map(fd, 4096, true));
    assert_int_equal(shared_seal(fd), 0);
    assert_null(shared_map(fd, 4096, true));
    assert_non_null(shared_map(fd, 4096, false));
    close(fd);
    fd = memfd_create("x", MFD_ALLOW_SEALING | MFD_HUGETLB);
    if (fd >= 0 && !ftruncate(fd, 2 << 20) && !fcntl(fd, F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW))
        assert_null(shared_map(fd, 2 << 20, true));
    if (fd >= 0)
        close(fd);
}

static void a_process_that_ended_is_forgotten_and_its_successor_found(void **state)
{
    struct shared *a, *b, *c, *d;
    struct page_server *pa = serve(&a, "a", 7), *pb = serve(&b, "b", 7);
    const struct switch_view *v;

    (void)state;
    assert_int_equal(shared_join(&c, dir), 0);
    v = shared_switch_of(c, 0);
    assert_non_null(v);
    shared_forget(c, v); /* it only seemed so */
    shared_refresh(c, dir);
    assert_false(v->gone);
    assert_int_equal(c->n_sw, 2);
    page_server_stop(pb);
    pb = serve(&d, "b", 7);
    for (unsigned i = 0; i < c->n_sw; i++)
        shared_forget(c, &c->sw[i]);
    shared_refresh(c, dir);
    assert_int_equal(c->n_sw, 3);
    page_server_stop(pa);
    page_server_stop(pb);
    shared_free(c);
    assert_int_equal(shared_join(&c, dir), -ENOENT);
    shared_free(a);
    shared_free(b);
    shared_free(d);
}

/* Something else answers, says nothing, or ends. */
static void an_odd_answer_is_no_fabric(void **state)
{
    struct sockaddr_un un = {.sun_family = AF_UNIX};
    int s = socket(AF_UNIX, SOCK_SEQPACKET, 0), status;
    struct shared *sh;
    pid_t pid;

    (void)state;
    snprintf(un.sun_path, sizeof(un.sun_path), "%s/proc/odd.page", dir);
    assert_int_equal(bind(s, (struct sockaddr *)&un, sizeof(un)), 0);
    assert_int_equal(listen(s, 8), 0);
    assert_int_equal(shared_join(&sh, dir), -EAGAIN); /* after a second */
    pid = fork();
    if (!pid) {
        for (unsigned i = 0; i < 3; i++) {
            int c = accept(s, NULL, NULL);

            if (i)
                (void)!write(c, "nonsense", i == 1 ? 8 : 3);
            close(c);
        }
        _exit(0);
    }
    for (unsigned i = 0; i < 2; i++) /* the first of three is the connection that timed out */
        assert_true(shared_join(&sh, dir) < 0);
    assert_int_equal(waitpid(pid, &status, 0), pid);
    close(s);
}

#define T(f) cmocka_unit_test_setup_teardown(f, setup, teardown)

int main(void)
{
    const struct CMUnitTest tests[] = {
        T(the_first_one_makes_the_clock_and_all_see_it),
        T(many_at_once_share_one_clock),
        T(who_joins_cannot_write_clock_or_pages),
        T(a_file_without_its_seals_is_not_mapped),
        T(a_process_that_ended_is_forgotten_and_its_successor_found),
        T(an_odd_answer_is_no_fabric),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
