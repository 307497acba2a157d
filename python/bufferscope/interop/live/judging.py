"""The verdict about a stored live measurement, reached again from its tables."""

import json
from typing import cast

from bufferscope import _core
from bufferscope.base.errors import InputError
from bufferscope.interop.live.rebuilding import observations
from bufferscope.store.live import live_of
from bufferscope.store.run import BaseRun
from bufferscope.store.schema import Mismatch, plain
from bufferscope.store.typed import check_of
from bufferscope.store.verdict import LiveVerdict

_VERDICT = check_of(LiveVerdict)


def judge(run: BaseRun) -> LiveVerdict:
    """The verdict of this version of bufferscope about a live measurement, which may be an older one's.

    Raises `InputError` if the run is no live measurement.
    """
    live = live_of(run.meta["summary"])
    if live is not None and "monitor" in live:
        raise InputError(f"{run.id}: was watched without load, so there is no queue to judge; see its episodes")
    try:
        found = json.loads(_core.judge(json.dumps(observations(run))))
        plain(found, "verdict")
        _VERDICT(found, "verdict")
    except (ValueError, Mismatch) as error:
        if isinstance(error, InputError):
            raise
        raise InputError(f"{run.id}: cannot be judged: {error}") from None
    return cast(LiveVerdict, found)
