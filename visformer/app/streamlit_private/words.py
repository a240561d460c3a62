"""The words that Streamlit 1.67 itself puts on the elements that the pages use, as messages for our catalogues.

``{what}`` stands for any text. A word that a later Streamlit no longer uses does no harm; the test that walks through
the app in a language of brackets finds new ones.

A visitor loses: Chinese on tables, boxes, toolbars and buttons that Streamlit labels itself.
"""

from visformer.errors import N_

WORDS = (
    # boxes
    N_("Choose an option"),
    N_("Choose options"),
    N_("No results"),
    N_("1 option available."),
    N_("{what} options available."),
    N_("Dismiss"),
    N_("Open"),
    N_("Clear value"),
    N_("Clear all"),
    N_("Select all"),
    N_("Selected values"),
    N_("Remove {what}"),
    N_("Add: {what}"),
    N_("Help for {what}"),
    N_("Press Enter to apply"),
    N_("Increment"),
    N_("Decrement"),
    N_("Number is above the allowed range."),
    N_("Number is below the allowed range."),
    # files
    N_("Upload"),
    N_("Cancel upload of {what}"),
    N_("file upload"),
    N_("Drag and drop a file here"),
    N_("{what} per file"),
    N_("{what} files are not allowed."),
    N_("Download failed"),
    # tables
    N_("Search"),
    N_("Type to search"),
    N_("Show/hide columns"),
    N_("Download as CSV"),
    N_("Fullscreen"),
    N_("Close fullscreen"),
    N_("Add row"),
    N_("Delete row(s)"),
    N_("Dataframe column menu"),
    N_("Copy column name"),
    N_("Sort ascending"),
    N_("Sort descending"),
    N_("Format"),
    N_("Statistics"),
    N_("Autosize"),
    N_("Pin column"),
    N_("Unpin column"),
    N_("Hide column"),
    N_("Automatic"),
    N_("Localized"),
    N_("Plain"),
    N_("Compact"),
    N_("Dollar"),
    N_("Euro"),
    N_("Yen"),
    N_("Percent"),
    N_("Scientific"),
    N_("Accounting"),
    N_("Bytes"),
    # Plotly's pictures, and code
    N_("Download plot as a PNG"),
    N_("Zoom"),
    N_("Pan"),
    N_("Zoom in"),
    N_("Zoom out"),
    N_("Autoscale"),
    N_("Reset axes"),
    N_("Copy to clipboard"),
    N_("Copied"),
    # around the page
    N_("Skip to main content"),
    N_("Sidebar"),
    N_("Collapse sidebar"),
    N_("Expand sidebar"),
    N_("Running..."),
    N_("Stop"),
    N_("Close"),
)

ICONS = {
    "close icon": N_("Close"),
    "more_horiz icon": N_("Lessons"),
    "1MB per file": N_("one small file"),
    "30MB per file": N_("one picture"),
    "Failed to generate file for download": N_(
        "This file could not be made. Choose another format, or reload the page and try again."
    ),
}
"""Replaced in every language, English too: names of icons without a label, an upload limit that is not ours, and an
error that names no remedy."""
