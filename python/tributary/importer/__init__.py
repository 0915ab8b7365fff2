# SPDX-License-Identifier: BSD-3-Clause
"""A conf of a fabric that exists, from what its tools print: ``trib import``.

ibnetdiscover.py, iblinkinfo.py and topology.py each take one format apart; network.py makes a conf of InfiniBand nodes and links, gpus.py of
GPUs and NICs; verdict.py asks ``trib plan`` whether it takes the conf, and says by which line of the input it does not. command.py is main().
"""
