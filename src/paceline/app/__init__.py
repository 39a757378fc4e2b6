"""The use cases: what Paceline does. They know the ports and never an adapter."""
