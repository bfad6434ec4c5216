"""What several primitives do to blocks: move them, copy buffers, change their bodies, name tensor intrinsics."""
