"""Files of other profilers: read into tables, analysed, and shown on pages of their own."""
