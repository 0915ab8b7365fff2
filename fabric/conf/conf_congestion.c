/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Congestion control of a fabric; marks and pauses are properties of links:
 *
 *   dcqcn = true;                                    with the adapters' presets
 *   dcqcn = { rpg_ai_rate = "40Mb/s"; };             with some of them changed
 *   pfc_watchdog = "200ms";
 */
#include "base/units.h"
#include "fabric/build.h"

#define LEN(a) (sizeof(a) / sizeof((a)[0]))

#define US       1000000ull
#define MAX_TIME (1000 * 1000 * US) /* 1 s */
#define MIN_RATE 1000000ull
#define MAX_RATE 100000000000000ull

#define P(field) offsetof(struct fab_dcqcn, field)

/* Names and defaults are those of ConnectX-5 and later; rpg_byte_reset is 32767 units of 64 bytes. */
static const struct key dcqcn_keys[] = {
    /* Least time between two CNPs of a connection, at the receiver. */
    RANGE_KEY("min_time_between_cnps", KEY_TIME, P(min_time_between_cnps_ps), 0, MAX_TIME, "4us"),
    /* At most one rate cut in this time. */
    RANGE_KEY("rate_reduce_monitor_period", KEY_TIME, P(rate_reduce_monitor_period_ps), 0, MAX_TIME,
              "4us"),
    /* Period of alpha's update. */
    RANGE_KEY("dce_tcp_rtt", KEY_TIME, P(dce_tcp_rtt_ps), US / 10, MAX_TIME, "1us"),
    /* Share of alpha, in 1024ths, that an update keeps. */
    RANGE_KEY("dce_tcp_g", KEY_UINT, P(dce_tcp_g), 1, 1023, "1019"),
    /* An increase after this time. */
    RANGE_KEY("rpg_time_reset", KEY_TIME, P(rpg_time_reset_ps), US, MAX_TIME, "300us"),
    /* An increase after this amount sent. */
    RANGE_KEY("rpg_byte_reset", KEY_SIZE, P(rpg_byte_reset), 64, 1ull << 40, "2097088B"),
    /* Steps of fast recovery before the target rate rises too. */
    RANGE_KEY("rpg_threshold", KEY_UINT, P(rpg_threshold), 1, 31, "1"),
    /* Additive increase of the target rate. */
    RANGE_KEY("rpg_ai_rate", KEY_RATE, P(rpg_ai_bps), MIN_RATE, MAX_RATE, "5Mb/s"),
    /* Its hyper increase. */
    RANGE_KEY("rpg_hai_rate", KEY_RATE, P(rpg_hai_bps), MIN_RATE, MAX_RATE, "50Mb/s"),
};

static bool marks_anywhere(const struct build *b)
{
    for (unsigned i = 0; i < b->n_links; i++)
        if (b->links[i].p.ecn_bytes)
            return true;
    return false;
}

static void read_dcqcn(struct build *b, config_setting_t *s)
{
    unsigned before = b->errs->total;

    if (config_setting_type(s) != CONFIG_TYPE_BOOL && !config_setting_is_group(s)) {
        keys_expected(b, s, "true, false or a group { rpg_ai_rate; ... } of its parameters");
        return;
    }
    b->f->dcqcn.on = config_setting_is_group(s) || config_setting_get_bool(s);
    if (b->f->dcqcn.on)
        keys_initial(dcqcn_keys, LEN(dcqcn_keys), &b->f->dcqcn);
    if (config_setting_is_group(s))
        keys_read(b, s, dcqcn_keys, LEN(dcqcn_keys), &b->f->dcqcn);
    /* DCQCN without marks would never do anything. */
    if (b->f->dcqcn.on && b->errs->total == before && !b->graph_broken && !marks_anywhere(b))
        build_error(b, (int)config_setting_source_line(s),
                    "dcqcn: found no link that marks, expected ecn = \"64KiB\" or the like in "
                    "link_defaults or at links");
}

void conf_congestion(struct build *b, config_setting_t *root)
{
    config_setting_t *dcqcn = config_setting_get_member(root, "dcqcn");
    config_setting_t *watchdog = config_setting_get_member(root, "pfc_watchdog");

    if (dcqcn)
        read_dcqcn(b, dcqcn);
    if (watchdog) {
        const char *text = config_setting_get_string(watchdog);
        int64_t v = 0;

        if (!text || parse_time(text, &v) || v < (int64_t)US || v > (int64_t)MAX_TIME * 60)
            keys_expected(b, watchdog, "a time from 1us to 60s, with its unit, as \"200ms\"");
        else
            b->f->pfc_watchdog_ps = v;
    }
}
