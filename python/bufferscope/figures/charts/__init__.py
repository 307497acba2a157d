"""One figure a file, one function a figure, both named as experiment files name it.

They live apart from the package that offers them, because importing a file would hide the function of its name there.
"""
