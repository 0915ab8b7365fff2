/* SPDX-License-Identifier: BSD-3-Clause */
/* Every word of the blocks, as draft-ietf-opsawg-pcapng has them; and what happens when the file cannot be written. */
#include "sim/report/pcapng.h"
#include "tests/support/eal.h"

#include <errno.h>
#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <unistd.h>

#include <cmocka.h>

#define WORDS 64u

static struct rte_mempool *pool;
static char path[] = "/tmp/pcapng.XXXXXX";

/* A frame of these bytes, from 1 on, in segments of the given lengths, the last one 0. */
static struct rte_mbuf *frame_of(const uint16_t *segment)
{
    struct rte_mbuf *first = frame_alloc(pool), *m = first;
    uint8_t v = 1;

    for (unsigned s = 0; segment[s]; s++) {
        if (s)
            m = m->next = frame_alloc(pool);
        assert_non_null(m);
        m->data_len = segment[s];
        first->nb_segs = (uint16_t)(s + 1);
        first->pkt_len += segment[s];
        for (uint16_t i = 0; i < segment[s]; i++)
            rte_pktmbuf_mtod(m, uint8_t *)[i] = v++;
    }
    return first;
}

static unsigned file_words(uint32_t *word)
{
    int fd = open(path, O_RDONLY);
    ssize_t n = read(fd, word, WORDS * sizeof(*word));

    close(fd);
    assert_true(n >= 0 && n % 4 == 0);
    return (unsigned)n / 4;
}

static void check_words(const uint32_t *want, unsigned n)
{
    uint32_t got[WORDS] = {0};

    assert_int_equal(file_words(got), n);
    for (unsigned i = 0; i < n; i++)
        if (got[i] != want[i])
            fail_msg("word %u: found %08x, expected %08x", i, got[i], want[i]);
}

/* The section of the program "a" with the comment "abcd". */
#define SECTION                                                                                    \
    0x0a0d0d0a, 48, 0x1a2b3c4d, 1, UINT32_MAX, UINT32_MAX, 0x00010004, 'a', 0x00040001,            \
        0x64636261, 0, 48

/* An interface without name and description. */
#define EMPTY_INTERFACE(bps) 1, 52, 1, 0, 2, 3, 0x00080008, (bps), 0, 0x00010009, 9, 0, 52

static struct pcapng *begin(void)
{
    struct pcapng *p;

    assert_int_equal(pcapng_create(&p, path, "a", "abcd"), 0);
    return p;
}

static void section_and_interfaces(void **state)
{
    static const uint32_t want[] = {
        SECTION,
        /* Ethernet, no limit; name, description, bits a second, nanoseconds */
        1, 64, 1, 0, 0x00010002, 'n', 0x00050003, 0x61656c22, 0x66, 0x00080008, 0xd4a51000, 0xe8,
        0x00010009, 9, 0, 64,
        /* an interface without a description */
        1, 56, 1, 0, 0x00030002, 0x333231, 0x00000003, 0x00080008, 7, 0, 0x00010009, 9, 0, 56};
    struct pcapng *p = begin();

    (void)state;
    pcapng_interface(p, "n", "\"leaf", 1000000000000u);
    pcapng_interface(p, "123", "", 7);
    assert_int_equal(pcapng_close(p), 0);
    check_words(want, RTE_DIM(want));
}

/* Times are cut to whole nanoseconds; a frame is padded to whole words, and cut at what is captured, in
 * whichever segment. */
static void frames(void **state)
{
    static const uint16_t segments[] = {3, 2, 4, 0};
    static const struct {
        int64_t ps;
        enum pcapng_direction direction;
        uint32_t captured, length, high, low, data[3], words;
    } row[] = {
        {0, PCAPNG_INBOUND, 0, 0, 0, 0, {0}, 0},
        {999, PCAPNG_OUTBOUND, 1, 1, 0, 0, {0x01}, 1},
        {1000, PCAPNG_INBOUND, 2, 9, 0, 1, {0x0201}, 1},
        {4294967295999, PCAPNG_OUTBOUND, 3, 9, 0, UINT32_MAX, {0x030201}, 1},
        {4294967296000, PCAPNG_OUTBOUND, 4, 4096, 1, 0, {0x04030201}, 1},
        {4294967297001, PCAPNG_INBOUND, 5, 5, 1, 1, {0x04030201, 0x05}, 2},
        {3 * 4294967296000, PCAPNG_INBOUND, 8, 9, 3, 0, {0x04030201, 0x08070605}, 2},
        {1, PCAPNG_OUTBOUND, 9, 9, 0, 0, {0x04030201, 0x08070605, 9}, 3},
    };
    struct rte_mbuf *m = frame_of(segments);

    (void)state;
    for (unsigned i = 0; i < RTE_DIM(row); i++) {
        uint32_t bytes = 44 + 4 * row[i].words;
        const uint32_t head[] = {
            SECTION,    EMPTY_INTERFACE(0), EMPTY_INTERFACE(1), 6, bytes, 1, row[i].high,
            row[i].low, row[i].captured,    row[i].length};
        const uint32_t tail[] = {0x00040002, row[i].direction, 0, bytes};
        uint32_t want[WORDS], n = RTE_DIM(head) + row[i].words;
        struct pcapng *p = begin();

        pcapng_interface(p, "", "", 0);
        pcapng_interface(p, "", "", 1);
        pcapng_frame(p, 1, row[i].ps, row[i].direction, m, row[i].captured, row[i].length);
        assert_int_equal(pcapng_close(p), 0);
        memcpy(want, head, sizeof(head));
        memcpy(want + RTE_DIM(head), row[i].data, sizeof(row[i].data));
        memcpy(want + n, tail, sizeof(tail));
        check_words(want, n + RTE_DIM(tail));
    }
    rte_pktmbuf_free(m);
}

static void errors(void **state)
{
    static const uint16_t segments[] = {4000, 0};
    struct rte_mbuf *m = frame_of(segments);
    struct pcapng *p = (struct pcapng *)(uintptr_t)1;

    (void)state;
    assert_int_equal(pcapng_close(NULL), 0);
    assert_int_equal(pcapng_create(&p, "/nowhere/at/all", "a", "b"), -ENOENT);
    assert_null(p);
    /* A full file is reported when it is closed, whether closing or a frame was the first to
     * fail. */
    assert_int_equal(pcapng_create(&p, "/dev/full", "a", "b"), 0);
    assert_int_equal(pcapng_close(p), -ENOSPC);
    assert_int_equal(pcapng_create(&p, "/dev/full", "a", "b"), 0);
    pcapng_interface(p, "", "", 0);
    for (unsigned i = 0; i < 600; i++)
        pcapng_frame(p, 0, 0, PCAPNG_INBOUND, m, 4000, 4000);
    assert_int_equal(pcapng_close(p), -ENOSPC);
    rte_pktmbuf_free(m);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(section_and_interfaces),
        cmocka_unit_test(frames),
        cmocka_unit_test(errors),
    };
    int fd = mkstemp(path), rc;

    test_eal_init();
    pool = test_pool(64);
    close(fd);
    rc = cmocka_run_group_tests(tests, NULL, NULL);
    unlink(path);
    return rc;
}
