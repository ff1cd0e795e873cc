"""The core of tract: graphs, facts, symbolic sizes, operators and their meaning, rules, and the plugin seam."""
