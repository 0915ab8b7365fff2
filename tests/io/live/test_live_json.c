/* SPDX-License-Identifier: BSD-3-Clause */
/* The JSON of trib status, whole. */
#include "base/version.h"
#include "tests/io/live/looked.h"

static const char head[] =
    "{\"schema\":1,\"version\":\"" TRIB_VERSION
    "\",\"fabrics\":[{\"name\":\"lab\",\"run\":\"/run/x\","
    "\"conf\":\"a \\\"b\\\"\\\\c.conf\",\"dilation\":20,\"time_us\":2000000.0,"
    "\"since_us\":1500000.0,\"processes\":[{\"name\":\"p0\",\"pid\":41,\"state\":\"ready\"},"
    "{\"name\":\"p1\",\"pid\":null,\"state\":\"ended\"},{\"name\":\"p2\",\"pid\":null,"
    "\"state\":\"ready\"}],\"fidelity\":{\"handoffs\":100,\"p50_lag_us\":0.04,"
    "\"p99_lag_us\":50.0,\"p99_lag_wall_us\":1000.0,\"late_share\":0.01},"
    "\"totals\":{\"frames\":3}";
static const char links[] =
    ",\"links\":[{\"link\":\"h0:0-s:0\",\"from\":\"h0:0\",\"to\":\"s:0\",\"state\":\"up\","
    "\"faults_set\":\"loss=0.1%\",\"capacity_GBps\":50.0,\"GBps\":10.0,\"utilisation\":0.2,"
    "\"paused\":true,\"busy_us\":200000.0,\"paused_us\":2500.0,\"frames\":1500000,"
    "\"bytes\":5900000000,\"link_bytes\":6000000000,\"lost_bytes\":77,\"queue_bytes\":12345,"
    "\"queue_lossless_bytes\":345,\"queue_peak_bytes\":9950,\"ecn_marks\":17,\"pauses_sent\":8,"
    "\"pauses_received\":1234567,\"watchdog_trips\":3,\"faults\":{\"duplicated\":4,"
    "\"reordered\":5,\"corrupted\":6},\"drops\":{\"no_route\":2,\"queue_full\":12}},"
    "{\"link\":\"h0:0-s:0\",\"from\":\"s:0\",\"to\":\"h0:0\",\"state\":\"up\","
    "\"faults_set\":\"loss=0.1%\",\"capacity_GBps\":50.0,\"GBps\":0.0,\"utilisation\":0.0,"
    "\"paused\":false,\"busy_us\":0.0,\"paused_us\":0.0,\"frames\":0,\"bytes\":0,"
    "\"link_bytes\":0,\"lost_bytes\":0,\"queue_bytes\":0,\"queue_lossless_bytes\":0,"
    "\"queue_peak_bytes\":0,\"ecn_marks\":0,\"pauses_sent\":0,\"pauses_received\":0,"
    "\"watchdog_trips\":0,\"faults\":{\"duplicated\":0,\"reordered\":0,\"corrupted\":0},"
    "\"drops\":{\"lost\":9}},{\"link\":\"h1:1-s:2\",\"from\":\"h1:1\",\"to\":\"s:2\","
    "\"state\":\"down\",\"faults_set\":\"\",\"capacity_GBps\":50.0,\"GBps\":0.0,"
    "\"utilisation\":0.0,\"paused\":false,\"busy_us\":0.0,\"paused_us\":0.0,\"frames\":0,"
    "\"bytes\":0,\"link_bytes\":0,\"lost_bytes\":0,\"queue_bytes\":0,"
    "\"queue_lossless_bytes\":0,\"queue_peak_bytes\":0,\"ecn_marks\":0,\"pauses_sent\":0,"
    "\"pauses_received\":0,\"watchdog_trips\":0,\"faults\":{\"duplicated\":0,\"reordered\":0,"
    "\"corrupted\":0},\"drops\":{}},{\"link\":\"g:0-s:3\",\"from\":\"s:3\",\"to\":\"g:0\","
    "\"state\":\"up\",\"faults_set\":\"\",\"capacity_GBps\":5.0,\"GBps\":5.0,"
    "\"utilisation\":1.0,\"paused\":false,\"busy_us\":1000000.0,\"paused_us\":0.0,\"frames\":0,"
    "\"bytes\":0,\"link_bytes\":2500000000,\"lost_bytes\":0,\"queue_bytes\":0,"
    "\"queue_lossless_bytes\":0,\"queue_peak_bytes\":0,\"ecn_marks\":0,\"pauses_sent\":0,"
    "\"pauses_received\":0,\"watchdog_trips\":0,\"faults\":{\"duplicated\":0,\"reordered\":0,"
    "\"corrupted\":0},\"drops\":{}}]";
static const char groups[] =
    ",\"groups\":[{\"kind\":\"reduce\",\"tree\":2,\"id\":7,\"job\":\"00000abc\","
    "\"owner\":\"h1\",\"open\":true,\"busy\":true,\"slots_reduced\":1000,\"age_us\":1500000.0,"
    "\"members\":[{\"member\":0,\"host\":\"h0\",\"state\":\"left\"},{\"member\":1,"
    "\"host\":\"h1\",\"state\":\"joined\"}],\"nodes\":{\"s\":{\"children\":2,\"joined\":2,"
    "\"slots\":64,\"slots_used\":5}}},{\"kind\":\"multimem\",\"tree\":null,\"id\":8,"
    "\"job\":\"123456789\",\"owner\":null,\"open\":false,\"busy\":false,\"slots_reduced\":0,"
    "\"age_us\":0.0,\"members\":[{\"member\":4,\"host\":null,\"state\":\"awaited\"}],"
    "\"nodes\":{\"s\":{\"children\":1,\"joined\":0,\"slots\":3,\"slots_used\":0}}}],"
    "\"slots\":[{\"host\":\"h1\",\"port\":1,\"slot\":3,\"pid\":77,\"program\":\"prog\","
    "\"frames_from\":10,\"frames_to\":20,\"bad_frames\":4,\"no_buffer\":5,\"overflow\":6,"
    "\"stalled\":7,\"connects\":2,\"refused\":1},{\"host\":\"h0\",\"port\":0,\"slot\":0,"
    "\"pid\":null,\"program\":null,\"frames_from\":0,\"frames_to\":0,\"bad_frames\":0,"
    "\"no_buffer\":0,\"overflow\":0,\"stalled\":0,\"connects\":0,\"refused\":9}],"
    "\"aggregation\":{\"s\":{\"groups\":2,\"slots\":1000},\"q\":null}";

static void the_parts_that_are_asked_for_are_there(void **state)
{
    struct live_fabric *x = looked_new();
    struct live l = {.n = 1, .fab = {x}};

    (void)state;
    for (unsigned d = 0; d < 2u * x->f->n_links; d++) /* four that differ */
        x->now.dir[d].known = d == 0 || d == 1 || d == 4 || d == 7;
    for (unsigned parts = 0; parts <= (LIVE_LINKS | LIVE_GROUPS); parts++) {
        json_t *j = live_json(&l, parts);
        char *text = json_dumps(j, JSON_COMPACT | JSON_REAL_PRECISION(12)), want[8192];

        snprintf(want, sizeof(want), "%s%s%s}]}", head, parts & LIVE_LINKS ? links : "",
                 parts & LIVE_GROUPS ? groups : "");
        assert_string_equal(text, want);
        free(text);
        json_decref(j);
    }
    looked_free(x);
}

static void a_dilation_that_is_not_known_counts_as_1(void **state)
{
    struct live_fabric *x = looked_new();
    struct live l = {.n = 1, .fab = {x}};
    json_t *j, *fidelity;

    (void)state;
    x->dilation = 0;
    j = live_json(&l, 0);
    fidelity = json_object_get(json_array_get(json_object_get(j, "fabrics"), 0), "fidelity");
    assert_true(json_real_value(json_object_get(fidelity, "p99_lag_us")) == 1000);
    json_decref(j);
    l.n = 0;
    j = live_json(&l, LIVE_LINKS);
    assert_int_equal(json_array_size(json_object_get(j, "fabrics")), 0);
    json_decref(j);
    looked_free(x);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_parts_that_are_asked_for_are_there),
        cmocka_unit_test(a_dilation_that_is_not_known_counts_as_1),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
