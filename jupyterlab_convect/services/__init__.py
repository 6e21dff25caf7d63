"""What stays up and has an address: so far, endpoints."""
