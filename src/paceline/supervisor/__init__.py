"""The supervisor: a small process on each host that runs a job and outlives the terminal.

It travels to the hosts, so it needs nothing but the standard library.
"""
