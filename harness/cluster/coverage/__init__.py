"""What a replay makes of every field of every kind that is read: data, one module a family of kinds."""
