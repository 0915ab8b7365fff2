/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Schedules from a seed, as text (docs/schedules.md), right by construction: every chunk is reduced
 * and sent along trees of its own, over scratch memory or without it. Steps of different chunks are
 * mixed, those of a rank change places, and `after` names what a step needs, at times less, and
 * steps that it does not need. So some are refused: the reader says which.
 */
#ifndef TRIB_TESTS_SUPPORT_DRAW_SCHEDULE_H
#define TRIB_TESTS_SUPPORT_DRAW_SCHEDULE_H

#include <stddef.h>
#include <stdint.h>

#define DRAWN_BYTES 65536

/* Writes the schedule of the seed to text, of DRAWN_BYTES. */
void draw_schedule(uint64_t seed, char *text);

#endif
