"""Creates synthetic traces in bounded memory, from a specification or by resampling a recorded trace."""
