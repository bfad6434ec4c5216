"""What a kernel of the te stage is: its graph of nodes, how it reads memory, and the forms that strategies recognise."""
