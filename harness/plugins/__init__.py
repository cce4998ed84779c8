"""The plugin seam: hook specifications, what is registered, and how plugins are loaded."""

from __future__ import annotations

from harness.plugins.loading import PluginInfo, Plugins, load

__all__ = ["PluginInfo", "Plugins", "load"]
