/*
 * One rank: an ordinary verbs program that does what the launcher says over its socket (msg.h).
 */
#ifndef TRIB_PERF_RANK_H
#define TRIB_PERF_RANK_H

int rank_main(int fd); /* exit code */
#endif
