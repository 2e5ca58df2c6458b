"""SWE-bench's tasks: their rows, how their tests are run, read and graded."""
