"""The advice, pure: measured iterations and prices become predictions and recommendations."""
