"""Bodies for the emulator's instances: real hosts on this machine, and the rules between them."""
