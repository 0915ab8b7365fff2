/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Costs of transfers in addition to the time on links:
 *
 *   costs = { gpu = "5us"; hca = "100ns"; switch = "150ns"; };
 *
 * Without it only links take time, and results match the bandwidth terms of the formulas. Real
 * programs see a transfer's end late (a kernel polls, a proxy thread hands over), an HCA takes time
 * for each work request, and a switch for each frame. A link's `efficiency` is a cost too, but a
 * property of the link (conf_links.c).
 */
#include "fabric/build.h"

#define LEN(a)   (sizeof(a) / sizeof((a)[0]))
#define MAX_COST 1000000000000ull /* 1 s */

void conf_costs(struct build *b, config_setting_t *s)
{
    static const struct key keys[] = {
        {"gpu", KEY_TIME, offsetof(struct fab_costs, gpu_ps), 0, MAX_COST},
        {"hca", KEY_TIME, offsetof(struct fab_costs, hca_ps), 0, MAX_COST},
        {"switch", KEY_TIME, offsetof(struct fab_costs, switch_ps), 0, MAX_COST},
    };

    if (!config_setting_is_group(s))
        keys_expected(b, s, "a group { gpu; hca; switch; } of times");
    else
        keys_read(b, s, keys, LEN(keys), &b->f->costs);
}
