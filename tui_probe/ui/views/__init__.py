"""Views of panes: state, lines, and actions of keys. Nothing here imports Textual."""
