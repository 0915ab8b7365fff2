#ifndef TRIB_SWITCH_DROPS_H
#define TRIB_SWITCH_DROPS_H
enum drop { DROP_REASONS };
#endif
