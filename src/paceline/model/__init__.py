"""The nouns: frozen data that every other room passes around. Nothing here acts."""
