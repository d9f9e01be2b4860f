"""Settings, clients and local processes: what several rooms need to reach servers."""
