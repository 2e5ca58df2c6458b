"""Bug-fix tasks: some that ship with the package, and a generator that makes more of them."""
