"""Pages: tables, documents and drawings of a trace or kernel, for screen, report and data. No Textual."""
