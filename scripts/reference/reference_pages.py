"""The pages of docs/reference."""

from collections.abc import Callable, Mapping

import catalogue
import command_line
import experiment_file
import metrics_list
import python_api
import queues

NOTICE = "<!-- Made from the code by `make reference`; edit that, not this. -->\n\n"
PAGES: Mapping[str, Callable[[], str]] = {
    "catalogue.md": catalogue.page,
    "command-line.md": command_line.page,
    "experiment-file.md": experiment_file.page,
    "metrics.md": metrics_list.page,
    "python-api.md": python_api.page,
    "queues.md": queues.page,
}
