"""The learning algorithms, as pure loops that read like the paper."""
