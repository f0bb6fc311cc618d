"""The command line: one module per subcommand, each with ``add_arguments(parser)`` and ``run(arguments) -> int``."""
