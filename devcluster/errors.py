"""The one exception that users are meant to see."""


class DevclusterError(Exception):
    """Something the user can act on; the command line prints its message as a single line."""
