"""Executes the cells of a notebook, one after the other, and tells about each."""

from __future__ import annotations

import ast
import asyncio
import contextlib
import json
import re
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, TypeVar

from ..json_text import loads
from ..text import size_text
from . import notebooks
from .kernels import Kernel
from .limits import Limits
from .notebooks import Notebook
from .outcome import MemoryWatch, StepFailed, explain_end
from .record import LARGEST_VALUE, StepRecord

notebooks.quick_nbformat()
from nbclient import NotebookClient  # noqa: E402
from nbclient.exceptions import CellExecutionComplete  # noqa: E402

from .kernel_connection import KernelConnection, Message  # noqa: E402

T = TypeVar("T")

AS_JSON = (
    "__import__('json').dumps({name}, default=lambda v: v.tolist() if hasattr(v, 'tolist') "
    "else v.isoformat() if hasattr(v, 'isoformat') else "
    "v.__fspath__() if hasattr(v, '__fspath__') else "
    "list(v) if isinstance(v, (set, frozenset)) else v.item())"
)
"""An expression for the value of a name."""
OUTPUT_MESSAGES = ("stream", "display_data", "execute_result", "error", "update_display_data")
EVENT_TEXT = 2000
SHUTDOWN = 5.0
"""Seconds: jupyter_client's `KernelManager.shutdown_wait_time`."""
EVENTS_PER_CELL = 500
_ESCAPES = re.compile(r"\x1b\[[0-9;?]*[A-Za-z]")


class Execution(NotebookClient):
    """nbclient's treatment of outputs and widgets, with a kernel and a pace of our own."""

    def __init__(
        self,
        notebook: Notebook,
        record: StepRecord,
        output_limit: int,
        limits: Limits,
        *,
        injected: int | None = None,
        computed: tuple[str, ...] = (),
        **kwargs: Any,
    ):
        """`injected` is the index of the cell that is not in the source."""
        super().__init__(notebook, **kwargs)
        self.record = record
        executed = [index for index, cell in enumerate(notebook.cells) if _executes(cell)]
        own = [index for index in executed if index != injected]
        self._numbers = {index: number for number, index in enumerate(own, 1)}
        """Of the cells that are executed, by index, counted from 1 as they are in the source."""
        if injected is not None:
            self._numbers[injected] = 0
        self.total = len(own)
        self._computed = {name: AS_JSON.format(name=name) for name in computed}
        self.done = 0
        self.number = 0
        """Of the cell at work; 0 before the first, and for the one that was injected."""
        self._outputs = 0
        self._kernel: Kernel
        self._connection: KernelConnection | None = None
        self.client: Any = None
        """The same as nbclient's `kc`, which is there only while the kernel is."""
        self._memory = MemoryWatch(limits)
        self._output_limit = output_limit
        self._kept: dict[int, int] = {}
        self._cells: dict[str, tuple[Any, int]] = {}
        self._idle: dict[str, asyncio.Future[None]] = {}
        self._heard = asyncio.Event()
        self._stream: list[str] = []
        self._stream_output: Any = None
        self._narrator = _Narrator(record)

    @property
    def version(self) -> tuple[int, int, int]:
        """Changes whenever the notebook does."""
        return self.number, self.done, self._outputs

    async def connect(self, kernel: Kernel, timeout: float) -> None:
        """Wait until the kernel answers on all its channels."""
        self._kernel = kernel
        try:
            self.nb.metadata["language_info"] = await asyncio.wait_for(self._connect(), timeout)
        except asyncio.TimeoutError:
            raise StepFailed(f"The kernel did not answer within {timeout:g} s.") from None

    async def execute_cells(self, progress: Callable[[int, int], None]) -> None:
        """Execute them all, or up to one that raises or asks to end.

        A cell whose outputs have an error failed, too, even where the kernel calls it a
        success (`%run`, `%%capture`, `run_cell`). The cells after it are executed all the
        same, as they are in JupyterLab and papermill, and then the notebook has failed.
        """
        try:
            for index, cell in enumerate(self.nb.cells):
                if index in self._numbers:
                    self.number = self._numbers[index]
                    if await self._execute(cell, index):
                        break
                    self.done = self.number or self.done
                    self.record.read_values()
                    progress(self.done, self.total)
                else:
                    cell.metadata.papermill["status"] = "completed"
        finally:
            self.set_widgets_metadata()
        self._check_outputs()

    async def evaluate(self, expressions: dict[str, str]) -> dict[str, Any]:
        """Values of Python expressions in the kernel; what fails or is no text is left out."""
        message = self.client.execute("", silent=True, user_expressions=expressions)
        return _evaluated(await self._reply(message))

    async def shut_down(self) -> None:
        """Let the kernel end by itself, with its exit handlers; then make sure of it.

        It has as much time as Jupyter, and so papermill, gives it before it is terminated.
        """
        gone = self._kernel.gone
        if self._connection is not None and not gone.done():
            self._connection.expect(self.client.shutdown())
            await asyncio.wait({gone}, timeout=SHUTDOWN / 2)
            if not gone.done():
                self._kernel.terminate()
                await asyncio.wait({gone}, timeout=SHUTDOWN / 2)

    def close(self) -> None:
        if self._connection is not None:
            self._connection.close()
            self.kc = None

    def settle(self, *, final: bool = True) -> None:
        """Put what was printed so far into the notebook, and tell about it."""
        if self._stream_output is not None:
            text = "".join(self._stream)
            if "\r" in text:
                text = "\n".join(map(_as_shown, text.split("\n")))
            self._stream = [text]
            self._stream_output.text = text
        self._narrator.flush(final=final)

    async def _connect(self) -> dict[str, Any]:
        # ZeroMQ tries again only after a while when it connects too early.
        connection, ended = self._kernel.connection, self._kernel.ended
        if connection["transport"] == "ipc":
            last = Path(f"{connection['ip']}-{connection['hb_port']}")
            while not (last.exists() or ended.done()):
                await asyncio.sleep(0.005)
        self._connection = KernelConnection(connection, self._on_broadcast)
        self.kc = self.client = self._connection.client
        return await self._greet()

    async def _greet(self) -> dict[str, Any]:
        """Ask what language it speaks until there is an answer and its broadcast is heard too.

        A subscription takes effect only some time after it is made, and what is sent
        before is gone. A kernel that says so much by itself is not asked.
        """
        told = await self._kernel.introduction()
        if told and told["welcomes"] and await self._is_heard():
            return dict(told["language_info"])
        while True:
            reply = await self._reply(self.client.kernel_info())
            if await self._is_heard():
                return dict(reply["content"].get("language_info") or {})

    async def _is_heard(self) -> bool:
        with contextlib.suppress(asyncio.TimeoutError):
            await asyncio.wait_for(self._heard.wait(), 0.1)
        return self._heard.is_set()

    async def _execute(self, cell: Any, index: int) -> bool:
        """True when the notebook asked to end here."""
        self.record.event("cell.start", cell=self.number, index=index, total=self.total)
        start = notebooks.mark_cell_start(cell)
        cell.metadata["execution"] = {}
        self.clear_before_next_output = False
        self._stream_output = None
        forgiving = notebooks.is_tagged(cell, "raises-exception")
        failed = True
        try:
            # The values of parameters come with the reply: nobody has to ask for them.
            asked = self._computed if notebooks.is_tagged(cell, "parameters") else {}
            message = self.client.execute(
                cell.source,
                store_history=True,
                user_expressions=asked,
                stop_on_error=not forgiving,
            )
            self._cells[message] = (cell, index)
            self._idle[message] = asyncio.get_running_loop().create_future()
            reply = await self._reply(message)
            await self._guard(self._idle[message])
            content = reply["content"]
            if asked:
                self._computed = {}
                self._take_parameters(_evaluated(reply))
            cell["execution_count"] = content.get("execution_count", self.number)
            if content["status"] == "error":
                if _is_orderly_exit(content):
                    failed = False
                    return True
                self._tell_error(index, content)
                if not forgiving:
                    raise StepFailed(*self._explain(content, self.number))
            failed = False
            if content["status"] != "error" and (error := _error_in(cell)):
                self._tell_error(index, error)
                failed = not forgiving
            return any(p.get("source") == "ask_exit" for p in content.get("payload") or ())
        finally:
            self.settle()
            seconds = notebooks.mark_cell_end(cell, start, failed)
            if not failed:
                self.record.event("cell.end", index=index, seconds=seconds)

    def _check_outputs(self) -> None:
        """Fail for the last cell that has an error, which is the one papermill names."""
        for index in sorted(self._numbers, reverse=True):
            cell = self.nb.cells[index]
            if notebooks.is_tagged(cell, "raises-exception"):
                continue
            if error := _error_in(cell):
                raise StepFailed(*self._explain(error, self._numbers[index]))

    def _take_parameters(self, found: dict[str, Any]) -> None:
        for name, text in found.items():
            with contextlib.suppress(TypeError, ValueError):
                if len(text) <= LARGEST_VALUE:
                    self.record.parameters[name] = self.record.mask.tree(loads(text))

    def _tell_error(self, index: int, content: Mapping[str, Any]) -> None:
        traceback = plain("\n".join(content.get("traceback") or ()))
        self._narrator.flush()
        self.record.event(
            "cell.error",
            index=index,
            name=content.get("ename", "Error"),
            value=content.get("evalue", ""),
            traceback=traceback,
        )

    def _explain(self, content: Mapping[str, Any], number: int) -> tuple[str, dict[str, Any]]:
        name, value = content.get("ename", "Error"), plain(str(content.get("evalue", "")))
        said = value.strip().partition("\n")[0]
        what = f"{name}: {said[:500]}" if said else name
        reason = f"Cell {number} raised {what}" if number else f"The parameters raised {what}"
        traceback = plain("\n".join(content.get("traceback") or ()))
        return self.record.mask(reason), {
            "cell": number,
            "name": name,
            "value": self.record.mask(value),
            "traceback": self.record.mask(traceback),
        }

    async def _reply(self, message: str) -> Message:
        assert self._connection is not None
        reply: Message = await self._guard(self._connection.expect(message))
        return reply

    def _on_broadcast(self, message: Message) -> None:
        """Take what the kernel says to all, also what belongs to a cell that has ended."""
        self._heard.set()
        parent = message["parent_header"].get("msg_id")
        if parent in self._cells:
            try:
                self.process_message(message, *self._cells[parent])
            except CellExecutionComplete:
                if parent in self._idle and not self._idle[parent].done():
                    self._idle[parent].set_result(None)

    async def _guard(self, waiting: asyncio.Future[T]) -> T:
        """Wait for something of the kernel, which may end meanwhile."""
        assert self._connection is not None
        ended, error = self._kernel.ended, self._connection.error
        awaited: set[asyncio.Future[Any]] = {waiting, ended, error}
        await asyncio.wait(awaited, return_when=asyncio.FIRST_COMPLETED)
        if not waiting.done() and ended.done():
            # What it said last may still be on its way.
            await asyncio.wait({waiting}, timeout=0.2)
        if waiting.done():
            return waiting.result()
        if error.done():
            error.result()
        where = f" in cell {self.number}" if self.number else ""
        end = explain_end(ended.result(), self._memory)
        raise StepFailed(
            f"The kernel {end}{where}.",
            {"cell": self.number, "name": "DeadKernel", "value": f"The kernel {end}."},
        )

    def process_message(self, msg: dict[str, Any], cell: Any, cell_index: int) -> Any:
        if msg["msg_type"] in OUTPUT_MESSAGES:
            self._outputs += 1
            self._tell_output(msg, cell_index)
            if msg["msg_type"] == "error" and not _error_in(cell):
                return super().process_message(msg, cell, cell_index)  # however much was printed
            room = self._output_limit - self._kept.get(cell_index, 0)
            if room < 0:
                return None
            self._kept[cell_index] = self._output_limit - room + _weight(msg["content"])
            if self._kept[cell_index] > self._output_limit:
                if msg["msg_type"] == "stream":
                    msg["content"]["text"] = msg["content"]["text"][:room]
                    super().process_message(msg, cell, cell_index)
                self._note_limit(cell)
                return None
        elif msg["msg_type"] == "clear_output":
            self.settle()
            self._stream_output = None
            self._kept.pop(cell_index, None)
        return super().process_message(msg, cell, cell_index)

    def output(self, outs: list[Any], msg: Any, display_id: str | None, cell_index: int) -> Any:
        """Join what is printed in many pieces, instead of an output for each."""
        if self.output_hook_stack[msg["parent_header"].get("msg_id")]:
            return super().output(outs, msg, display_id, cell_index)
        if self.clear_before_next_output:
            outs[:] = []
            self.clear_display_id_mapping(cell_index)
            self.clear_before_next_output = False
            self._stream_output = None
        content = msg["content"]
        last = outs[-1] if outs else None
        joins = msg["msg_type"] == "stream" and last is not None and last is self._stream_output
        if joins and self._stream_output.name == content["name"]:
            self._stream.append(content["text"])
            return last
        self.settle(final=False)
        out = _output(msg)
        is_stream = out.output_type == "stream"
        self._stream_output, self._stream = (out, [out.text]) if is_stream else (None, [])
        if display_id:
            self._display_id_map.setdefault(display_id, {}).setdefault(cell_index, []).append(
                len(outs)
            )
        outs.append(out)
        return out

    def _note_limit(self, cell: Any) -> None:
        self.settle()
        self._stream_output = None
        most = size_text(self._output_limit)
        note = f"[The output of this cell ends here: it is larger than {most}.]"
        content = {"name": "stderr", "text": f"\n{note}\n"}
        cell.outputs.append(_output({"msg_type": "stream", "content": content}))

    def _tell_output(self, msg: dict[str, Any], index: int) -> None:
        kind, content = msg["msg_type"], msg["content"]
        if kind == "stream":
            self.record.log(content["text"], content["name"])
            self._narrator.say(index, content["name"], content["text"])
        elif kind == "error":
            self.record.log(plain("\n".join(content["traceback"])) + "\n", "stderr")
        else:
            data = content.get("data") or {}
            text = data.get("text/plain") or ", ".join(data)
            name = "result" if kind == "execute_result" else "display"
            self._narrator.say(index, name, str(text) + "\n")


class _Narrator:
    """Joins and shortens output for the events, which are for watching, not for keeping."""

    def __init__(self, record: StepRecord) -> None:
        self._record = record
        self._pending: tuple[int, str] | None = None
        self._parts: list[str] = []
        self._count: dict[int, int] = {}
        self._flushed = 0.0

    def say(self, index: int, kind: str, text: str) -> None:
        if self._pending not in (None, (index, kind)):
            self.flush()
        self._pending = (index, kind)
        self._parts.append(text)
        if len(self._parts) > 100:
            self._parts = [_shorten(self._record.mask("".join(self._parts)))]
        if time.monotonic() - self._flushed > 0.2:
            self.flush(final=False)

    def flush(self, *, final: bool = True) -> None:
        """Tell what is pending; unless `final`, not what may be the beginning of a secret."""
        if self._pending is None:
            return
        index, kind = self._pending
        mask = self._record.mask
        text = mask("".join(self._parts))
        keep = len(text) - (0 if final else mask.unfinished(text))
        self._parts = [text[keep:]] if text[keep:] else []
        self._pending = self._pending if self._parts else None
        self._flushed = time.monotonic()
        self._count[index] = self._count.get(index, 0) + 1
        if self._count[index] <= EVENTS_PER_CELL:
            self._record.event("cell.output", index=index, kind=kind, text=_shorten(text[:keep]))


def _output(msg: Message) -> Any:
    """A message as the notebook keeps it, without nbformat's costly look at each."""
    content = msg["content"]
    fields = {
        "stream": ("name", "text"),
        "error": ("ename", "evalue", "traceback"),
        "execute_result": ("data", "metadata", "execution_count"),
        "display_data": ("data", "metadata"),
    }[msg["msg_type"]]
    kept = {name: content.get(name, {} if name == "metadata" else None) for name in fields}
    return notebooks.quick_nbformat().from_dict({"output_type": msg["msg_type"], **kept})


def _error_in(cell: Any) -> Mapping[str, Any] | None:
    """The first output of a cell that is an error."""
    errors = (output for output in cell.outputs if output.output_type == "error")
    return next((each for each in errors if not _is_orderly_exit(each)), None)


def _is_orderly_exit(error: Mapping[str, Any]) -> bool:
    return error.get("ename") == "SystemExit" and error.get("evalue") in ("", "0")


def _evaluated(reply: Message) -> dict[str, Any]:
    found = {}
    for name, result in (reply["content"].get("user_expressions") or {}).items():
        try:
            found[name] = ast.literal_eval(result["data"]["text/plain"])
        except (KeyError, TypeError, ValueError, SyntaxError):
            continue
    return found


def _as_shown(line: str) -> str:
    """What is left of a line after its last return to the beginning that something follows."""
    return line[line.rfind("\r", 0, len(line) - 1) + 1 :]


def plain(text: str) -> str:
    """Text without the escape sequences that colour it on a terminal."""
    return _ESCAPES.sub("", text)


def _executes(cell: Any) -> bool:
    return bool(
        cell.cell_type == "code"
        and cell.source.strip()
        and not notebooks.is_tagged(cell, "skip-execution")
    )


def _shorten(text: str) -> str:
    if len(text) <= EVENT_TEXT:
        return text
    return f"{text[: EVENT_TEXT // 2]}\n…\n{text[-EVENT_TEXT // 2 :]}"


def _weight(content: dict[str, Any]) -> int:
    if "text" in content:
        return len(content["text"])
    return sum(
        len(part) if isinstance(part, str) else len(json.dumps(part))
        for part in (content.get("data") or content).values()
    )
