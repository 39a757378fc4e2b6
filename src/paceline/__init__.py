"""Paceline: train a PyTorch model on many machines, and measure how the training scales."""
