"""What panes show: state, lines, and what keys do to it. Nothing here knows Textual."""
