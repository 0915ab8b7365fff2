/* SPDX-License-Identifier: BSD-3-Clause */
/* What a run is observed by, as its options say: a trace, counters, a time line, or nothing. */
#include "sim/observe.h"
#include "tests/fabric/load.h"
#include "tests/support/eal.h"

#include <errno.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#define ROOM 1024u

static struct rte_mempool *pool;
static struct sweep sweep;
static struct sim m;
static char path[] = "/tmp/observe.XXXXXX", said[ROOM];

static void begin_with(struct fabric *f)
{
    m = (struct sim){.s = &sweep};
    sweep = (struct sweep){.o = &m.o, .fab = f, .nranks = 2, .host_of_rank = {0, 1}};
}

/* observe_end_trace(), and what it says on stderr. */
static int end_trace(void)
{
    FILE *file = tmpfile();
    int was = dup(STDERR_FILENO), rc;
    size_t n;

    assert_non_null(file);
    fflush(stderr);
    dup2(fileno(file), STDERR_FILENO);
    rc = observe_end_trace(&m);
    fflush(stderr);
    dup2(was, STDERR_FILENO);
    close(was);
    rewind(file);
    n = fread(said, 1, sizeof(said) - 1, file);
    said[n] = '\0';
    fclose(file);
    return rc;
}

static void nothing(void **state)
{
    struct fabric *f = load_leaf_spine(2, 1, 1, 1, "");

    (void)state;
    begin_with(f);
    assert_int_equal(observe_begin(&m), 0);
    assert_null(m.trace);
    assert_null(m.counters);
    assert_null(m.line);
    assert_null(m.timeline);
    assert_null(observe_tap(&m));
    assert_int_equal(observe_write_timeline(&m), 0);
    assert_int_equal(end_trace(), 0);
    assert_string_equal(said, "");
    observe_end(&m);
    fabric_free(f);
}

/* Frames of the chosen links are counted, and are in the file. */
static void a_trace(void **state)
{
    struct fabric *f = load_leaf_spine(2, 1, 1, 1, "");
    struct rte_mbuf *frame = frame_alloc(pool);
    char want[ROOM];
    struct stat st;
    net_tap_fn tap;

    (void)state;
    memset(rte_pktmbuf_append(frame, 60), 0, 60);
    begin_with(f);
    m.own.trace = path;
    m.own.links = "h1";
    assert_int_equal(observe_begin(&m), 0);
    tap = observe_tap(&m);
    assert_non_null(tap);
    assert_null(m.counters);
    for (unsigned d = 0; d < 2 * f->n_links; d++)
        tap(&m, d, frame, 1000);
    assert_int_equal(end_trace(), 0);
    snprintf(want, sizeof(want), "trib-sim: 2 frames in %s\n", path);
    assert_string_equal(said, want);
    assert_int_equal(stat(path, &st), 0);
    assert_true(st.st_size > 120);
    assert_null(m.trace);
    assert_int_equal(end_trace(), 0); /* once */
    assert_string_equal(said, "");
    observe_end(&m);
    rte_pktmbuf_free(frame);
    fabric_free(f);
}

static void a_trace_that_cannot_be_written(void **state)
{
    struct fabric *f = load_leaf_spine(2, 1, 1, 1, "");

    (void)state;
    begin_with(f);
    m.own.trace = "/dev/full";
    assert_int_equal(observe_begin(&m), 0);
    assert_int_equal(end_trace(), -ENOSPC);
    assert_string_equal(said, "trib-sim: cannot write /dev/full: No space left on device\n");
    observe_end(&m);
    begin_with(f);
    m.own.trace = "/nowhere/trace";
    m.own.counters = true;
    assert_int_equal(observe_begin(&m), -ENOENT);
    assert_string_equal(sweep.cause,
                        "--trace: cannot write /nowhere/trace: No such file or directory");
    assert_null(m.counters);
    observe_end(&m);
    begin_with(f);
    m.own.trace = path;
    m.own.links = "h7";
    assert_int_equal(observe_begin(&m), -EINVAL);
    assert_null(m.trace);
    observe_end(&m);
    fabric_free(f);
}

/* Counters are of the named links, also of those that carry nothing. */
static void counters(void **state)
{
    struct fabric *f = load_leaf_spine(2, 1, 1, 1, "");
    struct net_cfg nc = {.fab = f, .pool = pool, .seed = 1};
    struct net *n;

    (void)state;
    assert_int_equal(net_create(&n, &nc), 0);
    for (unsigned named = 0; named < 2; named++) {
        char *text;
        size_t size;
        FILE *out = open_memstream(&text, &size);

        begin_with(f);
        m.own.counters = true;
        m.own.links = named ? "h0" : NULL;
        assert_int_equal(observe_begin(&m), 0);
        assert_null(observe_tap(&m));
        assert_int_equal(counters_end_run(m.counters, n, "x", 1), 0);
        counters_print(m.counters, out);
        fclose(out);
        assert_int_equal(strstr(text, "h0:0") != NULL, named);
        free(text);
        observe_end(&m);
    }
    net_destroy(n);
    fabric_free(f);
}

/* A time line sees frames too; nothing of them is recorded before an operation. */
static void a_time_line(void **state)
{
    struct fabric *f = load_leaf_spine(2, 1, 1, 1, "");
    struct rte_mbuf *frame = frame_alloc(pool);

    (void)state;
    memset(rte_pktmbuf_append(frame, 60), 0, 60);
    begin_with(f);
    m.o.timeline = "t.json";
    assert_int_equal(observe_begin(&m), 0);
    assert_non_null(m.timeline);
    assert_non_null(m.line);
    assert_ptr_equal(net_timeline_ranks(m.line), m.timeline);
    assert_non_null(observe_tap(&m));
    observe_tap (&m)(&m, 0, frame, 1000);
    assert_int_equal(trace_events_count(timeline_events(m.timeline)), 0);
    observe_end(&m);
    rte_pktmbuf_free(frame);
    fabric_free(f);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(nothing),
        cmocka_unit_test(a_trace),
        cmocka_unit_test(a_trace_that_cannot_be_written),
        cmocka_unit_test(counters),
        cmocka_unit_test(a_time_line),
    };
    int rc;

    test_eal_init();
    pool = test_pool(1024);
    close(mkstemp(path));
    rc = cmocka_run_group_tests(tests, NULL, NULL);
    unlink(path);
    return rc;
}
