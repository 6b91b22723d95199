"""Pictures and pages: described once as data, drawn by matplotlib or by Bokeh."""
