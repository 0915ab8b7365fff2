# SPDX-License-Identifier: BSD-3-Clause
"""What stands out. Shares are of the operation's time."""

EPS = 1e-6  # us: times of the file are picoseconds
LEAST = 0.1  # of a cause
BUSY = 0.6  # a link that limits
STOPPED = 0.5  # a link that is paused for the operation's own frames
UNEVEN = 1.3  # times the mean of its peers
BEYOND_HOSTS = 1.2  # times as busy as the busiest host's link
SLOW_RATE = 0.8  # of the median rate of its peers
LONG = 4  # times the median latency of its peers
LONG_US = 5.0  # a kilometre of fibre, whatever the others have
# In real time, of the messages between ranks: headers and the gap between frames at an MTU of 2,048; acknowledgements, credits, keep-alives.
OVERHEAD, CONTROL = 1.05, 30000
