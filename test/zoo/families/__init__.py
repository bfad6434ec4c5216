"""The architectures of the zoo, by family."""

from network import Architecture

from families import audio, classical, detection, diffusion, graphs, series, transformers_text, vision

FAMILIES = (transformers_text, vision, detection, audio, diffusion, graphs, series, classical)
ARCHITECTURES: dict[str, Architecture] = {name: row for family in FAMILIES for name, row in family.ROWS.items()}
