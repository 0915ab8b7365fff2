/* SPDX-License-Identifier: BSD-3-Clause */
#include "tests/protocols/star_sum.h"

#include "base/random.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

uint64_t star_random = 1;

void *star_random_ints(unsigned ranks, uint64_t count)
{
    uint32_t *x = malloc(ranks * count * 4);

    for (uint64_t i = 0; i < ranks * count; i++)
        x[i] = (uint32_t)random_next(&star_random);
    return x;
}

void *star_random_floats(unsigned ranks, uint64_t count)
{
    float *x = malloc(ranks * count * 4);

    for (uint64_t i = 0; i < ranks * count; i++)
        x[i] = (float)ldexp((double)(int64_t)random_next(&star_random), -63 - (int)(i / 100 % 40));
    return x;
}

void star_check_ints(const uint32_t *send, const uint32_t *recv, unsigned ranks, uint64_t count)
{
    for (uint64_t i = 0; i < count; i++) {
        uint32_t sum = 0;

        for (unsigned r = 0; r < ranks; r++)
            sum += send[r * count + i];
        for (unsigned r = 0; r < ranks; r++)
            assert_int_equal(recv[r * count + i], sum);
    }
}

void star_check_floats(const struct star_conf *c, const float *send, const float *recv,
                       unsigned ranks, uint64_t count, double max_abs)
{
    int64_t key[TRIB_KEYS] = {0};
    double bound;

    for (unsigned i = 0; c->protocol->keys[i].name; i++)
        key[i] = c->protocol->keys[i].usual;
    bound = c->protocol->bound(key, TRIB_FLOAT32, TRIB_SUM, ranks, max_abs);

    for (uint64_t i = 0; i < count; i++) {
        double sum = 0;

        for (unsigned r = 0; r < ranks; r++)
            sum += (double)send[r * count + i];
        for (unsigned r = 0; r < ranks; r++) {
            assert_true(fabs((double)recv[r * count + i] - sum) <= bound);
            assert_memory_equal(&recv[r * count + i], &recv[i], 4);
        }
    }
}

void star_sum(struct star *s, const struct star_conf *c, int job, unsigned ranks, uint64_t count,
              enum trib_type type, bool in_place)
{
    uint64_t bytes = ranks * count * 4;
    char *send =
        type == TRIB_FLOAT32 ? star_random_floats(ranks, count) : star_random_ints(ranks, count);
    char *recv = calloc(1, bytes), *was = malloc(bytes);
    const char *why;

    memcpy(was, send, bytes);
    why = star_reduce(s, job, send, in_place ? send : recv, count, type, TRIB_SUM, 5000000);
    if (why)
        fail_msg("%s", why);
    if (type == TRIB_FLOAT32)
        star_check_floats(c, (void *)was, (void *)(in_place ? send : recv), ranks, count, 1);
    else
        star_check_ints((void *)was, (void *)(in_place ? send : recv), ranks, count);
    free(send);
    free(recv);
    free(was);
}
