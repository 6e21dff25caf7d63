"""Messages to people and programs about runs and schedules: to whom, about what, and how."""
