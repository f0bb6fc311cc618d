"""The probe model: maps, snippets, positions, and the layout of records. Does not import the engine."""
