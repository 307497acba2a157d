"""Explain a run: where its delay was, since when, whose packets, what held the flows back, and what would help.

`evidence` gathers what the records show, one file for each kind; `diagnosis` names the main cause; the files of words
make sentences of both; `cures` has the simulator try what would help.
"""

from bufferscope.analysis.explanation.explaining import explain, explain_run
from bufferscope.analysis.explanation.statement import Cause, Explanation, Statement

__all__ = ["Cause", "Explanation", "Statement", "explain", "explain_run"]
