"""A worker imports the script that started it.

One that starts a run when it is imported would do so again there.
"""

import os
from multiprocessing import current_process

NO_GUARD = 86
"""Exit code of a worker whose script has no guard."""

NO_GUARD_ADVICE = (
    "the script that started the run starts it again when it is imported, and worker processes "
    "import it; put the call "
    'below `if __name__ == "__main__":`, or use engine="serial"'
)


def leave_if_imported_by_a_worker() -> None:
    """Called where a run begins: inside a worker that is still starting, end it quietly.

    The parent says why.
    """
    # multiprocessing's own mark for that moment
    if getattr(current_process(), "_inheriting", False):
        os._exit(NO_GUARD)
