"""What other programs measured, as `bufferscope import` stores it."""

from bufferscope.engines.engine import Engine

ENGINE = Engine("import", "another program's measurements", read_by="bufferscope import")
