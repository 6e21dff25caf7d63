from __future__ import annotations

import asyncio
from typing import Any

from jupyter_events.schema import EventSchema

from jupyterlab_convect.events import RUN, SCHEMAS, SWEEP, Coalesced


async def test_the_first_change_goes_out_at_once_and_the_rest_as_one() -> None:
    sent: list[tuple[str, dict[str, Any]]] = []
    events = Coalesced(lambda schema, data: sent.append((schema, data)), pause=0.05)
    for seq in range(100):
        events.tell(RUN, "a", {"seq": seq})
    events.tell(RUN, "b", {"seq": 7})
    assert sent == [(RUN, {"seq": 0}), (RUN, {"seq": 7})]
    await asyncio.sleep(0.2)
    assert sent[2:] == [(RUN, {"seq": 99})]
    events.tell(RUN, "a", {"seq": 100})
    assert sent[-1] == (RUN, {"seq": 100})


def test_the_schemas_are_those_of_the_documentation() -> None:
    schemas = [EventSchema(path) for path in SCHEMAS]
    assert [schema.id for schema in schemas] == [RUN, SWEEP]
    assert all(isinstance(schema.version, str) for schema in schemas)
