"""The code that draws charts with altair, which is imported only when a chart is drawn."""
