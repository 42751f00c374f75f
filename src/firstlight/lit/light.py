"""Import of torchmetrics without packages that only few of its metrics, and its figures, use.

Lightning imports torchmetrics, which imports scipy.signal, matplotlib and transformers if they are installed. They take
two thirds of the time that Lightning takes without them. After this import, BERTScore, `plot` of a metric and others
act as if these packages were not installed. So only commands import this module, where no class of the user can ask for
them.
"""

from importlib.metadata import PackageNotFoundError

from lightning_utilities.core import imports

HIDDEN = ("matplotlib", "scipy", "transformers")
_version, _available = imports._version, imports.package_available


def _version_if_shown(name: str) -> str:
    if name in HIDDEN:
        raise PackageNotFoundError(name)
    return _version(name)


def _is_shown(name: str) -> bool:
    return name not in HIDDEN and _available(name)


try:
    vars(imports).update(_version=_version_if_shown, package_available=_is_shown)  # with which it finds packages
    import torchmetrics  # noqa: F401
finally:
    vars(imports).update(_version=_version, package_available=_available)
    imports.module_available.cache_clear()
