"""The plugin interface, which specifies hooks, stores registrations and loads plugins."""

from harness.plugins.loading import PluginInfo, Plugins, load

__all__ = ["PluginInfo", "Plugins", "load"]
