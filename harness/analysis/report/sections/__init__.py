"""The built-in sections: what each of them says, in words, tables and charts."""
