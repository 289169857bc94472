"""Runs the devcluster's commands for a second cluster, beside the one that may be running on this machine.

Only control groups are shared with that one, so this one's have another name. It needs no images but those it cannot
start without.
"""

import sys

from devcluster import __main__, cgroups, images

NAME = "tftrainer-second"


def main() -> int:
    cgroups.ROOT, cgroups.SYSTEM = NAME, f"{NAME}/system"
    images.IMAGES = tuple(image for image in images.IMAGES if image.name in ("pause", "coredns"))
    return __main__.main()


if __name__ == "__main__":
    sys.exit(main())
