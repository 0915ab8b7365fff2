/* SPDX-License-Identifier: BSD-3-Clause */
/* Metrics in both formats, whole. */
#include "io/live/metrics.h"

#include "base/version.h"
#include "tests/io/live/looked.h"
#include "tests/support/captured.h"

static const char openmetrics[] =
    "# HELP tributary_fabric A fabric that is up.\n"
    "# TYPE tributary_fabric info\n"
    "tributary_fabric_info{fabric=\"lab\",conf=\"a \\\"b\\\"\\\\c.conf\",version=\"" TRIB_VERSION
    "\"} 1\n"
    "# HELP tributary_fabric_time_seconds Fabric time since it was started.\n"
    "# TYPE tributary_fabric_time_seconds counter\n"
    "# UNIT tributary_fabric_time_seconds seconds\n"
    "tributary_fabric_time_seconds_total{fabric=\"lab\"} 2\n"
    "# HELP tributary_fabric_dilation Wall time over fabric time.\n"
    "# TYPE tributary_fabric_dilation gauge\n"
    "tributary_fabric_dilation{fabric=\"lab\"} 20\n"
    "# HELP tributary_process_up Whether a switch process answers.\n"
    "# TYPE tributary_process_up gauge\n"
    "tributary_process_up{fabric=\"lab\",process=\"p0\"} 1\n"
    "tributary_process_up{fabric=\"lab\",process=\"p1\"} 0\n"
    "tributary_process_up{fabric=\"lab\",process=\"p2\"} 1\n"
    "# HELP tributary_host_processes Processes that are connected as a host.\n"
    "# TYPE tributary_host_processes gauge\n"
    "tributary_host_processes{fabric=\"lab\",host=\"h0\"} 0\n"
    "tributary_host_processes{fabric=\"lab\",host=\"h1\"} 1\n"
    "tributary_host_processes{fabric=\"lab\",host=\"g\"} 0\n"
    "# HELP tributary_handoff_lag_seconds How late hand-offs between processes were, in wall "
    "time.\n"
    "# TYPE tributary_handoff_lag_seconds histogram\n"
    "# UNIT tributary_handoff_lag_seconds seconds\n"
    "tributary_handoff_lag_seconds_bucket{fabric=\"lab\",le=\"1e-06\"} 107\n"
    "tributary_handoff_lag_seconds_bucket{fabric=\"lab\",le=\"1e-05\"} 107\n"
    "tributary_handoff_lag_seconds_bucket{fabric=\"lab\",le=\"0.0001\"} 109\n"
    "tributary_handoff_lag_seconds_bucket{fabric=\"lab\",le=\"0.001\"} 110\n"
    "tributary_handoff_lag_seconds_bucket{fabric=\"lab\",le=\"0.01\"} 110\n"
    "tributary_handoff_lag_seconds_bucket{fabric=\"lab\",le=\"0.1\"} 110\n"
    "tributary_handoff_lag_seconds_bucket{fabric=\"lab\",le=\"1\"} 110\n"
    "tributary_handoff_lag_seconds_bucket{fabric=\"lab\",le=\"+Inf\"} 110\n"
    "# HELP tributary_link_up Whether a link is up.\n"
    "# TYPE tributary_link_up gauge\n"
    "tributary_link_up{fabric=\"lab\",link=\"h0:0-s:0\",from=\"h0:0\",to=\"s:0\"} 1\n"
    "tributary_link_up{fabric=\"lab\",link=\"h0:0-s:0\",from=\"s:0\",to=\"h0:0\"} 1\n"
    "tributary_link_up{fabric=\"lab\",link=\"h1:1-s:2\",from=\"h1:1\",to=\"s:2\"} 0\n"
    "tributary_link_up{fabric=\"lab\",link=\"g:0-s:3\",from=\"s:3\",to=\"g:0\"} 1\n"
    "# HELP tributary_link_capacity_bytes_per_second Rate of a link in fabric time.\n"
    "# TYPE tributary_link_capacity_bytes_per_second gauge\n"
    "tributary_link_capacity_bytes_per_second{fabric=\"lab\",link=\"h0:0-s:0\",from=\"h0:0\",to="
    "\"s:0\"} 50000000000\n"
    "tributary_link_capacity_bytes_per_second{fabric=\"lab\",link=\"h0:0-s:0\",from=\"s:0\",to="
    "\"h0:0\"} 50000000000\n"
    "tributary_link_capacity_bytes_per_second{fabric=\"lab\",link=\"h1:1-s:2\",from=\"h1:1\",to="
    "\"s:2\"} 50000000000\n"
    "tributary_link_capacity_bytes_per_second{fabric=\"lab\",link=\"g:0-s:3\",from=\"s:3\",to=\"g:"
    "0\"} 5000000000\n"
    "# HELP tributary_link_bytes Sent, with preamble, FCS and gap.\n"
    "# TYPE tributary_link_bytes counter\n"
    "# UNIT tributary_link_bytes bytes\n"
    "tributary_link_bytes_total{fabric=\"lab\",link=\"h0:0-s:0\",from=\"h0:0\",to=\"s:0\"} "
    "6000000000\n"
    "tributary_link_bytes_total{fabric=\"lab\",link=\"h0:0-s:0\",from=\"s:0\",to=\"h0:0\"} 0\n"
    "tributary_link_bytes_total{fabric=\"lab\",link=\"h1:1-s:2\",from=\"h1:1\",to=\"s:2\"} 0\n"
    "tributary_link_bytes_total{fabric=\"lab\",link=\"g:0-s:3\",from=\"s:3\",to=\"g:0\"} "
    "2500000000\n"
    "# HELP tributary_link_frames Frames sent.\n"
    "# TYPE tributary_link_frames counter\n"
    "tributary_link_frames_total{fabric=\"lab\",link=\"h0:0-s:0\",from=\"h0:0\",to=\"s:0\"} "
    "1500000\n"
    "tributary_link_frames_total{fabric=\"lab\",link=\"h0:0-s:0\",from=\"s:0\",to=\"h0:0\"} 0\n"
    "tributary_link_frames_total{fabric=\"lab\",link=\"h1:1-s:2\",from=\"h1:1\",to=\"s:2\"} 0\n"
    "tributary_link_frames_total{fabric=\"lab\",link=\"g:0-s:3\",from=\"s:3\",to=\"g:0\"} 0\n"
    "# HELP tributary_link_busy_seconds Fabric time in which it sent.\n"
    "# TYPE tributary_link_busy_seconds counter\n"
    "# UNIT tributary_link_busy_seconds seconds\n"
    "tributary_link_busy_seconds_total{fabric=\"lab\",link=\"h0:0-s:0\",from=\"h0:0\",to=\"s:0\"} "
    "0.2\n"
    "tributary_link_busy_seconds_total{fabric=\"lab\",link=\"h0:0-s:0\",from=\"s:0\",to=\"h0:0\"} "
    "0\n"
    "tributary_link_busy_seconds_total{fabric=\"lab\",link=\"h1:1-s:2\",from=\"h1:1\",to=\"s:2\"} "
    "0\n"
    "tributary_link_busy_seconds_total{fabric=\"lab\",link=\"g:0-s:3\",from=\"s:3\",to=\"g:0\"} 1\n"
    "# HELP tributary_link_paused Whether PFC pauses the sender now.\n"
    "# TYPE tributary_link_paused gauge\n"
    "tributary_link_paused{fabric=\"lab\",link=\"h0:0-s:0\",from=\"h0:0\",to=\"s:0\"} 1\n"
    "tributary_link_paused{fabric=\"lab\",link=\"h0:0-s:0\",from=\"s:0\",to=\"h0:0\"} 0\n"
    "tributary_link_paused{fabric=\"lab\",link=\"h1:1-s:2\",from=\"h1:1\",to=\"s:2\"} 0\n"
    "tributary_link_paused{fabric=\"lab\",link=\"g:0-s:3\",from=\"s:3\",to=\"g:0\"} 0\n"
    "# HELP tributary_link_paused_seconds Fabric time of PFC pauses.\n"
    "# TYPE tributary_link_paused_seconds counter\n"
    "# UNIT tributary_link_paused_seconds seconds\n"
    "tributary_link_paused_seconds_total{fabric=\"lab\",link=\"h0:0-s:0\",from=\"h0:0\",to=\"s:0\"}"
    " 0.0025\n"
    "tributary_link_paused_seconds_total{fabric=\"lab\",link=\"h0:0-s:0\",from=\"s:0\",to=\"h0:0\"}"
    " 0\n"
    "tributary_link_paused_seconds_total{fabric=\"lab\",link=\"h1:1-s:2\",from=\"h1:1\",to=\"s:2\"}"
    " 0\n"
    "tributary_link_paused_seconds_total{fabric=\"lab\",link=\"g:0-s:3\",from=\"s:3\",to=\"g:0\"} "
    "0\n"
    "# HELP tributary_link_pauses_received PFC frames to the sender.\n"
    "# TYPE tributary_link_pauses_received counter\n"
    "tributary_link_pauses_received_total{fabric=\"lab\",link=\"h0:0-s:0\",from=\"h0:0\",to=\"s:"
    "0\"} 1234567\n"
    "tributary_link_pauses_received_total{fabric=\"lab\",link=\"h0:0-s:0\",from=\"s:0\",to=\"h0:"
    "0\"} 0\n"
    "tributary_link_pauses_received_total{fabric=\"lab\",link=\"h1:1-s:2\",from=\"h1:1\",to=\"s:"
    "2\"} 0\n"
    "tributary_link_pauses_received_total{fabric=\"lab\",link=\"g:0-s:3\",from=\"s:3\",to=\"g:0\"} "
    "0\n"
    "# HELP tributary_link_pauses_sent PFC frames of the sending port.\n"
    "# TYPE tributary_link_pauses_sent counter\n"
    "tributary_link_pauses_sent_total{fabric=\"lab\",link=\"h0:0-s:0\",from=\"h0:0\",to=\"s:0\"} "
    "8\n"
    "tributary_link_pauses_sent_total{fabric=\"lab\",link=\"h0:0-s:0\",from=\"s:0\",to=\"h0:0\"} "
    "0\n"
    "tributary_link_pauses_sent_total{fabric=\"lab\",link=\"h1:1-s:2\",from=\"h1:1\",to=\"s:2\"} "
    "0\n"
    "tributary_link_pauses_sent_total{fabric=\"lab\",link=\"g:0-s:3\",from=\"s:3\",to=\"g:0\"} 0\n"
    "# HELP tributary_link_watchdog_trips Times that the PFC watchdog found the queue stuck.\n"
    "# TYPE tributary_link_watchdog_trips counter\n"
    "tributary_link_watchdog_trips_total{fabric=\"lab\",link=\"h0:0-s:0\",from=\"h0:0\",to=\"s:0\"}"
    " 3\n"
    "tributary_link_watchdog_trips_total{fabric=\"lab\",link=\"h0:0-s:0\",from=\"s:0\",to=\"h0:0\"}"
    " 0\n"
    "tributary_link_watchdog_trips_total{fabric=\"lab\",link=\"h1:1-s:2\",from=\"h1:1\",to=\"s:2\"}"
    " 0\n"
    "tributary_link_watchdog_trips_total{fabric=\"lab\",link=\"g:0-s:3\",from=\"s:3\",to=\"g:0\"} "
    "0\n"
    "# HELP tributary_link_queue_bytes Bytes that wait at the sender.\n"
    "# TYPE tributary_link_queue_bytes gauge\n"
    "# UNIT tributary_link_queue_bytes bytes\n"
    "tributary_link_queue_bytes{fabric=\"lab\",link=\"h0:0-s:0\",from=\"h0:0\",to=\"s:0\"} 12345\n"
    "tributary_link_queue_bytes{fabric=\"lab\",link=\"h0:0-s:0\",from=\"s:0\",to=\"h0:0\"} 0\n"
    "tributary_link_queue_bytes{fabric=\"lab\",link=\"h1:1-s:2\",from=\"h1:1\",to=\"s:2\"} 0\n"
    "tributary_link_queue_bytes{fabric=\"lab\",link=\"g:0-s:3\",from=\"s:3\",to=\"g:0\"} 0\n"
    "# HELP tributary_link_queue_peak_bytes Most that have waited.\n"
    "# TYPE tributary_link_queue_peak_bytes gauge\n"
    "# UNIT tributary_link_queue_peak_bytes bytes\n"
    "tributary_link_queue_peak_bytes{fabric=\"lab\",link=\"h0:0-s:0\",from=\"h0:0\",to=\"s:0\"} "
    "9950\n"
    "tributary_link_queue_peak_bytes{fabric=\"lab\",link=\"h0:0-s:0\",from=\"s:0\",to=\"h0:0\"} 0\n"
    "tributary_link_queue_peak_bytes{fabric=\"lab\",link=\"h1:1-s:2\",from=\"h1:1\",to=\"s:2\"} 0\n"
    "tributary_link_queue_peak_bytes{fabric=\"lab\",link=\"g:0-s:3\",from=\"s:3\",to=\"g:0\"} 0\n"
    "# HELP tributary_link_ecn_marks Frames that were marked in the queue.\n"
    "# TYPE tributary_link_ecn_marks counter\n"
    "tributary_link_ecn_marks_total{fabric=\"lab\",link=\"h0:0-s:0\",from=\"h0:0\",to=\"s:0\"} 17\n"
    "tributary_link_ecn_marks_total{fabric=\"lab\",link=\"h0:0-s:0\",from=\"s:0\",to=\"h0:0\"} 0\n"
    "tributary_link_ecn_marks_total{fabric=\"lab\",link=\"h1:1-s:2\",from=\"h1:1\",to=\"s:2\"} 0\n"
    "tributary_link_ecn_marks_total{fabric=\"lab\",link=\"g:0-s:3\",from=\"s:3\",to=\"g:0\"} 0\n"
    "# HELP tributary_link_drops Frames dropped, by reason.\n"
    "# TYPE tributary_link_drops counter\n"
    "tributary_link_drops_total{fabric=\"lab\",link=\"h0:0-s:0\",from=\"h0:0\",to=\"s:0\",reason="
    "\"lost\"} 0\n"
    "tributary_link_drops_total{fabric=\"lab\",link=\"h0:0-s:0\",from=\"h0:0\",to=\"s:0\",reason="
    "\"no_route\"} 2\n"
    "tributary_link_drops_total{fabric=\"lab\",link=\"h0:0-s:0\",from=\"h0:0\",to=\"s:0\",reason="
    "\"queue_full\"} 12\n"
    "tributary_link_drops_total{fabric=\"lab\",link=\"h0:0-s:0\",from=\"s:0\",to=\"h0:0\",reason="
    "\"lost\"} 9\n"
    "tributary_link_drops_total{fabric=\"lab\",link=\"h0:0-s:0\",from=\"s:0\",to=\"h0:0\",reason="
    "\"queue_full\"} 0\n"
    "tributary_link_drops_total{fabric=\"lab\",link=\"h1:1-s:2\",from=\"h1:1\",to=\"s:2\",reason="
    "\"lost\"} 0\n"
    "tributary_link_drops_total{fabric=\"lab\",link=\"h1:1-s:2\",from=\"h1:1\",to=\"s:2\",reason="
    "\"queue_full\"} 0\n"
    "tributary_link_drops_total{fabric=\"lab\",link=\"g:0-s:3\",from=\"s:3\",to=\"g:0\",reason="
    "\"lost\"} 0\n"
    "tributary_link_drops_total{fabric=\"lab\",link=\"g:0-s:3\",from=\"s:3\",to=\"g:0\",reason="
    "\"queue_full\"} 0\n"
    "# HELP tributary_group_members Members of an aggregation group.\n"
    "# TYPE tributary_group_members gauge\n"
    "tributary_group_members{fabric=\"lab\",job=\"00000abc\",kind=\"reduce\",tree=\"2\",group="
    "\"7\",owner=\"h1\"} 2\n"
    "tributary_group_members{fabric=\"lab\",job=\"123456789\",kind=\"multimem\",tree=\"0\",group="
    "\"8\",owner=\"\"} 1\n"
    "# HELP tributary_group_slots Slots that an aggregation node has granted.\n"
    "# TYPE tributary_group_slots gauge\n"
    "tributary_group_slots{fabric=\"lab\",job=\"00000abc\",kind=\"reduce\",tree=\"2\",group=\"7\","
    "owner=\"h1\",node=\"s\"} 64\n"
    "tributary_group_slots{fabric=\"lab\",job=\"123456789\",kind=\"multimem\",tree=\"0\",group="
    "\"8\",owner=\"\",node=\"s\"} 3\n"
    "# HELP tributary_group_slots_used Of these, slots that wait for a child.\n"
    "# TYPE tributary_group_slots_used gauge\n"
    "tributary_group_slots_used{fabric=\"lab\",job=\"00000abc\",kind=\"reduce\",tree=\"2\",group="
    "\"7\",owner=\"h1\",node=\"s\"} 5\n"
    "tributary_group_slots_used{fabric=\"lab\",job=\"123456789\",kind=\"multimem\",tree=\"0\","
    "group=\"8\",owner=\"\",node=\"s\"} 0\n"
    "# HELP tributary_aggregation_groups Groups at an aggregation node.\n"
    "# TYPE tributary_aggregation_groups gauge\n"
    "tributary_aggregation_groups{fabric=\"lab\",node=\"s\"} 2\n"
    "# HELP tributary_aggregation_operations Vectors reduced.\n"
    "# TYPE tributary_aggregation_operations counter\n"
    "# HELP tributary_aggregation_slots_reduced Slots reduced.\n"
    "# TYPE tributary_aggregation_slots_reduced counter\n"
    "tributary_aggregation_slots_reduced_total{fabric=\"lab\",node=\"s\"} 1000\n"
    "# HELP tributary_aggregation_joins_granted JOINs granted.\n"
    "# TYPE tributary_aggregation_joins_granted counter\n"
    "# HELP tributary_aggregation_joins_refused JOINs refused.\n"
    "# TYPE tributary_aggregation_joins_refused counter\n"
    "# HELP tributary_aggregation_aborts Groups aborted.\n"
    "# TYPE tributary_aggregation_aborts counter\n"
    "# HELP tributary_aggregation_input_bytes Elements from children.\n"
    "# TYPE tributary_aggregation_input_bytes counter\n"
    "# UNIT tributary_aggregation_input_bytes bytes\n"
    "# HELP tributary_aggregation_output_bytes Elements reduced.\n"
    "# TYPE tributary_aggregation_output_bytes counter\n"
    "# UNIT tributary_aggregation_output_bytes bytes\n"
    "# EOF\n";

static const char *printed(struct live_fabric *x, enum metrics_format format)
{
    struct live l = {.n = x ? 1 : 0, .fab = {x}};
    FILE *f = captured_file();

    metrics_print(&l, format, f);
    return captured_text(f);
}

static struct live_fabric *four_directions(void)
{
    struct live_fabric *x = looked_new();

    for (unsigned d = 0; d < 2u * x->f->n_links; d++)
        x->now.dir[d].known = d == 0 || d == 1 || d == 4 || d == 7;
    return x;
}

static void every_family_has_its_samples(void **state)
{
    struct live_fabric *x = four_directions();

    (void)state;
    assert_string_equal(printed(x, METRICS_OPENMETRICS), openmetrics);
    looked_free(x);
}

/* Samples are the same; heads have the counter's suffix, there are no units, and info is a gauge. */
static void the_older_format_differs_in_its_heads(void **state)
{
    struct live_fabric *x = four_directions();
    char text[16384], *save = NULL;
    const char *at = openmetrics;

    (void)state;
    snprintf(text, sizeof(text), "%s", printed(x, METRICS_PROMETHEUS));
    for (char *line = strtok_r(text, "\n", &save); line; line = strtok_r(NULL, "\n", &save)) {
        char name[80], type[16];

        if (*line != '#') {
            assert_memory_equal(line, at, strlen(line));
        } else if (sscanf(line, "# TYPE %79s %15s", name, type) == 2) {
            char was[80], was_type[16];

            assert_int_equal(sscanf(at, "# TYPE %79s %15s", was, was_type), 2);
            strcat(was, !strcmp(was_type, "counter") ? "_total"
                        : !strcmp(was_type, "info")  ? "_info"
                                                     : "");
            assert_string_equal(name, was);
            assert_string_equal(type, strcmp(was_type, "info") ? was_type : "gauge");
        } else {
            const char *text_of = strchr(line + 7, ' '), *was = strchr(at + 7, ' ');

            assert_memory_equal(text_of, was, strlen(text_of));
            assert_memory_equal(line, at, (size_t)(was - at)); /* "# HELP NAME" and a suffix */
        }
        do
            at = strchr(at, '\n') + 1;
        while (!strncmp(at, "# UNIT", 6));
    }
    assert_string_equal(at, "# EOF\n");
    looked_free(x);
}

static void a_label_is_escaped_and_bounded(void **state)
{
    struct live_fabric *x = looked_new();

    (void)state;
    snprintf(x->f->path, sizeof(x->f->path), "a\nb");
    assert_non_null(strstr(printed(x, METRICS_PROMETHEUS), ",conf=\"a\\nb\",version="));
    memset(x->f->path, '"', sizeof(x->f->path) - 1);
    x->f->path[sizeof(x->f->path) - 1] = 0;
    assert_non_null(strstr(printed(x, METRICS_PROMETHEUS), "\\\"\\\"\",version="));
    looked_free(x);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_family_has_its_samples),
        cmocka_unit_test(the_older_format_differs_in_its_heads),
        cmocka_unit_test(a_label_is_escaped_and_bounded),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
