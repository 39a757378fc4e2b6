"""The trainer: an island that travels to the hosts. torch, the standard library, events, data."""
