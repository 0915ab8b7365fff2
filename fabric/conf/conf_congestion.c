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
#define MAX_RATE 100000000000000ull

#define P(field) offsetof(struct fab_dcqcn, field)

/* The defaults of ConnectX-5 and later; rpg_byte_reset is 32767 units of 64 bytes. */
static const struct fab_dcqcn presets = {.on = true,
                                         .min_time_between_cnps_ps = 4 * US,
                                         .rate_reduce_monitor_period_ps = 4 * US,
                                         .dce_tcp_rtt_ps = US,
                                         .dce_tcp_g = 1019,
                                         .rpg_time_reset_ps = 300 * US,
                                         .rpg_byte_reset = 32767 * 64,
                                         .rpg_threshold = 1,
                                         .rpg_ai_bps = 5000000,
                                         .rpg_hai_bps = 50000000};

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
    static const struct key keys[] = {
        {"min_time_between_cnps", KEY_TIME, P(min_time_between_cnps_ps), 0, MAX_TIME},
        {"rate_reduce_monitor_period", KEY_TIME, P(rate_reduce_monitor_period_ps), 0, MAX_TIME},
        {"dce_tcp_rtt", KEY_TIME, P(dce_tcp_rtt_ps), US / 10, MAX_TIME},
        {"dce_tcp_g", KEY_UINT, P(dce_tcp_g), 1, 1023},
        {"rpg_time_reset", KEY_TIME, P(rpg_time_reset_ps), US, MAX_TIME},
        {"rpg_byte_reset", KEY_SIZE, P(rpg_byte_reset), 64, 1ull << 40},
        {"rpg_threshold", KEY_UINT, P(rpg_threshold), 1, 31},
        {"rpg_ai_rate", KEY_RATE, P(rpg_ai_bps), 1000000, MAX_RATE},
        {"rpg_hai_rate", KEY_RATE, P(rpg_hai_bps), 1000000, MAX_RATE},
    };

    if (config_setting_type(s) == CONFIG_TYPE_BOOL) {
        if (config_setting_get_bool(s))
            b->f->dcqcn = presets;
    } else if (config_setting_is_group(s)) {
        b->f->dcqcn = presets;
        keys_read(b, s, keys, LEN(keys), &b->f->dcqcn);
    } else {
        keys_expected(b, s, "true, false or a group { rpg_ai_rate; ... } of its parameters");
        return;
    }
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
