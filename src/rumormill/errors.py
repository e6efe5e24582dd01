"""What can go wrong, named after whose mistake it is."""


class RumormillError(Exception):
    """Base of every error this package raises on purpose."""

    def __init__(self, message: str = "") -> None:
        super().__init__(message)


class InputError(RumormillError, ValueError):
    """The caller gave something that is not allowed. The text says what was given and what is."""


class ArgumentError(InputError, TypeError):
    """An argument is misspelt, missing or too many."""


class DataError(RumormillError):
    """A file or table is damaged or not in the form it claims."""


class ContractError(RumormillError):
    """A user's own class (policy, estimator, channel) broke the contract it was given."""


class SolverError(RumormillError):
    """A solver returned an answer that its verification rejects, or is not installed."""


class SlowEngineNotice(UserWarning):
    """This runs, but slower: on the reference engine, or on kernels without vector loops or disk cache."""

    def __init__(self, message: str = "") -> None:
        super().__init__(message)


class SimplifiedGraphNotice(UserWarning):
    """A graph has directions, weights or parallel links: the network is undirected, simple and unweighted."""

    def __init__(self, message: str = "") -> None:
        super().__init__(message)
