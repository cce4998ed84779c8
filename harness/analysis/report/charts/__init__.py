"""How each chart is drawn, in altair; imported only when charts are wanted."""
