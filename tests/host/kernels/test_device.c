/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * GPU memory and the operations on it, compared with the scalar row and plain loops.
 * tests/e2e/cuda.sh runs it twice: with the tests' own driver in place of NVIDIA's, and with a GPU
 * where there is one. Run directly, it is skipped where there is no GPU.
 */
#include "aggregation/arith.h"
#include "host/kernels/device.h"
#include "tests/support/reduce_ref.h"

#include <dlfcn.h>
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

#include <cmocka.h>

static struct device *d;
static uint64_t seed;
static unsigned most = 300000;    /* elements; DEVICE_SMALL: few, for compute-sanitizer */
static uint64_t longest = 700001; /* of long vectors; DEVICE_LARGE: a GiB of floats */

static unsigned rnd(unsigned below)
{
    return (unsigned)(random_next(&seed) % below);
}

static void good(int rc)
{
    if (rc)
        fail_msg("%d: %s", rc, device_error(d));
}

static void drain(enum device_stream s)
{
    uint64_t done = 0;

    while (done < device_given(d, s))
        good(device_done(d, s, &done));
}

static void copies_arrive_in_order(void **state)
{
    size_t bytes = 1 << 20;
    uint8_t *gpu = device_alloc(d, bytes), *in = device_host(d, bytes),
            *out = device_host(d, bytes);

    (void)state;
    assert_true(gpu && in && out);
    for (size_t i = 0; i < bytes; i++)
        in[i] = (uint8_t)rnd(256);
    for (unsigned k = 0; k < 100; k++) {
        size_t off = rnd(1000), n = 1 + rnd((unsigned)(bytes - 1000));

        memset(out, 0, n);
        good(device_copy(d, DEVICE_DOWN, gpu + off, in + off, n));
        drain(DEVICE_DOWN);
        good(device_copy(d, DEVICE_UP, out, gpu + off, n));
        drain(DEVICE_UP);
        assert_memory_equal(out, in + off, n);
    }
    assert_true(device_staging_ns(d) > 0);
    memset(out, 0, bytes);
    good(device_read(d, out, gpu + 1000, 77777));
    assert_memory_equal(out, in + 1000, 77777);
    device_free(d, gpu);
    device_host_free(d, in, bytes);
    device_host_free(d, out, bytes);
}

struct copies {
    unsigned n;
    uint8_t *gpu;
    size_t bytes;
};

static int give_copies(void *ctx)
{
    struct copies *c = ctx;
    int rc = 0;

    for (unsigned k = 0; !rc && k < c->n; k++)
        rc = device_copy(d, DEVICE_REDUCE, c->gpu, c->gpu + c->bytes, c->bytes);
    return rc;
}

static int64_t now_ns(void)
{
    struct timespec t;

    clock_gettime(CLOCK_MONOTONIC, &t);
    return t.tv_sec * 1000000000LL + t.tv_nsec;
}

/* device_time() of a batch: all operations have completed when it returns, and the time is at most
 * the call's. */
static void operations_are_timed_by_the_gpu(void **state)
{
    struct copies c = {40, NULL, 8 << 20};
    double s = 0;
    int64_t t0;

    (void)state;
    c.gpu = device_alloc(d, 2 * c.bytes);
    assert_non_null(c.gpu);
    good(device_fill(d, c.gpu, (const uint8_t[4]){1, 2, 3, 4}, 4, 0, 2 * c.bytes, 1, false));
    for (unsigned k = 0; k < 5; k++) {
        uint64_t done = 0;

        t0 = now_ns();
        good(device_time(d, give_copies, &c, &s));
        assert_true(s > 0 && s * 1e9 <= (double)(now_ns() - t0));
        good(device_done(d, DEVICE_REDUCE, &done));
        assert_int_equal(done, device_given(d, DEVICE_REDUCE));
    }
    /* At least a quarter of the call's time, which is spent on copies of 320 MiB. */
    t0 = now_ns();
    good(device_time(d, give_copies, &c, &s));
    assert_true(s * 4e9 > (double)(now_ns() - t0));
    device_free(d, c.gpu);
}

/* Inputs alternate between GPU and host memory, as slots of connections do. */
static void reductions_give_the_scalar_rows_bits(void **state)
{
    size_t room = 8ul * most + 64;
    uint8_t *host[4], *gpu[4], *want = malloc(room), *got = device_host(d, room);

    (void)state;
    for (unsigned i = 0; i < 4; i++) {
        host[i] = device_host(d, room);
        gpu[i] = device_alloc(d, room);
        assert_true(host[i] && gpu[i]);
    }
    for (int op = 0; op < OP_COUNT; op++)
        for (int t = 0; t < DT_COUNT; t++) {
            unsigned esize = dtype_size(t), n = 1 + rnd(3), divide = op == OP_AVG ? rnd(9) : 0;
            size_t count = rnd(4) ? 1 + rnd(3000) : 1 + rnd(most), off = rnd(3) * esize;
            const void *in[3], *seen[3];

            if (!arith_valid(op, t))
                continue;
            for (unsigned k = 0; k < n; k++) {
                ref_fill(t, host[k] + off, count, &seed);
                in[k] = host[k] + off;
                seen[k] = k % 2 ? in[k] : gpu[k] + off;
                good(device_copy(d, DEVICE_DOWN, gpu[k] + off, host[k] + off, count * esize));
            }
            drain(DEVICE_DOWN);
            arith_scalar(op, t)(want, in, n, count);
            if (divide)
                arith_divide(want, t, divide, count);
            good(device_reduce(d, DEVICE_REDUCE, op, t, divide, gpu[3] + off, got + off, seen, n,
                               count));
            drain(DEVICE_REDUCE);
            if (memcmp(got + off, want, count * esize))
                fail_msg("%s of %s: the copy is not the scalar row's", redop_name(op),
                         dtype_name(t));
            good(device_read(d, got, gpu[3] + off, count * esize));
            if (memcmp(got, want, count * esize))
                fail_msg("%s of %s: not the scalar row's", redop_name(op), dtype_name(t));
        }
    for (unsigned i = 0; i < 4; i++) {
        device_host_free(d, host[i], room);
        device_free(d, gpu[i]);
    }
    device_host_free(d, got, room);
    free(want);
}

static void patterns_are_verified_there(void **state)
{
    uint8_t *gpu = device_alloc(d, 8ul * most + 64), period[3000 * 8], *one = device_host(d, 4096);

    (void)state;
    for (unsigned i = 0; i < sizeof(period); i++)
        period[i] = (uint8_t)rnd(256);
    for (unsigned k = 0; k < 60; k++) {
        unsigned esize = 1u << rnd(4), off = rnd(3) * esize, periods = 1 + rnd(3000);
        uint64_t first = rnd(100000), n = 1 + rnd(most), bad = rnd((unsigned)n);
        struct device_wrong w = {1, 1};

        good(device_fill(d, gpu + off, period, periods, first, n, esize, false));
        good(device_verify(d, gpu + off, period, periods, first, n, esize, &w));
        assert_int_equal(w.n, 0);
        good(device_read(d, one, gpu + off + bad * esize, esize));
        one[rnd(esize)] ^= 1;
        good(device_copy(d, DEVICE_DOWN, gpu + off + bad * esize, one, esize));
        drain(DEVICE_DOWN);
        good(device_verify(d, gpu + off, period, periods, first, n, esize, &w));
        assert_int_equal(w.n, 1);
        assert_int_equal(w.first, bad);
        good(device_fill(d, gpu + off, period, periods, first, n, esize, true));
        good(device_verify(d, gpu + off, period, periods, first, n, esize, &w));
        assert_int_equal(w.n, n);
        assert_int_equal(w.first, 0);
    }
    device_free(d, gpu);
    device_host_free(d, one, 4096);
}

/* Buffers are filled, reduced and verified on the GPU, misaligned by one element; the sums have the
 * pattern's period. */
static void long_vectors_are_right_to_the_last_element(void **state)
{
    static const struct {
        enum dtype t;
        unsigned n;
    } rows[] = {{DT_FP32, 2}, {DT_BF16, 2}, {DT_FP16, 8}, {DT_INT8, 3}, {DT_FP64, 2}};
    enum { PERIOD = 1009 };
    uint8_t period[8][PERIOD * 8], sums[PERIOD * 8], *gpu[8] = {0}, *out;
    size_t bytes = longest * 4 + 64;

    (void)state;
    out = device_alloc(d, bytes);
    for (unsigned k = 0; k < 8; k++) {
        gpu[k] = k < 3 || longest < 1000000 ? device_alloc(d, bytes) : gpu[k % 3];
        assert_non_null(gpu[k]);
    }
    for (unsigned i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        unsigned esize = dtype_size(rows[i].t),
                 n = longest < 1000000 || rows[i].n < 4 ? rows[i].n : 3;
        uint64_t count = longest * 4 / esize - 3;
        struct device_wrong w = {1, 1};
        const void *in[8], *one[8];

        for (unsigned k = 0; k < n; k++) {
            ref_fill(rows[i].t, period[k], PERIOD, &seed);
            one[k] = period[k];
            in[k] = gpu[k] + esize;
            good(device_fill(d, gpu[k] + esize, period[k], PERIOD, 0, count, esize, false));
        }
        arith_scalar(OP_SUM, rows[i].t)(sums, one, n, PERIOD);
        good(device_fill(d, out, sums, PERIOD, 0, count + 2, esize, true));
        good(
            device_reduce(d, DEVICE_REDUCE, OP_SUM, rows[i].t, 0, out + esize, NULL, in, n, count));
        drain(DEVICE_REDUCE);
        good(device_verify(d, out + esize, sums, PERIOD, 0, count, esize, &w));
        assert_int_equal(w.n, 0);
        /* bytes before and after are unchanged */
        good(device_verify(d, out, sums, PERIOD, 0, 1, esize, &w));
        assert_int_equal(w.n, 1);
        good(device_verify(d, out + (count + 1) * esize, sums, PERIOD, count + 1, 1, esize, &w));
        assert_int_equal(w.n, 1);
    }
    for (unsigned k = 0; k < 8; k++)
        if (k < 3 || longest < 1000000)
            device_free(d, gpu[k]);
    device_free(d, out);
}

/* The driver exports nothing else as a dma-buf, or nothing at all. */
static void memory_begins_with_a_page(void **state)
{
    size_t page = (size_t)sysconf(_SC_PAGESIZE);
    uint8_t *gpu[40];
    struct device_wrong w = {1, 1};

    (void)state;
    for (unsigned k = 0; k < 40; k++) {
        size_t bytes = 1 + rnd(k < 30 ? 9000 : 3000000);
        int fd;

        gpu[k] = device_alloc(d, bytes);
        assert_non_null(gpu[k]);
        assert_int_equal((uintptr_t)gpu[k] % page, 0);
        fd = device_dmabuf(d, gpu[k], bytes);
        assert_true(fd >= 0 || fd == -EOPNOTSUPP);
        if (fd >= 0)
            close(fd);
        good(device_fill(d, gpu[k], &k, 1, 0, bytes, 1, false));
        good(device_verify(d, gpu[k], &k, 1, 0, bytes, 1, &w));
        assert_int_equal(w.n, 0);
    }
    for (unsigned k = 0; k < 40; k++)
        device_free(d, gpu[k]);
}

/* Each in the module that has it: compute-sanitizer takes a miss for an error. */
static void kernels_are_looked_up_where_they_are(void **state)
{
    void *driver = dlopen("libcuda.so.1", RTLD_NOW);
    unsigned (*misses)(void);

    (void)state;
    *(void **)(void *)&misses = dlsym(driver, "fakeMisses");
    if (!misses)
        skip();
    assert_int_equal(misses(), 0);
    dlclose(driver);
}

/* Must be the last test: a failure is final, and host memory can still be freed. */
static void too_much_memory_is_an_error_with_a_name(void **state)
{
    uint8_t *host = device_host(d, 1 << 20);
    unsigned char pages[256];

    (void)state;
    assert_non_null(host);
    assert_null(device_alloc(d, 1ul << 50));
    assert_non_null(strstr(device_error(d), "CUDA_ERROR_OUT_OF_MEMORY"));
    assert_null(device_alloc(d, 16));
    assert_int_not_equal(device_wait(d), 0);
    assert_null(device_host(d, 4096));
    assert_int_equal(mincore(host, 1 << 20, pages), 0);
    device_host_free(d, host, 1 << 20);
    assert_int_not_equal(mincore(host, 1 << 20, pages), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(copies_arrive_in_order),
        cmocka_unit_test(operations_are_timed_by_the_gpu),
        cmocka_unit_test(reductions_give_the_scalar_rows_bits),
        cmocka_unit_test(patterns_are_verified_there),
        cmocka_unit_test(long_vectors_are_right_to_the_last_element),
        cmocka_unit_test(memory_begins_with_a_page),
        cmocka_unit_test(kernels_are_looked_up_where_they_are),
        cmocka_unit_test(too_much_memory_is_an_error_with_a_name),
    };
    const struct CMUnitTest small[] = {
        cmocka_unit_test(copies_arrive_in_order),
        cmocka_unit_test(operations_are_timed_by_the_gpu),
        cmocka_unit_test(reductions_give_the_scalar_rows_bits),
        cmocka_unit_test(patterns_are_verified_there),
        cmocka_unit_test(memory_begins_with_a_page),
    };
    char err[DEVICE_TEXT];
    int failed;

    seed = (uint64_t)time(NULL);
    most = getenv("DEVICE_SMALL") ? 3000 : most;
    longest = getenv("DEVICE_LARGE") ? 1u << 28 : longest;
    printf("seed %llu\n", (unsigned long long)seed);
    if (device_open(&d, 0, err)) {
        printf("%s\n", err);
        return 77;
    }
    printf("%s\n", device_name(d));
    failed = getenv("DEVICE_SMALL") ? cmocka_run_group_tests(small, NULL, NULL)
                                    : cmocka_run_group_tests(tests, NULL, NULL);
    device_close(d);
    return failed;
}
