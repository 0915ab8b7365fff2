/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * All-reduces through multicast memory, compared with plain sums that are exact in any order.
 * tests/e2e/nvls_hw.sh runs it twice: with the tests' own driver in place of NVIDIA's, configured
 * for the GPUs and failures of each test, and with this machine's GPUs if they support it. Run
 * directly, it is skipped if they do not.
 */
#include "host/kernels/multicast.h"

#include "host/bench/verify/test_pattern.h"
#include "host/kernels/kernels.h"
#include "tests/support/reduce_ref.h"

#include <dlfcn.h>
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include <cmocka.h>

#define BYTES ((size_t)3 << 20)

static uint64_t seed;
static unsigned (*left)(void); /* the fake driver's count of objects left; NULL: no fake */
static unsigned gpus;

static unsigned rnd(unsigned below)
{
    return (unsigned)(random_next(&seed) % below);
}

/* Configuration of the fake driver; "": real GPUs. */
static void machine(const char *fmt, ...) __attribute__((format(printf, 1, 2)));
static void machine(const char *fmt, ...)
{
    char text[128];
    va_list ap;

    va_start(ap, fmt);
    vsnprintf(text, sizeof(text), fmt, ap);
    va_end(ap);
    setenv("TRIB_FAKE_CUDA", text, 1);
}

static struct multicast *open_group(unsigned n)
{
    struct multicast *m = NULL;
    char err[DEVICE_TEXT];

    if (multicast_open(&m, n, BYTES, err))
        fail_msg("%u GPUs: %s", n, err);
    return m;
}

static void close_group(struct multicast *m)
{
    multicast_close(m);
    if (left)
        assert_int_equal(left(), 0);
}

static void good(struct multicast *m, int rc)
{
    if (rc)
        fail_msg("%d: %s", rc, multicast_error(m));
}

/* ---- sums ---- */

/* dst and src may be equal; bytes before the result and from 16 bytes behind it stay unchanged. */
static void reduce_once(struct multicast *m, unsigned n, struct test_pattern *v, enum redop op,
                        enum dtype t, size_t count, bool in_place)
{
    size_t esize = dtype_size(t), bytes = (count * esize + 15) / 16 * 16;
    size_t src = 16 * (1 + rnd(100)), dst = in_place ? src : src + bytes + 16 * (1 + rnd(100));
    struct layout l = {.kind = COLL_ALLREDUCE, .nranks = n, .count = count, .in_place = in_place};
    double s = 0;

    v->op = OP_COUNT; /* any operation */
    for (unsigned i = 0; i < n; i++) {
        uint8_t *at = multicast_memory(m, i);

        l.rank = i;
        v->device = multicast_device(m, i);
        pattern_set(v, &l, t, op);
        pattern_prepare(v, &l, at + src, at + dst);
        pattern_poison(v, at + dst - 16, LAYOUT_NOTHING, 0, 16 / esize);
        pattern_poison(v, at + dst + bytes, LAYOUT_NOTHING, 0, 16 / esize);
    }
    good(m, multicast_time(m, op, t, dst, src, count, 1, &s));
    assert_true(s > 0);
    for (unsigned i = 0; i < n; i++) {
        uint8_t *at = multicast_memory(m, i);
        uint64_t wrong, around;

        l.rank = i;
        v->device = multicast_device(m, i);
        wrong = pattern_check(v, &l, at + src, at + dst);
        around = pattern_wrong(v, at + dst - 16, LAYOUT_NOTHING, 0, 16 / esize) +
                 pattern_wrong(v, at + dst + bytes, LAYOUT_NOTHING, 0, 16 / esize);
        if (wrong || around)
            fail_msg("%s of %zu %s, GPU %u of %u%s: %llu elements wrong, %llu around them",
                     redop_name(op), count, dtype_name(t), i, n, in_place ? ", in place" : "",
                     (unsigned long long)wrong, (unsigned long long)around);
    }
    good(m, multicast_error(m) ? -EIO : 0);
}

static void every_member_gets_the_reduction(void **state)
{
    static const unsigned groups[] = {2, 4, 8, 3};
    struct test_pattern v;

    (void)state;
    assert_int_equal(pattern_init(&v), 0);
    for (unsigned k = 0; k < 4; k++) {
        unsigned n = groups[k], kernels = 0;
        struct multicast *m;

        machine("devices=8,cc=90,multicast=1,delay=20");
        if (n > gpus)
            continue;
        m = open_group(n);
        for (int op = 0; op < OP_COUNT; op++)
            for (int t = 0; t < DT_COUNT; t++) {
                size_t small = 1 + rnd(40), large = 1 + rnd(50000);

                if (!kernel_multimem(op, t))
                    continue;
                kernels++;
                reduce_once(m, n, &v, op, t, small, kernels % 2);
                reduce_once(m, n, &v, op, t, large, kernels % 2 == 0);
            }
        assert_int_equal(kernels, 20);
        close_group(m);
    }
    pattern_free(&v);
}

/* ---- barriers ---- */

/* Nobody waits before the end: sums contain late inputs, and a result is used only once it is
 * there. Each operation's result is the next one's input. */
static void no_member_begins_early_or_continues_too_soon(void **state)
{
    enum { COUNT = 3001, ROUNDS = 4, CHAIN = 3 };
    unsigned n = gpus < 4 ? gpus : 4;
    struct multicast *m;
    uint64_t *in[4], *out[4];

    (void)state;
    machine("devices=4,cc=90,multicast=1,delay=3000");
    m = open_group(n);
    for (unsigned i = 0; i < n; i++) {
        in[i] = device_host(multicast_device(m, i), ROUNDS * COUNT * 8);
        out[i] = device_host(multicast_device(m, i), ROUNDS * COUNT * 8);
        assert_true(in[i] && out[i]);
        for (unsigned e = 0; e < ROUNDS * COUNT; e++)
            in[i][e] = random_next(&seed);
    }
    for (unsigned r = 0; r < ROUNDS; r++) {
        for (unsigned i = 0; i < n; i++)
            good(m, device_copy(multicast_device(m, i), DEVICE_REDUCE, multicast_memory(m, i),
                                in[i] + (size_t)r * COUNT, COUNT * 8));
        for (unsigned k = 0; k < CHAIN; k++)
            good(m, multicast_all_reduce(m, OP_SUM, DT_UINT64, 0, 0, COUNT));
        for (unsigned i = 0; i < n; i++)
            good(m, device_copy(multicast_device(m, i), DEVICE_REDUCE, out[i] + (size_t)r * COUNT,
                                multicast_memory(m, i), COUNT * 8));
    }
    for (unsigned i = 0; i < n; i++)
        good(m, device_wait(multicast_device(m, i)));
    for (unsigned e = 0; e < ROUNDS * COUNT; e++) {
        uint64_t want = 0;

        for (unsigned i = 0; i < n; i++)
            want += in[i][e];
        for (unsigned k = 1; k < CHAIN; k++)
            want *= n;
        for (unsigned i = 0; i < n; i++)
            if (out[i][e] != want)
                fail_msg("round %u, element %u of GPU %u", e / COUNT, e % COUNT, i);
    }
    for (unsigned i = 0; i < n; i++) {
        device_host_free(multicast_device(m, i), in[i], ROUNDS * COUNT * 8);
        device_host_free(multicast_device(m, i), out[i], ROUNDS * COUNT * 8);
    }
    close_group(m);
}

/* ---- what cannot be ---- */

static void what_is_not_there_is_refused(void **state)
{
    struct multicast *m;
    double s;

    (void)state;
    machine("devices=2,cc=90,multicast=1");
    m = open_group(2);
    assert_int_equal(multicast_all_reduce(m, OP_PROD, DT_FP32, 0, 0, 1), -ENOTSUP);
    assert_int_equal(multicast_all_reduce(m, OP_SUM, DT_INT8, 0, 0, 1), -ENOTSUP);
    assert_int_equal(multicast_all_reduce(m, OP_SUM, DT_FP32, 4, 0, 1), -EINVAL);
    assert_int_equal(multicast_all_reduce(m, OP_SUM, DT_FP32, 0, 8, 1), -EINVAL);
    assert_int_equal(multicast_all_reduce(m, OP_SUM, DT_FP32, 0, 0, (size_t)1 << 40), -EINVAL);
    assert_int_equal(multicast_all_reduce(m, OP_SUM, DT_FP32, (size_t)1 << 40, 0, 1), -EINVAL);
    assert_int_equal(multicast_time(m, OP_SUM, DT_FP32, 0, 8, 1, 2, &s), -EINVAL);
    good(m, multicast_all_reduce(m, OP_SUM, DT_FP32, 0, 0, 0));
    good(m, multicast_all_reduce(m, OP_SUM, DT_FP32, 0, 0, 1));
    close_group(m);
}

static void every_reason_has_its_words(void **state)
{
    static const struct {
        const char *machine, *says;
    } rows[] = {
        {"devices=0", "found 0 GPUs, expected 4: one for each rank"},
        {"devices=3,cc=90,multicast=1", "found 3 GPUs, expected 4: one for each rank"},
        {"devices=4,cc=80,multicast=1", "found compute capability 8.0 (GPU 0"},
        {"devices=4,cc=90", "found no multicast objects (GPU 0"},
        {"devices=4,cc=90,multicast=1,ready=0",
         "GPU 0: binding memory to the multicast: CUDA_ERROR_SYSTEM_NOT_READY"},
        {"devices=4,cc=90,multicast=1,memory=9000000",
         "GPU 1: 4194304 bytes of its memory: CUDA_ERROR_OUT_OF_MEMORY"},
    };

    (void)state;
    if (!left)
        skip();
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        struct multicast *m = NULL;
        char err[DEVICE_TEXT] = "";

        machine("%s", rows[i].machine);
        assert_true(multicast_open(&m, 4, BYTES, err) < 0);
        if (!strstr(err, rows[i].says))
            fail_msg("%s said \"%s\", expected \"%s\"", rows[i].machine, err, rows[i].says);
        assert_null(m);
        assert_int_equal(left(), 0);
    }
}

/* The driver loses its GPUs at each operation in turn: the failure is reported, and all objects are
 * freed. */
static void lost_gpus_are_named_and_all_goes_back(void **state)
{
    unsigned failed = 0;

    (void)state;
    if (!left)
        skip();
    for (unsigned k = 1; k < 60; k++) {
        struct multicast *m = NULL;
        char err[DEVICE_TEXT] = "";
        const char *why = err;
        double s;
        int rc;

        machine("devices=4,cc=90,multicast=1,delay=50,lost=%u", k);
        rc = multicast_open(&m, 4, BYTES, err);
        if (!rc) {
            rc = multicast_time(m, OP_SUM, DT_FP32, 0, 0, 5000, 12, &s);
            why = rc ? multicast_error(m) : "";
        }
        failed += rc != 0;
        if (rc && (!why || !strstr(why, "GPU ") || !strstr(why, "CUDA_ERROR_DEVICE_UNAVAILABLE")))
            fail_msg("lost at %u: \"%s\"", k, why ? why : "");
        close_group(m);
    }
    assert_int_equal(failed, 4 * 12);
}

/* The test detects a switch that forgets a member. */
static void what_does_not_arrive_is_found(void **state)
{
    struct layout l = {.kind = COLL_ALLREDUCE, .nranks = 4, .count = 999};
    struct multicast *m;
    struct test_pattern v;
    double s;

    (void)state;
    if (!left)
        skip();
    machine("devices=4,cc=90,multicast=1,drop=3");
    m = open_group(4);
    assert_int_equal(pattern_init(&v), 0);
    for (unsigned i = 0; i < 4; i++) {
        l.rank = i;
        v.device = multicast_device(m, i);
        pattern_set(&v, &l, DT_FP32, OP_SUM);
        pattern_prepare(&v, &l, multicast_memory(m, i), multicast_memory(m, i) + 4096);
    }
    good(m, multicast_time(m, OP_SUM, DT_FP32, 4096, 0, 999, 1, &s));
    for (unsigned i = 0; i < 4; i++) {
        uint8_t *at = multicast_memory(m, i);

        l.rank = i;
        v.device = multicast_device(m, i);
        assert_int_equal(pattern_check(&v, &l, at, at + 4096), i == 2 ? 999 : 0);
    }
    pattern_free(&v);
    close_group(m);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_member_gets_the_reduction),
        cmocka_unit_test(no_member_begins_early_or_continues_too_soon),
        cmocka_unit_test(what_is_not_there_is_refused),
        cmocka_unit_test(every_reason_has_its_words),
        cmocka_unit_test(lost_gpus_are_named_and_all_goes_back),
        cmocka_unit_test(what_does_not_arrive_is_found),
    };
    void *driver = dlopen("libcuda.so.1", RTLD_NOW);
    char err[DEVICE_TEXT];

    seed = (uint64_t)time(NULL);
    printf("seed %llu\n", (unsigned long long)seed);
    if (driver)
        *(void **)(void *)&left = dlsym(driver, "fakeLeft");
    machine("devices=8,cc=90,multicast=1");
    if (multicast_can(2, err)) {
        printf("%s\n", err);
        return 77;
    }
    for (gpus = 2; gpus < 8 && !multicast_can(gpus + 1, err);)
        gpus++;
    return cmocka_run_group_tests(tests, NULL, NULL);
}
