"""`td3 bench`: how fast this machine learns, with each engine and with every peer that is installed.

Speeds are compared only within one run: the rounds of all libraries are interleaved, and the machine's own peak
is measured between them. Every number of threads gets a process of its own, because some libraries decide once.
"""
