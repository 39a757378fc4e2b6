"""Providers: who supplies hosts. Each implements the port `Provider`; none knows another."""
