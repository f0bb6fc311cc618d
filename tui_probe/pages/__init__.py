"""Numbers to text: tables, lines, small charts. No Textual."""
