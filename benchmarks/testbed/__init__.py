"""The test bed: real environments through `forkable`, each compared with one never forked."""
