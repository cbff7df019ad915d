"""Measurements that take longer than a test: learning curves, each by its own command."""
