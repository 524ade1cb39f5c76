"""The subcommands of `pipeline`, one module a kind of question."""
