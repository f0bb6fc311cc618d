"""Support matrix: small programs of frameworks and languages, run with and without tui-probe."""
