/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Which links a list names, and what of their frames gets into the file. What that looks like there,
 * test_pcapng says: a trace is compared with a file that is written by pcapng alone.
 */
#include "roce/wire.h"
#include "sim/report/pcapng.h"
#include "sim/report/trace.h"
#include "tests/fabric/load.h"
#include "tests/support/eal.h"

#include <errno.h>
#include <stdlib.h>
#include <unistd.h>

#define BYTES 8192u
/* The links of the small fabric, by their bits. */
#define H0      1u
#define H1      2u
#define LEAF0   12u
#define LEAF1   48u
#define N_LINKS 6u

static struct rte_mempool *pool;
static char traced[] = "/tmp/trace.XXXXXX", wanted[] = "/tmp/trace.XXXXXX";

static struct fabric *small(void)
{
    static const char *const name[N_LINKS] = {"h0:0-leaf0:0",     "h1:0-leaf1:0",
                                              "leaf0:1-spine0:0", "leaf0:2-spine0:1",
                                              "leaf1:1-spine0:2", "leaf1:2-spine0:3"};
    struct fabric *f = load_leaf_spine(2, 1, 1, 2, "name = \"small\";");

    assert_int_equal(f->n_links, N_LINKS);
    for (unsigned i = 0; i < N_LINKS; i++)
        assert_string_equal(f->links[i].name, name[i]);
    return f;
}

static void lists(void **state)
{
    static const struct {
        const char *list;
        unsigned links;
    } row[] = {
        {NULL, H0 | H1 | LEAF0 | LEAF1},
        {"h0", H0},
        {"h1-leaf1", H1},
        {"leaf1-h1", H1},
        {"leaf1:1-spine0:2", 16},
        {"leaf0", H0 | LEAF0},
        {"spine0", LEAF0 | LEAF1},
        {"h1,leaf0:2-spine0:1", H1 | 8},
        {"leaf0:1-spine0:0,h0,h1-leaf1", H0 | H1 | 4},
    };
    struct fabric *f = small();
    char err[TRACE_ERR] = "";

    (void)state;
    for (unsigned i = 0; i < LEN(row); i++) {
        unsigned links = 0;
        bool chosen[N_LINKS];

        memset(chosen, i & 1, sizeof(chosen)); /* whatever it was before */
        assert_int_equal(trace_choose(f, row[i].list, chosen, err), 0);
        for (unsigned k = 0; k < N_LINKS; k++)
            links |= (unsigned)chosen[k] << k;
        if (links != row[i].links)
            fail_msg("%s: found links %x, expected %x", row[i].list, links, row[i].links);
    }
    fabric_free(f);
}

#define NO_NAME "expected a link or a node that trib plan shows"

static void names_that_there_are_not(void **state)
{
    static const struct {
        const char *list, *err;
    } row[] = {
        {"", "--links: found \"\", expected a list of links or nodes"},
        {"leaf0-spine0",
         "--links: found \"leaf0-spine0\", expected one link; that fits several, so "
         "name its ports too: A:0-B:0"},
        {"leaf7", "--links: found \"leaf7\", " NO_NAME "; did you mean leaf0?"},
        {"h0-leaf1", "--links: found \"h0-leaf1\", " NO_NAME "; did you mean h0-leaf0?"},
        {"h0:1-leaf0:0",
         "--links: found \"h0:1-leaf0:0\", " NO_NAME "; did you mean h0:0-leaf0:0?"},
        {"leaf1.spine0",
         "--links: found \"leaf1.spine0\", " NO_NAME "; did you mean leaf1:1-spine0:2?"},
        {"spin-0", "--links: found \"spin-0\", " NO_NAME},
        {"nothing", "--links: found \"nothing\", " NO_NAME},
        {"h0,nothing,leaf7", "--links: found \"nothing\", " NO_NAME},
    };
    struct fabric *f = small();
    char err[TRACE_ERR];
    bool chosen[N_LINKS];

    (void)state;
    for (unsigned i = 0; i < LEN(row); i++) {
        assert_int_equal(trace_choose(f, row[i].list, chosen, err), -EINVAL);
        assert_string_equal(err, row[i].err);
    }
    fabric_free(f);
}

/* ---- the file ---- */

/* A write of 5 bytes, padded to 8: as bytes, or as a length. */
static struct rte_mbuf *write_of_5(bool length)
{
    struct rte_mbuf *m = frame_alloc(pool);
    struct roce_pkt k = {.opcode = ROCE_OP_RC_WRITE_ONLY,
                         .pkey = ROCE_DEFAULT_PKEY,
                         .ttl = 64,
                         .src_ip = 0x0a000001,
                         .dst_ip = 0x0a000002,
                         .dqpn = 17,
                         .len = 5,
                         .virt = length ? 5 : 0};

    roce_build(m, &k);
    if (!length)
        memset(rte_pktmbuf_mtod_offset(m, char *, k.hdr_len), 'x', 5);
    roce_seal(m, &k);
    return m;
}

static struct rte_mbuf *plain(uint16_t bytes)
{
    struct rte_mbuf *m = frame_alloc(pool);

    memset(rte_pktmbuf_append(m, bytes), 'p', bytes);
    return m;
}

static size_t read_file(const char *path, char *text)
{
    FILE *f = fopen(path, "r");
    size_t n;

    assert_non_null(f);
    n = fread(text, 1, BYTES, f);
    fclose(f);
    return n;
}

#define HEADERS (ROCE_BASE_BYTES + 16) /* with the RETH */

/* Two links, numbered among themselves; of a payload that is a length, its headers alone. */
static void frames_of_chosen_links(void **state)
{
    static const bool chosen[N_LINKS] = {false, true, false, false, true, false};
    struct rte_mbuf *short_one = plain(60), *real = write_of_5(false), *length = write_of_5(true),
                    *strange = plain(70);
    struct fabric *f = small();
    static char a[BYTES], b[BYTES];
    char err[TRACE_ERR] = "";
    struct pcapng *want;
    uint64_t frames = 0;
    struct trace *t;
    size_t n;

    (void)state;
    frame_meta(strange)->flags = FRAME_F_VIRTUAL;
    frame_meta(strange)->virt_len = 1000;
    f->links[4].rate_bps = 1000000000;
    assert_int_equal(trace_create(&t, f, chosen, traced, "program", err), 0);
    trace_frame(t, 2, short_one, 5000);
    trace_frame(t, 0, short_one, 6000);
    trace_frame(t, 3, short_one, 7000);
    trace_frame(t, 8, real, 8000);
    trace_frame(t, 10, real, 8000);
    trace_frame(t, 9, length, 9000);
    trace_frame(t, 7, length, 9000);
    trace_frame(t, 8, strange, 10000);
    assert_int_equal(trace_close(t, &frames), 0);
    assert_int_equal(frames, 5);

    assert_int_equal(pcapng_create(&want, wanted, "program", "small"), 0);
    pcapng_interface(want, "h1:0-leaf1:0", "outbound: h1:0 to leaf1:0", 400000000000u);
    pcapng_interface(want, "leaf1:1-spine0:2", "outbound: leaf1:1 to spine0:2", 1000000000);
    pcapng_frame(want, 0, 5000, PCAPNG_OUTBOUND, short_one, 60, 60);
    pcapng_frame(want, 0, 7000, PCAPNG_INBOUND, short_one, 60, 60);
    pcapng_frame(want, 1, 8000, PCAPNG_OUTBOUND, real, HEADERS + 12, HEADERS + 12);
    pcapng_frame(want, 1, 9000, PCAPNG_INBOUND, length, HEADERS, HEADERS + 12);
    pcapng_frame(want, 1, 10000, PCAPNG_OUTBOUND, strange, 70, 1070);
    assert_int_equal(pcapng_close(want), 0);
    n = read_file(wanted, b);
    assert_int_equal(read_file(traced, a), n);
    assert_memory_equal(a, b, n);
    rte_pktmbuf_free(short_one);
    rte_pktmbuf_free(real);
    rte_pktmbuf_free(length);
    rte_pktmbuf_free(strange);
    fabric_free(f);
}

static void files_that_cannot_be_written(void **state)
{
    static const bool chosen[N_LINKS] = {true};
    struct fabric *f = small();
    char err[TRACE_ERR] = "";
    uint64_t frames = 7;
    struct trace *t;

    (void)state;
    assert_int_equal(trace_create(&t, f, chosen, "/nowhere/t", "program", err), -ENOENT);
    assert_null(t);
    assert_string_equal(err, "--trace: cannot write /nowhere/t: No such file or directory");
    assert_int_equal(trace_create(&t, f, chosen, "/dev/full", "program", err), 0);
    assert_int_equal(trace_close(t, &frames), -ENOSPC);
    assert_int_equal(frames, 0);
    assert_int_equal(trace_close(NULL, &frames), 0);
    fabric_free(f);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(lists),
        cmocka_unit_test(names_that_there_are_not),
        cmocka_unit_test(frames_of_chosen_links),
        cmocka_unit_test(files_that_cannot_be_written),
    };
    int rc;

    test_eal_init();
    pool = test_pool(64);
    close(mkstemp(traced));
    close(mkstemp(wanted));
    rc = cmocka_run_group_tests(tests, NULL, NULL);
    unlink(traced);
    unlink(wanted);
    return rc;
}
