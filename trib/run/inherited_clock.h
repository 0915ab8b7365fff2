/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Inside of trib exec --clock fabric: TRIB_CLOCK says that programs have fabric time (host/clock). This command and what it runs by itself have
 * wall time, also when that fabric is gone; the program of trib exec has the clock that was inherited.
 */
#ifndef TRIB_TRIB_RUN_INHERITED_CLOCK_H
#define TRIB_TRIB_RUN_INHERITED_CLOCK_H

/* Starts this program again with wall time, if the one that it has is another. */
void inherited_clock_begin(char **argv);
/* TRIB_CLOCK as it was inherited; "": it was not. */
const char *inherited_clock_get(void);
/* It is what the next program inherits. */
void inherited_clock_give_back(void);

#endif
