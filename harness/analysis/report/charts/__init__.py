"""Draws charts with altair. This package is imported only when a chart is drawn.

Encodings are objects such as `alt.Y("high:Q")`, because altair finds the class of a mere text slowly.
"""
