"""What every stage may ask: the context of passes, their instruments, the target, the registry of backends."""
