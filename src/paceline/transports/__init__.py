"""Transports: how a host is reached. Each implements the port `Transport`."""
