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
    sys.exit("tinyattn needs Python 3.11 or later; this is Python {}.{} ({}).\n"
             "Get a newer one (python.org, `brew install python`, `apt install python3`, or `uv python install`) "
             "and start run.py with it.".format(sys.version_info[0], sys.version_info[1], sys.executable))

ROOT = pathlib.Path(__file__).resolve().parent
WINDOWS = os.name == "nt"
BASE_PYTHON = getattr(sys, "_base_executable", None) or sys.executable  # not the one of an environment to be deleted
STAMP = "made-by-run.py"  # in each environment: "unfinished", or what it was made from

Environment = collections.namedtuple("Environment", "folder lock optional")
ORDINARY = Environment(ROOT / ".venv", ROOT / "requirements.lock", None)
ALL = Environment(ROOT / ".venv-all", ROOT / "requirements-all.lock", ROOT / "requirements-torch.lock")
LOWEST = Environment(ROOT / ".venv-lowest", ROOT / "requirements-lowest.lock", None)
LINT = Environment(ROOT / ".venv-lint", ROOT / "requirements-lint.lock", None)

NO_VENV = ("This Python ({python}) can make no environment: it has neither ensurepip nor pip.\n"
           "On Debian or Ubuntu run:  sudo apt install python3-venv\n"
           "Elsewhere, or without root, install uv; run.py uses it when it is on the PATH.")
NO_INSTALL = ("Installing from {lock} did not work; the reason is above. Without a network nothing can be installed: "
              "check the connection (or pip's settings for your mirror), then run the same command again.")
NO_TORCH = ("PyTorch's CPU build could not be installed, so the tests that compare with it will be skipped and say so.\n"
            "To have it: let pip know an index that carries the CPU build, delete {folder} and run this again.")


class Stop(Exception):
    """What went wrong and what to do, in words."""


def main(arguments: list) -> int:
    """Run one command; the exit code is that of what was run."""
    command, rest = (arguments or ["help"])[0], arguments[1:]
    commands = {"demo": demo, "test": test, "lint": lint, "bench": bench, "lock": lock}
    if command in ("help", "-h", "--help"):
        print(__doc__)
        return 0
    if command not in commands:
        raise Stop("run.py knows no command {!r}. It knows: {}.".format(command, ", ".join(commands)))
    return commands[command](rest)


def demo(rest: list) -> int:
    return run([ready(ORDINARY), "-P", "-m", "tinyattn", "demo", *rest])


def test(rest: list) -> int:
    everything, lowest = "--all" in rest, "--lowest" in rest
    rest = [argument for argument in rest if argument not in ("--all", "--lowest")]
    python = ready(ALL if everything else LOWEST if lowest else ORDINARY)
    parallel = [] if rest else ["-n", "auto"]  # one process when something particular is asked for
    slow = ["--slow"] if everything else []
    os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")  # the processes share the cores
    return run([python, "-P", "-m", "pytest", *parallel, *slow, *rest], cwd=ROOT)


def lint(rest: list) -> int:
    python = ready(LINT)
    codes = []
    for name, *options in (["ruff", "check", *rest], ["mypy"], ["codespell_lib"]):
        print("--", name.replace("_lib", ""), flush=True)
        codes.append(run([python, "-P", "-m", name, *options], cwd=ROOT))
    print("lint: " + ("something to mend, see above" if any(codes) else "nothing to mend"))
    return max(codes)


def bench(rest: list) -> int:
    if not (ROOT / "benchmarks" / "__main__.py").is_file():
        raise Stop("There is no benchmarks folder beside run.py.")
    return run([ready(ORDINARY), "-P", "-m", "benchmarks", *rest])


def lock(rest: list) -> int:
    """Write the lock files from pyproject.toml, for every platform at once; needs uv."""
    uv = shutil.which("uv")
    if uv is None:
        raise Stop("The lock files are made by uv, which is not on the PATH: `pip install uv`.")
    wanted = [(ORDINARY, "test", []), (ALL, "all", []), (LINT, "lint", []),
              (LOWEST, "test", ["--resolution", "lowest-direct"])]
    return max(run([uv, "pip", "compile", "--quiet", "--universal", "--generate-hashes", "--python-version", "3.11",
                    "--custom-compile-command", "python3 run.py lock", "pyproject.toml", "--group", group,
                    "--output-file", environment.lock.name, *options, *rest], cwd=ROOT)
               for environment, group, options in wanted)


# ---------------------------------------------------------------------------------------- environments


def ready(environment: Environment) -> str:
    """Give the environment's interpreter, after making the environment where that is needed."""
    try:
        handle = open(str(environment.folder) + ".lock", "a")  # kept open, and so held, as long as run.py runs
    except OSError as error:
        raise Stop("run.py must be able to write into its own folder: {}".format(error)) from None
    ready.held.append(handle)
    name = environment.folder.name
    hold(handle, False, "Another run.py is making {}; waiting for it ...".format(name))
    if not finished(environment):
        hold(handle, True, "Another run.py is using or making {}; waiting for it ...".format(name))
        if not finished(environment):
            make(environment)
        hold(handle, False)
    return str(python_of(environment.folder))


ready.held = []


def hold(handle, alone: bool, waiting: str = "") -> None:
    """Lock a file, shared or alone; the system lets go of it when this process ends, however it ends."""
    while True:
        try:
            return lock_now(handle, alone)
        except (BlockingIOError, PermissionError):
            if waiting:
                print(waiting, flush=True)
            waiting = ""
            time.sleep(0.3)


def lock_now(handle, alone: bool) -> None:
    if not WINDOWS:
        import fcntl
        fcntl.flock(handle, (fcntl.LOCK_EX if alone else fcntl.LOCK_SH) | fcntl.LOCK_NB)
    elif alone:  # Windows knows no shared lock, and refuses by itself to delete what is in use
        import msvcrt
        handle.seek(0)
        msvcrt.locking(handle.fileno(), msvcrt.LK_NBLCK, 1)


def finished(environment: Environment) -> bool:
    stamp = environment.folder / STAMP
    return (python_of(environment.folder).exists() and stamp.is_file()
            and stamp.read_text(encoding="utf-8") == fingerprint(environment))


def fingerprint(environment: Environment) -> str:
    """What an environment is made from: lock files, pyproject.toml, Python and machine."""
    digest = hashlib.sha256()
    for path in (environment.lock, environment.optional, ROOT / "pyproject.toml"):
        digest.update(path.read_bytes() if path else b"")
    system = "{} {}.{} {} {}".format(platform.python_implementation(), *sys.version_info[:2], sys.platform,
                                     platform.machine())
    return "{} {}".format(digest.hexdigest(), system)


def python_of(folder: pathlib.Path) -> pathlib.Path:
    return folder / "Scripts" / "python.exe" if WINDOWS else folder / "bin" / "python"


def make(environment: Environment) -> None:
    """Make the environment; its stamp is written last, so that a half-made one is never taken for a finished one."""
    folder, started = environment.folder, time.monotonic()
    print("Making {} from {} (once; needs the network) ...".format(folder.name, environment.lock.name), flush=True)
    if not with_uv(environment):
        pip = with_pip(folder)
        if run([*pip, "--require-hashes", "-r", str(environment.lock)], building=True):
            raise Stop(NO_INSTALL.format(lock=environment.lock.name))
    if environment.optional:
        with_torch(environment)
    link = ("import os, sys, sysconfig; here = sysconfig.get_path('purelib'); "
            "open(os.path.join(here, 'tinyattn-checkout.pth'), 'w').write(os.path.relpath(sys.argv[1], here))")
    if run([str(python_of(folder)), "-c", link, str(ROOT)], building=True):
        raise Stop("The new environment {} does not start.".format(folder))
    part = folder / (STAMP + ".part")
    part.write_text(fingerprint(environment), encoding="utf-8")
    os.replace(part, folder / STAMP)
    print("{} is ready, after {:.0f} s.".format(folder.name, time.monotonic() - started), flush=True)


def empty(folder: pathlib.Path) -> None:
    """Leave an empty folder with a stamp that says it is unfinished; never delete what run.py did not make."""
    if folder.exists() and not (folder / STAMP).is_file() and any(folder.iterdir()):
        raise Stop("The folder {} is there, but run.py did not make it. Rename or delete it.".format(folder))
    if folder.exists():
        shutil.rmtree(folder)
    folder.mkdir()
    (folder / STAMP).write_text("unfinished", encoding="utf-8")


def with_uv(environment: Environment) -> bool:
    uv = shutil.which("uv")
    if uv is None:
        return False
    empty(environment.folder)
    python = str(python_of(environment.folder))
    steps = ([uv, "venv", "--quiet", "--allow-existing", "--python", BASE_PYTHON, str(environment.folder)],
             [uv, "pip", "install", "--quiet", "--python", python, "--require-hashes", "--only-binary", ":all:",
              "-r", str(environment.lock)])
    worked = all(run(step, building=True) == 0 for step in steps)
    if not worked:
        print("uv did not manage it; going on with venv and pip.", flush=True)
    return worked


def with_pip(folder: pathlib.Path) -> list:
    """Make a bare environment; give the start of the pip command that installs into it."""
    options = ["install", "--quiet", "--no-input", "--disable-pip-version-check", "--only-binary", ":all:"]
    own_pip = [str(python_of(folder)), "-m", "pip", *options]
    outer_pip = [BASE_PYTHON, "-m", "pip", "--python", str(python_of(folder)), *options]
    if new_venv(folder):
        return own_pip
    if run([BASE_PYTHON, "-m", "pip", "--version"], silent=True) == 0 and new_venv(folder, "--without-pip"):
        return outer_pip
    if may_use_apt():
        print("This Python lacks the module that makes environments; you are root, so this is run now:\n"
              "    apt-get update && apt-get install --yes --no-install-recommends python3-venv", flush=True)
        if (run(["apt-get", "update", "-qq"]) == 0
                and run(["apt-get", "install", "-qq", "--yes", "--no-install-recommends", "python3-venv"]) == 0
                and new_venv(folder)):
            return own_pip
    raise Stop(NO_VENV.format(python=BASE_PYTHON))


def new_venv(folder: pathlib.Path, *options: str) -> bool:
    empty(folder)
    return run([BASE_PYTHON, "-m", "venv", *options, str(folder)], building=True, silent=True) == 0


def may_use_apt() -> bool:
    return (not WINDOWS and os.geteuid() == 0 and shutil.which("apt-get") is not None
            and os.path.realpath(BASE_PYTHON).startswith("/usr/bin/"))  # another Python gains nothing from it


def with_torch(environment: Environment) -> None:
    """PyTorch is a referee in tests, and may be absent.  pip, since that is where people name extra indexes."""
    python = str(python_of(environment.folder))
    own_pip = run([python, "-m", "pip", "--version"], silent=True) == 0
    pip = [python, "-m", "pip"] if own_pip else [BASE_PYTHON, "-m", "pip", "--python", python]
    if run([*pip, "install", "--quiet", "--no-input", "--disable-pip-version-check", "--only-binary", ":all:",
            "--no-deps", "--require-hashes", "-r", str(environment.optional)], building=True):
        print(NO_TORCH.format(folder=environment.folder.name), flush=True)


# ---------------------------------------------------------------------------------------- programs


def run(command: list, cwd=None, building: bool = False, silent: bool = False) -> int:
    """Run a program to its end and give its exit code; on Ctrl-C the program decides what to do."""
    drop = {"PYTHONHOME", "PYTHONPATH", "__PYVENV_LAUNCHER__"}
    if building:  # settings that would send packages elsewhere
        drop |= {"PIP_USER", "PIP_TARGET", "PIP_PREFIX", "PIP_ROOT", "PIP_NO_BINARY", "PIP_REQUIRE_VIRTUALENV"}
    environment = {name: value for name, value in os.environ.items() if name not in drop}
    output = subprocess.DEVNULL if silent else None
    process = subprocess.Popen(command, cwd=cwd, env=environment, stdout=output, stderr=output)
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
    for stream in (sys.stdout, sys.stderr):
        stream.reconfigure(errors="backslashreplace")
    try:
        sys.exit(main(sys.argv[1:]))
    except (Stop, OSError) as error:
        sys.exit("run.py: {}".format(error))
    except KeyboardInterrupt:
        sys.exit(130)
