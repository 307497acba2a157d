"""`bufferscope commands`."""

from bufferscope.cli import options
from bufferscope.cli.saying import say


def commands(experiment: options.ExperimentName, point: options.Point = None, overrides: options.Set = None) -> None:
    """Print the commands that build an experiment's network by hand, as a script for sh.

    [bold]--engine host[/bold] and [bold]--engine guest[/bold] build the network with the same commands: ip, tc, sysctl
    and ethtool, with a network namespace for each node. Run the script as root; it also removes what it built.

    [bold]Examples[/bold]

      bufferscope commands ucas-reproduce | less

      bufferscope commands ucas-queue-sizes --point link.bottleneck.queue.limit=200p > lab.sh

      sudo sh lab.sh && sudo ip netns exec h1 ping 10.0.0.6; sudo sh lab.sh down
    """
    from bufferscope.cli.choosing import one_point
    from bufferscope.cli.notes import tell
    from bufferscope.model.experiment import load
    from bufferscope.running.commands import script

    loaded = load(experiment, overrides or ())
    tell([loaded])
    say(script(loaded, one_point(loaded, point or ())), end="")
