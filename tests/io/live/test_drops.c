/* SPDX-License-Identifier: BSD-3-Clause */
/* What a look says of a direction's lost frames: every reason that nodes count has a name and its own number, the last too. */
#include "io/live/live.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h>
#include <string.h>

#define HERE 1u /* the direction */

static uint64_t count_of(const struct live_fabric *x, const char *name)
{
    uint64_t n, found = 0;
    const char *s;

    for (unsigned i = 0; (s = live_drop(x, HERE, i, &n)) != NULL; i++)
        found = strcmp(s, name) ? found : n;
    return found;
}

/* A frame that finds a queue full is counted by its input port and by the queue; a direction shows
 * the count of its own queue. */
static void each_reason_is_shown_under_its_name(void **state)
{
    struct live_dir dir[2] = {0};
    struct live_fabric x = {.now.dir = dir};
    uint64_t sum = 0, n;
    unsigned rows = 0;

    (void)state;
    dir[HERE].v[PORT_lost] = 1000;
    dir[HERE].v[PORT_down_drops] = 2000;
    dir[HERE].v[PORT_queue_full] = 3000;
    for (unsigned r = 0; r < DROP_REASONS; r++)
        dir[HERE].v[PORT_drops + r] = r + 1;
    assert_int_equal(count_of(&x, "lost"), 1000);
    assert_int_equal(count_of(&x, "link_down"), 2000);
    for (unsigned r = 0; r < DROP_REASONS; r++) {
        assert_int_equal(count_of(&x, drop_name(r)), r == DROP_QUEUE_FULL ? 3000 : r + 1);
        sum += r == DROP_QUEUE_FULL ? 3000 : r + 1;
    }
    while (live_drop(&x, HERE, rows, &n))
        rows++;
    assert_int_equal(rows, DROP_REASONS + 2);
    assert_int_equal(live_drops(&x, HERE), sum + 3000);
    assert_int_equal(live_drops(&x, !HERE), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(each_reason_is_shown_under_its_name),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
