"""What is measured: suites of tasks, each in several variants, with checks of what a model answers."""
