#!/usr/bin/env python3
"""One file that sets up what is needed and runs it.  Needs Python 3.11 or later and nothing else.

    python3 run.py demo [options]          attention on one sentence: numbers, gradients checked, pictures
    python3 run.py test [pytest options]   the tests, without the slow ones and without optional libraries
    python3 run.py test --all              all of them: slow ones, PyTorch, hypothesis, the built wheel
    python3 run.py test --lowest           the tests on the lowest NumPy and SymPy that are allowed
    python3 run.py lint [ruff options]     ruff, mypy --strict, codespell
    python3 run.py bench [options]         the benchmarks
    python3 run.py lock [--upgrade]        write the lock files again (needs uv)

Each environment is made once, from a lock file with hashes, into a folder beside this file: `.venv` for demo,
test and bench, `.venv-all`, `.venv-lowest` and `.venv-lint` for the others.  It is made again when its lock
file, pyproject.toml or the Python version changes.  Deleting the folder is always safe.
"""

import collections
import hashlib
import os
import pathlib
import platform
import shutil
import signal
import subprocess
import sys
import time

if sys.version_info < (3, 11):  # this file itself parses on older ones, so that they can be told
    sys.exit(f"tinyattn needs Python 3.11 or later; this is {platform.python_version()}, {sys.executable}\n"
             "Get a newer one (`brew install python`, `apt install python3`, `winget install python`, or\n"
             "`uv python install`) and start run.py with it.")

ROOT = pathlib.Path(__file__).resolve().parent
WINDOWS = os.name == "nt"
BASE_PYTHON = getattr(sys, "_base_executable", None) or sys.executable  # not that of an environment
STAMP = "made-by-run.py"  # in each environment: "unfinished", or what it was made from
SAFELY = ["--require-hashes", "--only-binary", ":all:", "-r"]  # what was locked; no code runs to install it

Environment = collections.namedtuple("Environment", "folder lock optional", defaults=[None])
ORDINARY = Environment(ROOT / ".venv", ROOT / "requirements.lock")
ALL = Environment(ROOT / ".venv-all", ROOT / "requirements-all.lock", ROOT / "requirements-torch.lock")
LOWEST = Environment(ROOT / ".venv-lowest", ROOT / "requirements-lowest.lock")
LINT = Environment(ROOT / ".venv-lint", ROOT / "requirements-lint.lock")

NO_VENV = f"""This Python ({BASE_PYTHON}) can make no environment: it has neither ensurepip nor pip.
On Debian or Ubuntu run:  sudo apt install python3-venv
Elsewhere, or without root, install uv: run.py uses it when it is on the PATH."""
NO_INSTALL = """Installing from {} did not work; the reason is above. It needs the network: check the
connection (or pip's settings for your mirror), then run the same command again."""
NO_TORCH = """PyTorch's CPU build could not be installed: tests that compare with it are skipped and say so.
To have it, let pip know an index that carries the CPU build, delete {} and run this again."""

# Lets an environment find the packages beside run.py with nothing built.  The path is relative, and so holds
# no letter that the system's encoding could lack.
LINK = """import os, sys, sysconfig
packages = sysconfig.get_path("purelib")
with open(os.path.join(packages, "tinyattn.pth"), "w") as link:
    link.write(os.path.relpath(sys.argv[1], packages))"""


class Stop(Exception):
    """What went wrong and what to do, in words."""


# ---------------------------------------------------------------------------------------- commands


def main(arguments: list) -> int:
    """Run one command; the exit code is that of what was run."""
    commands = {"demo": demo, "test": test, "lint": lint, "bench": bench, "lock": lock}
    command, rest = (arguments or ["help"])[0], arguments[1:]
    if command in ("help", "-h", "--help"):
        print(__doc__)
        return 0
    if command not in commands:
        raise Stop(f"there is no command {command!r}; there are {', '.join(commands)}.")
    return commands[command](rest)


def demo(rest: list) -> int:
    return run([ready(ORDINARY), "-P", "-m", "tinyattn", "demo", *rest])


def test(rest: list) -> int:
    environment = ALL if "--all" in rest else LOWEST if "--lowest" in rest else ORDINARY
    options = [option for option in rest if option not in ("--all", "--lowest")]
    parallel = [] if options else ["-n", "auto", "--maxprocesses", "8"]  # else one process
    slow = ["--slow"] if environment is ALL else []
    os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")  # the processes share the cores
    return run([ready(environment), "-P", "-m", "pytest", *parallel, *slow, *options], cwd=ROOT)


def lint(rest: list) -> int:
    python, codes = ready(LINT), []
    for tool, *options in ["ruff", "check", *rest], ["mypy"], ["codespell_lib"]:
        print(f"-- {tool}", flush=True)
        codes.append(run([python, "-P", "-m", tool, *options], cwd=ROOT))
    print("lint: something to mend, see above" if any(codes) else "lint: nothing to mend")
    return max(codes)


def bench(rest: list) -> int:
    if not (ROOT / "benchmarks" / "__main__.py").is_file():
        raise Stop("there is no benchmarks folder beside run.py.")
    return run([ready(ORDINARY), "-P", "-m", "benchmarks", *rest])


def lock(rest: list) -> int:
    """Write the lock files from pyproject.toml, for every platform at once."""
    uv = shutil.which("uv")
    if uv is None:
        raise Stop("the lock files are made by uv, which is not on the PATH: `pip install uv`.")
    resolve = [uv, "pip", "compile", "--quiet", "--universal", "--generate-hashes", "--no-annotate",
               "--python-version", "3.11", "--custom-compile-command", "python3 run.py lock", *rest]
    lowest = ["--resolution", "lowest-direct"]
    groups = (ORDINARY, "test", []), (ALL, "all", []), (LINT, "lint", []), (LOWEST, "test", lowest)
    return max(run([*resolve, *options, "pyproject.toml", "--group", group, "-o", lock_file.name], cwd=ROOT)
               for (_, lock_file, _), group, options in groups)


# ---------------------------------------------------------------------------------------- environments


def ready(environment: Environment) -> str:
    """Give the environment's interpreter, after making the environment where that is needed."""
    name = environment.folder.name
    guard = open(ROOT / f"{name}.lock", "a")  # open, and so held, as long as run.py or what it started runs
    guards.append(guard)
    hold(guard, False, f"Another run.py is making {name}; waiting for it ...")
    if not finished(environment):
        hold(guard, True, f"Another run.py is using or making {name}; waiting for it ...")
        if not finished(environment):
            make(environment)
        hold(guard, False)
    return str(python_of(environment.folder))


guards: list = []


def hold(guard, alone: bool, waiting: str = "") -> None:
    """Lock a file, shared or alone; the system lets go of it when this process ends, however it ends."""
    while True:
        try:
            return hold_now(guard, alone)
        except (BlockingIOError, PermissionError):
            if waiting:
                print(waiting, flush=True)
            waiting = ""
            time.sleep(0.3)


def hold_now(guard, alone: bool) -> None:
    if not WINDOWS:
        import fcntl
        fcntl.flock(guard, (fcntl.LOCK_EX if alone else fcntl.LOCK_SH) | fcntl.LOCK_NB)
    elif alone:  # Windows knows no shared lock, and refuses by itself to delete what is in use
        import msvcrt
        guard.seek(0)
        msvcrt.locking(guard.fileno(), msvcrt.LK_NBLCK, 1)


def finished(environment: Environment) -> bool:
    stamp = environment.folder / STAMP
    return (python_of(environment.folder).exists() and stamp.is_file()
            and stamp.read_text(encoding="utf-8") == fingerprint(environment))


def fingerprint(environment: Environment) -> str:
    """What an environment is made from: lock files, pyproject.toml, Python and machine."""
    digest = hashlib.sha256()
    for path in environment.lock, environment.optional, ROOT / "pyproject.toml":
        digest.update(path.read_bytes() if path else b"")
    return f"{digest.hexdigest()} {sys.implementation.cache_tag} {sys.platform} {platform.machine()}"


def python_of(folder: pathlib.Path) -> pathlib.Path:
    return folder / "Scripts" / "python.exe" if WINDOWS else folder / "bin" / "python"


def make(environment: Environment) -> None:
    """Make an environment; the stamp comes last, so that a half-made one is never taken for finished."""
    folder, started = environment.folder, time.monotonic()
    print(f"Making {folder.name} from {environment.lock.name} (once, from the network) ...", flush=True)
    if not with_uv(environment) and run([*with_pip(folder), *SAFELY, str(environment.lock)], building=True):
        raise Stop(NO_INSTALL.format(environment.lock.name))
    if environment.optional:  # by pip, which is where people name the index of the CPU build
        if run([*pip_of(folder), "--no-deps", *SAFELY, str(environment.optional)], building=True):
            print(NO_TORCH.format(folder.name), flush=True)
    if run([str(python_of(folder)), "-c", LINK, str(ROOT)], building=True):
        raise Stop(f"the new environment {folder} does not start.")
    part = folder / f"{STAMP}.part"
    part.write_text(fingerprint(environment), encoding="utf-8")
    os.replace(part, folder / STAMP)
    print(f"{folder.name} is ready, after {time.monotonic() - started:.0f} s.", flush=True)


def empty(folder: pathlib.Path) -> None:
    """Leave a folder with nothing but an unfinished stamp; never delete what run.py did not make."""
    if folder.exists():
        if not (folder / STAMP).is_file() and any(folder.iterdir()):
            raise Stop(f"the folder {folder} is there, but run.py did not make it. Rename or delete it.")
        shutil.rmtree(folder)
    folder.mkdir()
    (folder / STAMP).write_text("unfinished", encoding="utf-8")


def with_uv(environment: Environment) -> bool:
    uv = shutil.which("uv")
    if uv is None:
        return False
    empty(environment.folder)
    python = str(python_of(environment.folder))
    create = [uv, "venv", "--quiet", "--allow-existing", "--python", BASE_PYTHON, str(environment.folder)]
    fill = [uv, "pip", "install", "--quiet", "--python", python, *SAFELY, str(environment.lock)]
    worked = not (run(create, building=True) or run(fill, building=True))
    if not worked:
        print("uv did not manage it; going on with venv and pip.", flush=True)
    return worked


def with_pip(folder: pathlib.Path) -> list:
    """Make a bare environment; give the command that installs into it."""
    if new_venv(folder) or (has_pip(BASE_PYTHON) and new_venv(folder, "--without-pip")):
        return pip_of(folder)
    if may_use_apt():
        update = "apt-get update -qq"
        install = "apt-get install -qq --yes --no-install-recommends python3-venv"
        print("This Python lacks the module that makes environments. You are root, so run.py now runs\n"
              f"    {update}\n    {install}", flush=True)
        if not (run(update.split()) or run(install.split())) and new_venv(folder):
            return pip_of(folder)
    raise Stop(NO_VENV)


def new_venv(folder: pathlib.Path, *options: str) -> bool:
    empty(folder)
    return run([BASE_PYTHON, "-m", "venv", *options, str(folder)], building=True, silent=True) == 0


def has_pip(python: str) -> bool:
    return run([python, "-m", "pip", "--version"], silent=True) == 0


def pip_of(folder: pathlib.Path) -> list:
    """The environment's own pip, else the one outside, told to work for the environment."""
    python = str(python_of(folder))
    start = [python, "-m", "pip"] if has_pip(python) else [BASE_PYTHON, "-m", "pip", "--python", python]
    return [*start, "install", "-qq", "--no-input", "--disable-pip-version-check"]


def may_use_apt() -> bool:
    return (not WINDOWS and os.geteuid() == 0 and shutil.which("apt-get") is not None
            and os.path.realpath(BASE_PYTHON).startswith("/usr/bin/"))  # another Python gains nothing from it


# ---------------------------------------------------------------------------------------- programs


def run(command: list, cwd=None, building: bool = False, silent: bool = False) -> int:
    """Run a program to its end and give its exit code; on Ctrl-C the program decides what to do."""
    drop = {"PYTHONHOME", "PYTHONPATH", "__PYVENV_LAUNCHER__"}
    if building:  # settings that would send packages elsewhere
        drop |= {"PIP_USER", "PIP_TARGET", "PIP_PREFIX", "PIP_ROOT", "PIP_REQUIRE_VIRTUALENV"}
    environment = {name: value for name, value in os.environ.items() if name not in drop}
    output = subprocess.DEVNULL if silent else None
    process = subprocess.Popen(command, cwd=cwd, env=environment, stdout=output, stderr=output,
                               pass_fds=() if WINDOWS else [guard.fileno() for guard in guards])
    signal.signal(signal.SIGTERM, lambda *_: process.terminate())
    stopped = False
    while process.poll() is None:
        try:
            process.wait()
        except KeyboardInterrupt:  # the terminal has told the program as well
            stopped = True
    if stopped and building:
        raise KeyboardInterrupt
    return process.returncode if process.returncode >= 0 else 128 - process.returncode


if __name__ == "__main__":
    for stream in sys.stdout, sys.stderr:
        stream.reconfigure(errors="backslashreplace")
    try:
        sys.exit(main(sys.argv[1:]))
    except (Stop, OSError) as error:
        sys.exit(f"run.py: {error}")
    except KeyboardInterrupt:
        sys.exit(130)
