/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The commands of trib. Each takes the n words behind its name and returns the exit code. A mistake
 * ends the command with a message.
 */
#ifndef TRIB_TRIB_COMMANDS_H
#define TRIB_TRIB_COMMANDS_H

typedef int command_fn(int n, char **words);

command_fn command_up, command_down;                               /* life.c */
command_fn command_status;                                         /* status.c */
command_fn command_exec, command_shell;                            /* exec.c */
command_fn command_perf, command_sim, command_model, command_plan; /* measure.c */
command_fn command_capture;                                        /* capture.c */
command_fn command_link, command_node, command_faults;             /* link_node.c */
command_fn command_telemetry;                                      /* telemetry.c */
command_fn command_metrics, command_top;                           /* live.c */

#endif
