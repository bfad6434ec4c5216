"""Products on Hopper's tensor cores: operands come by the tensor memory accelerator, and groups of four warps multiply."""
