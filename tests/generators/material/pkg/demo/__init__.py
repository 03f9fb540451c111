"""Demo package."""


class Client:
    """A client for the demo service.

    Args:
        timeout: Seconds to wait before giving up.
    """

    def __init__(self, timeout: float = 5.0) -> None:
        self.timeout = timeout

    def connect(self, host: str, port: int = 443) -> bool:
        """Open a connection.

        Args:
            host: Host name.
            port: TCP port.

        Returns:
            True when connected.

        Raises:
            OSError: When the host is unreachable.
        """
        return True


def helper(x: int) -> int:
    """Double a number."""
    return x * 2
