"""One file per figure and one function per figure, both named as in experiment files.

They are not in the package `figures` itself, because there an imported file would hide the function of the same name.
"""
