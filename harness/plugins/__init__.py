"""The plugin interface: hook specifications, registrations, and the loading of plugins."""

from __future__ import annotations

from harness.plugins.loading import PluginInfo, Plugins, load

__all__ = ["PluginInfo", "Plugins", "load"]
