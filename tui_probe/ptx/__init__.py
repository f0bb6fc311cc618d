"""The PTX language: lexer, parser, syntax tree, printer. Knows nothing of its users."""
