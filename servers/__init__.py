"""Settings, clients and local processes: how rooms connect to servers and start them locally."""
