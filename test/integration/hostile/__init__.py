"""A namespace whose owner wants to stop certroll for all others (docs/threat-model.md): what its rights let it write, again and again."""
