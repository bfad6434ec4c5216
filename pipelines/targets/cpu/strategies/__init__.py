"""The strategies of the CPU, and the table that says in which order kernels are offered to them."""
