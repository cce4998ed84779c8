"""The drawing of each chart, in altair; imported only when charts are wanted."""
