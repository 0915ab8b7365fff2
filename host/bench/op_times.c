/* SPDX-License-Identifier: BSD-3-Clause */
#include "host/bench/op_times.h"

#include "base/assert.h"

#include <errno.h>
#include <jansson.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

static int time_compare(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;

    return (x > y) - (x < y);
}

static double deviation(const double *us, unsigned n, double mean)
{
    double sum = 0;

    for (unsigned i = 0; i < n; i++)
        sum += (us[i] - mean) * (us[i] - mean);
    return n > 1 ? sqrt(sum / (n - 1)) : 0;
}

int op_times_set(struct op_times *t, const int64_t *ends_ps, unsigned n)
{
    double *us = malloc((n + 1ul) * sizeof(*us)), *sorted = malloc((n + 1ul) * sizeof(*sorted));

    T_ASSERT(n, "times of no operation have no statistics");
    op_times_free(t);
    if (!us || !sorted) {
        free(us);
        free(sorted);
        return -ENOMEM;
    }
    for (unsigned i = 0; i < n; i++)
        us[i] = (double)(ends_ps[i] - (i ? ends_ps[i - 1] : 0)) * 1e-6;
    memcpy(sorted, us, n * sizeof(*us));
    qsort(sorted, n, sizeof(*sorted), time_compare);
    *t = (struct op_times){.n = n,
                           .us = us,
                           .min_us = sorted[0],
                           .median_us = (sorted[(n - 1) / 2] + sorted[n / 2]) / 2,
                           .p99_us = sorted[(99ull * n + 99) / 100 - 1],
                           .stddev_us = deviation(us, n, (double)ends_ps[n - 1] * 1e-6 / n)};
    free(sorted);
    if (n > OP_TIMES_KEPT) {
        free(t->us);
        t->us = NULL;
    }
    return 0;
}

void op_times_free(struct op_times *t)
{
    free(t->us);
    *t = (struct op_times){0};
}

static json_t *op_times_list(const struct op_times *t)
{
    json_t *a = t->us ? json_array() : json_null();

    for (unsigned i = 0; t->us && i < t->n; i++)
        json_array_append_new(a, json_real(t->us[i]));
    return a;
}

void op_times_json(const struct op_times *t, json_t *row)
{
    const struct {
        const char *key;
        double us;
    } all[] = {{"min_us", t->min_us},
               {"median_us", t->median_us},
               {"p99_us", t->p99_us},
               {"stddev_us", t->stddev_us}};

    json_object_set_new(row, "times_us", op_times_list(t));
    for (unsigned i = 0; i < sizeof(all) / sizeof(all[0]); i++)
        json_object_set_new(row, all[i].key, t->n ? json_real(all[i].us) : json_null());
}
