# SPDX-License-Identifier: BSD-3-Clause
"""``trib explain``: why an operation took as long as it did, from the file of its time line alone.

``timeline`` reads the file; ``path`` walks back from the last step that ended to the start, along what each step waited for; ``causes`` are
rules, each with a figure. What no rule names is not blamed on anybody.
"""
