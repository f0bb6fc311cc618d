"""The style sheet of the application: that of a screen cannot name the screen itself.

Textual sends a changed line from the left edge of its widget on, so what changes often (the place in the table) is a
widget of its own.
"""

STYLE = """
ViewScreen { background: $background; overflow: hidden; }
#top { layout: horizontal; height: 1; }
#place { width: 2fr; }
#top #title { width: 3fr; }
#body { layout: vertical; height: 1fr; }
#body.beside { layout: horizontal; }
#left { layout: vertical; width: 1fr; }
#rule { display: none; }
#body.beside #rule { display: block; }
#right { layout: vertical; width: 1fr; height: 1fr; }
.hidden { display: none; }
#small { display: none; }
.small > * { display: none; }
.small #small { display: block; }
"""
