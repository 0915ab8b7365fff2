/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Notes processes that were stopped (SIGSTOP, SIGTSTP, a debugger) while a job ran. A stopped process,
 * or one that waits for it, looks dead to the others: when they fail, the launcher names the process
 * that did not run.
 */
#ifndef TRIB_MACHINE_SUSPECT_H
#define TRIB_MACHINE_SUSPECT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* State of one process; zero at first. */
struct suspect {
    int64_t since_ms; /* when it was stopped; 0: never */
    int64_t until_ms; /* when it continued; 0: it is still stopped */
};

void suspect_note(struct suspect *s, bool stopped, int64_t now_ms);
/* Whether it is stopped, or was for long and not long ago; text: "is stopped, for 3.0 s now" or "was
 * stopped for 1.2 s". */
bool suspect_says(const struct suspect *s, int64_t now_ms, char *text, size_t size);
/* Whether it has been stopped for longer than the job waits for it. */
bool suspect_is_stuck(const struct suspect *s, int64_t now_ms);

#endif
