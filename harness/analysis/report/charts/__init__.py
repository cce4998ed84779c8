"""Draws charts with altair. This package is imported only when a chart is drawn."""
