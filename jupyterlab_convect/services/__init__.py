"""What stays up and has an address: a contract, and a file per kind."""
