"""The one kind of error that a user can fix, and words for all kinds."""


class ConvectError(Exception):
    """Bad input: one sentence that says what is wrong, and a hint that says what to do.

    Routes answer it with `status`, the CLI prints it and exits with 2. Anything
    that is not a ConvectError is a bug of ours and propagates.
    """

    status = 400

    def __init__(self, sentence: str, *, code: str = "malformed", hint: str | None = None) -> None:
        super().__init__(sentence)
        self.sentence = sentence
        self.code = code
        self.hint = hint

    def to_json(self) -> dict[str, str | None]:
        return {"code": self.code, "message": self.sentence, "hint": self.hint}


class Missing(ConvectError):
    """What was asked for is not there."""

    status = 404

    def __init__(self, sentence: str, *, code: str = "missing", hint: str | None = None) -> None:
        super().__init__(sentence, code=code, hint=hint)


class Conflict(ConvectError):
    """It is there, but not in a state that allows this."""

    status = 409

    def __init__(self, sentence: str, *, code: str = "conflict", hint: str | None = None) -> None:
        super().__init__(sentence, code=code, hint=hint)


class Refused(ConvectError):
    """Well formed, but this pipeline or this runtime cannot do it."""

    status = 422

    def __init__(self, sentence: str, *, code: str = "refused", hint: str | None = None) -> None:
        super().__init__(sentence, code=code, hint=hint)


def words_of(error: BaseException) -> str:
    """What went wrong, as the end of a sentence: without numbers, paths and a full stop."""
    if isinstance(error, ConvectError):
        return error.sentence.rstrip(".")
    if isinstance(error, OSError):
        return error.strerror.lower() if error.strerror else str(error)
    return f"{type(error).__name__}: {error}".rstrip(": ")
