"""Runtimes: where runs run. `base` is the contract, each runtime has a folder of its own."""
