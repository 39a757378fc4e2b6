"""Several hosts on one machine: network namespaces with addresses and shaped links of their own.

Needs root and iproute2. The tests and the benchmarks use it.
"""
