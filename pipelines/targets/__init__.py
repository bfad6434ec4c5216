"""The backends, one folder for each kind of target: their strategies, and what makes machine code of the tir stage."""
