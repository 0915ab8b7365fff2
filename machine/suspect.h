/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Processes that were stopped (SIGSTOP, SIGTSTP, a debugger) while a job ran. To the others a
 * stopped process, or one that waits for it, looks dead: when they fail, the launcher names the one
 * that did not run.
 */
#ifndef TRIB_MACHINE_SUSPECT_H
#define TRIB_MACHINE_SUSPECT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Of one process; zero at first. */
struct suspect {
    int64_t since_ms; /* stopped since; 0: never was */
    int64_t until_ms; /* continued then; 0: it has not */
};

void suspect_note(struct suspect *s, bool stopped, int64_t now_ms);
/* Whether it is stopped, or was for long enough and not long ago: "is stopped", "was stopped for
 * 1.2 s". */
bool suspect_says(const struct suspect *s, int64_t now_ms, char *text, size_t size);
/* Stopped for longer than the job waits for it. */
bool suspect_is_stuck(const struct suspect *s, int64_t now_ms);

#endif
