/* SPDX-License-Identifier: BSD-3-Clause */
#include "machine/suspect.h"

#include <stdio.h>
#include <string.h>

#define LONG_MS   50    /* a shorter stop makes no rank fail */
#define MEMORY_MS 10000 /* a failure may show so much later, once retries have run out */
#define STUCK_MS  15000 /* limits a stop that no rank notices, because none sends to it */

void suspect_note(struct suspect *s, bool stopped, int64_t now_ms)
{
    bool was = s->since_ms && !s->until_ms;

    if (stopped && !was)
        *s = (struct suspect){.since_ms = now_ms};
    else if (!stopped && was)
        s->until_ms = now_ms;
}

bool suspect_says(const struct suspect *s, int64_t now_ms, char *text, size_t size)
{
    if (!s->since_ms)
        return false;
    if (!s->until_ms) {
        snprintf(text, size, "is stopped, for %.1f s now", (double)(now_ms - s->since_ms) / 1000);
        return true;
    }
    if (s->until_ms - s->since_ms < LONG_MS || now_ms - s->until_ms > MEMORY_MS)
        return false;
    snprintf(text, size, "was stopped for %.1f s", (double)(s->until_ms - s->since_ms) / 1000);
    return true;
}

bool suspect_is_stuck(const struct suspect *s, int64_t now_ms)
{
    return s->since_ms && !s->until_ms && now_ms - s->since_ms > STUCK_MS;
}
