"""One file per figure and one function per figure, both named as in experiment files.

They are separate from the package that offers them, because importing a file there hides the function of that name.
"""
