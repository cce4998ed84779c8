"""The code that draws the charts with altair; it is imported only when charts are wanted."""
