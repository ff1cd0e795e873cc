"""What the subcommands do, each in a module of its name, with what only they need."""
