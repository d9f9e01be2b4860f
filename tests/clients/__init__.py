"""Device libraries: the same bytes in both, the channel that terms declare, and nothing for hostile gateways."""
