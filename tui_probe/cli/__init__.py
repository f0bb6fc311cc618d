"""The command line: one module a subcommand, each with ``add_arguments(parser)`` and ``run(arguments) -> int``."""
