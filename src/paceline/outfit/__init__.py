"""What makes a host ready for a job: the working folder as it is at home, a venv of its own.

It travels to the hosts: the standard library only, Python 3.8 or newer.
"""
