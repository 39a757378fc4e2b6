"""What runs as the first process of a machine: mounts, cloud-init's part, services.

Only the standard library, all of it imported before the machine's own root takes the place of
this machine's: what lies elsewhere cannot be found any more after that.
"""
