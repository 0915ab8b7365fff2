/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Inside trib exec --clock fabric, TRIB_CLOCK gives programs fabric time (host/clock). This command
 * and its helpers have wall time, even when that fabric is gone; the program of trib exec has the
 * clock that was inherited.
 */
#ifndef TRIB_TRIB_RUN_INHERITED_CLOCK_H
#define TRIB_TRIB_RUN_INHERITED_CLOCK_H

/* Starts this program again with wall time, if it has another clock. */
void inherited_clock_begin(char **argv);
/* TRIB_CLOCK as it was inherited; "": it was not. */
const char *inherited_clock_get(void);
/* Lets the next program inherit it. */
void inherited_clock_give_back(void);

#endif
