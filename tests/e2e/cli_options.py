#!/usr/bin/env python3
"""The command line of mcsend and mcrecv: what is taken, what is refused and how, and where values come from.

Nothing is transferred here; runs that get past their options end quickly, because nobody is there.
"""
# timeout: 120
import fcntl
import json
import os
import pathlib
import pty
import re
import signal
import struct
import subprocess
import sys
import tempfile
import termios
import time
import unittest

BIN = os.environ.get("DDF_BIN")
ROOT = pathlib.Path(__file__).resolve().parents[2]
GROUP = "239.77.7.9:17709"
QUICK = {"mcsend": ["--group", GROUP, "--wait", "0s", "--state", "none"], "mcrecv": ["--group", GROUP, "--timeout", "20ms"]}

if not BIN or not all(os.access(os.path.join(BIN, program), os.X_OK) for program in QUICK):
    print("SKIP: DDF_BIN names no folder with mcsend and mcrecv")
    sys.exit(77)


def environment(**more):
    clean = {key: value for key, value in os.environ.items() if not key.startswith("DDF_")}
    return {**clean, "XDG_STATE_HOME": os.path.join(os.getcwd(), "state"), **more}


def run(program, *arguments, stdout=subprocess.PIPE, **variables):
    return subprocess.run([os.path.join(BIN, program), *arguments], stdin=subprocess.DEVNULL, stdout=stdout,
                          stderr=subprocess.PIPE, env=environment(**variables), timeout=30)


def start(program, *arguments, **variables):
    """The "start" event of a run that is cut short."""
    done = run(program, "--json", *QUICK[program], *arguments, **variables)
    assert done.returncode in (0, 1, 3), (done.returncode, done.stderr)
    lines = [json.loads(line) for line in done.stdout.splitlines()]
    assert lines[0]["event"] == "start" and lines[-1]["event"] == "summary", done.stdout
    return lines[0]


def long_options(text):
    return set(re.findall(r"^ +(?:-\w, )?(--[a-z-]+)", text, re.MULTILINE))


class CommandLine(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.addCleanup(os.chdir, os.getcwd())
        os.chdir(folder.name)
        pathlib.Path("file").write_text("content\n")
        pathlib.Path("folder").mkdir()
        pathlib.Path("folder/file").write_text("other\n")

    def refused(self, program, *arguments, says, **variables):
        done = run(program, *arguments, **variables)
        self.assertEqual(done.returncode, 2, (arguments, done.stderr))
        self.assertEqual(done.stdout, b"", "nothing goes to standard output")
        message = done.stderr.decode()
        self.assertTrue(message.startswith(program + ": "), message)
        for part in says:
            self.assertIn(part, message)

    def test_an_error_names_the_option_what_was_read_and_what_is_allowed(self):
        bad = [
            ("mcsend", "--rate", ["10X", "-1", "0", "1e9", "2T", "999", "99999999999999999999G", "10 G B"], ["1 kbit/s", "1.6 Tbit/s", "auto"]),
            ("mcsend", "--wait", ["-1s", "1y", "soon", "999999999999h"], ["365d", "30s"]),
            ("mcsend", "--deadline", ["0s", "-5m", "x"], ["30s", "none"]),
            ("mcsend", "--linger", ["1 fortnight"], ["30s"]),
            ("mcsend", "--expect", ["-1", "x", "1.5", "4294967296"], ["whole number"]),
            ("mcsend", "--quorum", ["0", "most", "-1"], ["whole number", "all"]),
            ("mcsend", "--commit", ["all", "1"], ["each", "group"]),
            ("mcsend", "--base", ["policy", "policy@", "policy@x", "policy@0", "@3"], []),
            ("mcsend", "--delta", ["small"], ["auto or fast"]),
            ("mcsend", "--keep", ["-1", "many", "1001"], ["whole number"]),
            ("mcsend", "--settle", ["0s", "-1s", "soon"], ["30s"]),
            ("mcsend", "--consistency", ["strict"], ["versioned, immutable or append-only"]),
            ("mcrecv", "--keep", ["-1", "all"], ["whole number"]),
            ("mcsend", "--object-version", ["0", "-1", "v2", "18446744073709551616"], ["whole number", "next"]),
            ("mcrecv", "--timeout", ["0s", "-1s", "never"], ["30s"]),
        ]
        for program in QUICK:
            bad += [
                (program, "--group", ["10.0.0.1:7700", "239.1.1.1:99999", "239.1.1.1:0", "example.org:7700", "[ff15::1", "::1", "300.1.1.1:7700"], []),
                (program, "--source", ["239.1.1.1", "0.0.0.0", "nobody"], ["address"]),
                (program, "--ttl", ["256", "-1", "x", "1.5"], ["0 to 255"]),
                (program, "--multicast", ["maybe", "TRY"], ["try, require or off"]),
                (program, "--repair", ["rdma"], ["auto, verbs, tcp, shm or udp"]),
                (program, "--transport", ["tcp"], ["udp or verbs"]),
                (program, "--device", ["^", "mlx5_0:x", "=^mlx5_0"], ["ibv_devices"]),
                (program, "--traffic-class", ["256", "-1", "x"], ["0 to 255"]),
                (program, "--service-level", ["16", "-1", "x"], ["0 to 15"]),
                (program, "--mtu", ["1279", "65536", "-1", "jumbo"], ["1280", "65535"]),
                (program, "--progress", ["yes"], ["auto, always or never"]),
            ]
        for program, option, values, allowed in bad:
            arguments = ["file"] if program == "mcsend" else []
            for value in values:
                with self.subTest(program=program, option=option, value=value):
                    self.refused(program, f"{option}={value}", *arguments, says=[f"{option}: ", value, *allowed])
                    if not value.startswith("-"):
                        self.refused(program, option, value, *arguments, says=[f"{option}: ", value, *allowed])

    def test_options_of_rdma_multicast_are_for_that_transport(self):
        for program in QUICK:
            arguments = ["file"] if program == "mcsend" else []
            self.refused(program, "--device", "mlx5_0", *arguments, says=["transport verbs"])
            self.refused(program, "--transport", "verbs", "--multicast", "off", *arguments, says=["multicast is off"])

    def test_rdma_multicast_without_a_device_says_what_is_missing(self):
        if os.path.isdir("/sys/class/infiniband") and os.listdir("/sys/class/infiniband"):
            self.skipTest("this host has an RDMA device")
        for program in QUICK:
            done = run(program, *QUICK[program], "--transport", "verbs", *(["file"] if program == "mcsend" else []))
            self.assertEqual(done.returncode, 1, done.stderr)
            self.assertRegex(done.stderr.decode(), "/sys/class/infiniband|libibverbs")

    def test_unknown_options_and_missing_values(self):
        self.refused("mcsend", "--no-such", "file", says=["--no-such", "no such option"])
        self.refused("mcsend", "-x", "file", says=["-x", "no such option"])
        self.refused("mcsend", "file", "--rate", says=["--rate", "needs a value"])
        self.refused("mcsend", "--rate=", "file", says=["--rate", "empty"])
        self.refused("mcsend", "--name=", "file", says=["--name", "empty"])
        self.refused("mcsend", says=["PATH", "missing"])
        self.refused("mcrecv", "--follow", "--once", says=["--follow", "--once"])
        self.refused("mcrecv", "", says=["NAME-PATTERN", "empty"])
        self.refused("mcrecv", "--state", "none", says=["--state", "resumed"])
        # Options of one program are none of the other.
        for option in ("--watch", "--base=auto", "--explain"):
            self.refused("mcrecv", option, says=[option.split("=")[0]])

    def test_what_watching_excludes(self):
        self.refused("mcsend", "--watch", "--dry-run", "file", says=["--watch", "--dry-run"])
        self.refused("mcsend", "--watch", "--object-version", "3", "file", says=["--watch", "--object-version"])
        self.refused("mcsend", "--watch", "--consistency", "immutable", "file", says=["--watch", "immutable"])

    def test_what_the_doctor_excludes(self):
        self.refused("mcsend", "--doctor", "file", says=["--doctor", "PATH", "'file'"])
        self.refused("mcrecv", "--doctor", "--", "-odd", says=["--doctor", "NAME-PATTERN", "'-odd'"])
        for program, options in (("mcsend", ("--watch", "--serve", "--dry-run", "--explain", "--name=x", "--rate=1G", "--expect=1")), ("mcrecv", ("--follow", "--exec=true", "--output=.", "--timeout=1s"))):
            for option in options:
                self.refused(program, "--doctor", option, says=["--doctor and " + option.split("=")[0]])
        self.refused("mcsend", "--doctor=false", says=["PATH", "missing"])
        self.refused("mcsend", "--doctor", "--mtu=1", says=["--mtu"])
        pathlib.Path("ddf.toml").write_text("doctor = true\n")
        self.refused("mcrecv", "--config", "ddf.toml", says=["ddf.toml:1: doctor", "cannot stand in a file"])

    def test_a_dry_run_without_receivers_has_no_plan(self):
        done = run("mcsend", "--json", *QUICK["mcsend"], "--dry-run", "file")
        self.assertEqual(done.returncode, 3, done.stderr)

    def test_names(self):
        self.refused("mcsend", "--name", "x", "file", "folder", says=["--name", "one PATH"])
        self.refused("mcsend", "file", "folder/file", says=["'file'", "'folder/file'", "--name"])
        self.refused("mcsend", "folder", "./folder//", says=["'folder'", "'./folder//'"])
        self.refused("mcsend", "/", says=["'/'", "--name"])
        self.refused("mcsend", "", says=["PATH"])
        for name in ("../x", "/x", "a//b", "a/./b", "x" * 256):
            self.refused("mcsend", "--name", name, "file", says=["--name", "name"])
        for name in ("-dash", "--group", "two words", "ünïcödé ☃", "[a,b]", "n" * 255):
            with self.subTest(name=name):
                pathlib.Path(name).write_text("x")
                self.assertEqual(start("mcsend", "file", "--", name)["arguments"], ["file", name])
                self.assertEqual(start("mcrecv", "--", name)["arguments"], [name])
        self.assertEqual(start("mcsend", "[a,b]", "file")["arguments"], ["[a,b]", "file"])
        name = "n" * 255
        self.assertEqual(start("mcsend", "--name", name, "file")["options"]["name"], name)

    def test_extreme_but_legal_values_are_taken(self):
        for rate in ("1kbit", "1000", "1.6T", "1600Gbit", "200GB/s", "auto"):
            self.assertEqual(start("mcsend", "--rate", rate, "file")["options"]["rate"], rate)
        for mtu in ("1280", "1500", "9000", "65535", "auto"):
            self.assertEqual(start("mcsend", "--mtu", mtu, "file")["options"]["mtu"], mtu)
        self.assertEqual(start("mcsend", "--object-version", "18446744073709551615", "file")["options"]["object-version"], "18446744073709551615")
        self.assertEqual(start("mcsend", "--deadline", "365d", "--linger", "50us", "file")["options"]["deadline"], "365d")

    def test_a_missing_file_is_a_failure_and_not_a_usage_error(self):
        done = run("mcsend", "--json", *QUICK["mcsend"], "no-such-file")
        self.assertEqual(done.returncode, 1, done.stderr)
        self.assertIn("no-such-file", done.stderr.decode())
        summary = json.loads(done.stdout.splitlines()[-1])
        self.assertEqual((summary["event"], summary["ok"], summary["exit"]), ("summary", False, 1))
        self.assertIn("no-such-file", summary["outcome"]["message"])

    # Where a value comes from: option > environment > file > default.

    def test_each_level_wins_over_those_below(self):
        pathlib.Path("ddf.toml").write_text('ttl = 2\nmtu = 9000\n[mcsend]\nrate = "3G"\n[mcrecv]\ntimeout = "3s"\n')
        for program, option, values in (("mcsend", "rate", ["auto", "3G", "4G", "5G"]), ("mcsend", "ttl", ["1", "2", "3", "4"]), ("mcrecv", "ttl", ["1", "2", "3", "4"])):
            arguments = ["file"] if program == "mcsend" else []
            file, variable, given = ["--config", "ddf.toml"], {"DDF_" + option.upper(): values[2]}, ["--" + option, values[3]]
            for level, (more, variables) in {
                "default": ([], {}),
                "file": (file, {}),
                "environment": (file, variable),
                "option": (file + given, variable),
            }.items():
                event = start(program, *more, *arguments, **variables)
                self.assertEqual(event["origins"][option], level)
                self.assertEqual(event["options"][option], values[["default", "file", "environment", "option"].index(level)])
        # One level may be left out.
        self.assertEqual(start("mcsend", "--rate", "5G", "file", DDF_RATE="4G")["options"]["rate"], "5G")
        self.assertEqual(start("mcsend", "--rate", "5G", "--config", "ddf.toml", "file")["options"]["rate"], "5G")
        self.assertEqual(start("mcsend", "file", DDF_CONFIG="ddf.toml")["options"]["rate"], "3G")
        self.assertEqual(start("mcsend", "file", DDF_RATE="")["origins"]["rate"], "default")

    def test_the_table_of_a_program_wins_over_the_top_and_that_of_the_other_is_nothing_to_it(self):
        pathlib.Path("ddf.toml").write_text('ttl = 2\n[mcsend]\nttl = 3\nserve = false\n[mcrecv]\nfollow = false\noutput = "out"\n')
        self.assertEqual(start("mcsend", "--config", "ddf.toml", "file")["options"]["ttl"], "3")
        options = start("mcrecv", "--config", "ddf.toml")["options"]
        self.assertEqual((options["ttl"], options["output"]), ("2", "out"))

    def test_lists_and_flags_on_every_level(self):
        pathlib.Path("ddf.toml").write_text('interface = ["lo", "127.0.0.0/8"]\nquiet = true\n[mcrecv]\nfollow = true\n')
        file = ["--config", "ddf.toml"]
        self.assertEqual(start("mcsend", *file, "file")["options"]["interface"], ["lo", "127.0.0.0/8"])
        self.assertEqual(start("mcsend", *file, "file", DDF_INTERFACE="lo,127.0.0.1")["options"]["interface"], ["lo", "127.0.0.1"])
        self.assertEqual(start("mcsend", *file, "--interface", "127.0.0.1", "file", "--interface", "lo")["options"]["interface"], ["127.0.0.1", "lo"])
        self.assertIs(start("mcsend", *file, "file")["options"]["quiet"], True)
        self.assertIs(start("mcsend", *file, "file", DDF_QUIET="no")["options"]["quiet"], False)
        self.assertIs(start("mcsend", *file, "--quiet=false", "file")["options"]["quiet"], False)
        self.assertEqual(start("mcsend", "-vv", "file")["options"]["verbose"], 2)
        self.assertEqual(start("mcsend", "file", DDF_VERBOSE="1")["options"]["verbose"], 1)
        self.assertEqual(start("mcrecv", *file, "--once")["options"]["follow"], False)

    def test_an_error_names_the_variable_or_the_line(self):
        self.refused("mcsend", "file", DDF_RATE="fast", says=["DDF_RATE: ", "'fast'", "Tbit/s"])
        self.refused("mcsend", "file", DDF_JSON="maybe", says=["DDF_JSON: ", "true or false"])
        cases = [
            ("\nttl = 300\n", ["ddf.toml:2: ttl: ", "0 to 255"]),
            ("[mcsend]\nrate = 3\n", ["ddf.toml:2: rate: ", "'3'"]),
            ("[mcsend]\nserve = 'perhaps'\n", ["ddf.toml:2: serve: ", "true or false"]),
            ("speed = 1\n", ["ddf.toml:1: speed: ", "no such common option"]),
            ("rate = '1G'\n", ["ddf.toml:1: rate: ", "below [mcsend]"]),
            ("[mcsend]\nname = 'x'\n", ["ddf.toml:2: name: "]),
            ("config = 'x'\n", ["ddf.toml:1: config: "]),
            ("ttl = [1, 2]\n", ["ddf.toml:1: ttl: ", "one value"]),
            ("ttl = {a = 1}\n", ["ddf.toml:1"]),
            ("[mcsned]\n", ["ddf.toml:1: [mcsned]", "[mcsend], [mcrecv]"]),
            ("ttl = \n", ["ddf.toml:1: "]),
        ]
        for text, says in cases:
            with self.subTest(text=text):
                pathlib.Path("ddf.toml").write_text(text)
                self.refused("mcsend", "--config", "ddf.toml", "file", says=says)
        self.refused("mcsend", "--config", "no.toml", "file", says=["--config: ", "'no.toml'", "No such file"])
        self.refused("mcsend", "--config", ".", "file", says=["--config: "])
        # What is overridden is not read, so a bad value below does no harm.
        self.assertEqual(start("mcsend", "--rate", "5G", "file", DDF_RATE="fast")["options"]["rate"], "5G")

    def test_variables_of_the_exec_command_set_no_option(self):
        self.assertIsNone(start("mcsend", "file", DDF_NAME="other", DDF_VERSION="7", DDF_PATH="/x")["options"]["name"])

    # Help, version and what ships beside them.

    def test_help_fits_and_teaches(self):
        for program in QUICK:
            for flag in ("--help", "-h"):
                done = run(program, flag)
                self.assertEqual((done.returncode, done.stderr), (0, b""))
            text = done.stdout.decode()
            self.assertTrue(text.startswith("Usage: " + program))
            self.assertIn("Examples:", text)
            for line in text.splitlines():
                self.assertLessEqual(len(line), 100, line)

    def test_version(self):
        for program in QUICK:
            done = run(program, "--version")
            self.assertEqual(done.returncode, 0)
            self.assertRegex(done.stdout.decode(), rf"^{program} \(ddf\) \d+\.\d+\.\d+\n$")

    def test_completions_and_manual_pages_know_every_option(self):
        if not (ROOT / "docs/man").is_dir():
            self.skipTest("the manual pages are not here")
        for program in QUICK:
            options = long_options(run(program, "--help").stdout.decode())
            self.assertIn("--group", options)
            self.assertGreater(len(options), 18)
            manual = (ROOT / f"docs/man/{program}.1").read_text()
            self.assertEqual({"--" + name for name in re.findall(r"^\.It .*?Fl -([a-z-]+)", manual, re.MULTILINE)}, options)
            bash = set(re.findall(r"--[a-z][a-z-]*", (ROOT / f"tools/completion/{program}.bash").read_text()))
            zsh = set(re.findall(r"--[a-z][a-z-]*", (ROOT / f"tools/completion/_{program}").read_text()))
            fish = {"--" + name for name in re.findall(r"-l ([a-z-]+)", (ROOT / f"tools/completion/{program}.fish").read_text())}
            for shell, known in (("bash", bash), ("zsh", zsh), ("fish", fish)):
                self.assertEqual(known, options, f"{program}: {shell}")

    def test_bash_completes_options_values_and_files(self):
        script = ROOT / "tools/completion/mcsend.bash"
        if not script.exists():
            self.skipTest("the completions are not here")
        pathlib.Path("two words").write_text("x")

        def complete(*words):
            code = 'source "$1"; shift; compopt() { :; }; COMP_WORDS=("$@"); COMP_CWORD=$(($# - 1)); _ddf_mcsend; printf "%s\\n" "${COMPREPLY[@]}"'
            return subprocess.run(["bash", "-c", code, "bash", str(script), "mcsend", *words], stdout=subprocess.PIPE, check=True, timeout=20).stdout.decode().split("\n")[:-1]

        self.assertEqual(complete("--mul"), ["--multicast"])
        self.assertEqual(complete("--multicast", "r"), ["require"])
        self.assertEqual(complete("--multicast", "=", "r"), ["require"])
        self.assertEqual(complete("--serve", "tw"), ["two words"])
        self.assertEqual(complete("--", "f"), ["file", "folder"])

    # The streams and signals.

    def test_standard_output_that_takes_nothing_is_a_failure(self):
        for program, more in (("mcsend", ["file"]), ("mcrecv", [])):
            with open("/dev/full", "wb") as full:
                done = run(program, "--help", stdout=full)
                self.assertEqual(done.returncode, 1)
                self.assertIn("standard output", done.stderr.decode())
            closed = subprocess.run(["sh", "-c", '"$0" --version >&-', os.path.join(BIN, program)], stderr=subprocess.PIPE, env=environment(), timeout=30)
            self.assertEqual(closed.returncode, 1)
            read, write = os.pipe()
            os.close(read)
            done = run(program, "--json", *QUICK[program], *more, stdout=write)
            os.close(write)
            self.assertIn(done.returncode, (1, 3), "not killed by SIGPIPE")

    def waiting(self, program, **variables):
        """A run that waits for somebody; none when this host cannot even wait."""
        arguments = ["--group", GROUP, "--json"] + (["--expect", "1", "--state", "none", "file"] if program == "mcsend" else [])
        process = subprocess.Popen([os.path.join(BIN, program), *arguments], stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE, env=environment(**variables))
        self.addCleanup(process.kill)
        line = process.stdout.readline()
        self.assertEqual(json.loads(line)["event"], "start")
        line = process.stdout.readline()   # of progress: the session is on
        if not line or json.loads(line)["event"] == "summary":
            self.skipTest(f"{program} cannot wait here: {process.communicate()[1].decode()}")
        return process

    def test_a_signal_ends_the_session_with_130(self):
        for program in QUICK:
            for number in (signal.SIGINT, signal.SIGTERM):
                process = self.waiting(program)
                process.send_signal(number)
                output, errors = process.communicate(timeout=20)
                self.assertEqual(process.returncode, 130, errors)
                summary = json.loads(output.splitlines()[-1])
                self.assertEqual((summary["event"], summary["ok"], summary["outcome"]["code"]), ("summary", False, "interrupted"))

    def test_a_second_signal_ends_the_program_at_once(self):
        process = self.waiting("mcrecv")
        process.send_signal(signal.SIGSTOP)   # so that both signals are there when it goes on
        process.send_signal(signal.SIGINT)
        process.send_signal(signal.SIGTERM)
        process.send_signal(signal.SIGCONT)
        began = time.monotonic()
        process.communicate(timeout=20)
        self.assertEqual(process.returncode, 130)
        self.assertLess(time.monotonic() - began, 5)

    # What a terminal shows.

    def on_terminal(self, columns, *arguments):
        child, terminal = pty.fork()
        if child == 0:
            os.execve(os.path.join(BIN, arguments[0]), arguments, environment())
        fcntl.ioctl(terminal, termios.TIOCSWINSZ, struct.pack("HHHH", 24, columns, 0, 0))
        output = b""
        while True:
            try:
                piece = os.read(terminal, 65536)
            except OSError:
                break
            if not piece:
                break
            output += piece
        os.close(terminal)
        os.waitpid(child, 0)
        return output.decode()

    def test_the_display_fits_its_terminal_and_leaves_whole_lines(self):
        for columns in (20, 60, 200):
            text = self.on_terminal(columns, "mcrecv", "--group", GROUP, "--timeout", "300ms", "--progress", "always")
            frames = [frame for frame in re.split(r"[\r\n]+", text) if "waiting for" in frame]
            self.assertTrue(frames, text)
            for frame in frames[1:]:   # the first may come before the terminal has its size
                self.assertLess(len(frame), columns)
            self.assertTrue(text.endswith("\n"), text)
            self.assertNotIn("\x1b", text)
        self.assertNotIn("waiting for", self.on_terminal(80, "mcrecv", "--group", GROUP, "--timeout", "200ms", "--progress", "never"))
        self.assertNotIn("waiting for", self.on_terminal(80, "mcrecv", "--group", GROUP, "--timeout", "200ms", "-q"))

    def test_no_display_without_a_terminal_unless_asked_for(self):
        self.assertNotIn(b"waiting for", run("mcrecv", *QUICK["mcrecv"]).stderr)
        done = run("mcrecv", "--group", GROUP, "--timeout", "200ms", "--progress", "always")
        self.assertTrue(b"waiting for" in done.stderr or done.returncode == 1, done.stderr)


if __name__ == "__main__":
    unittest.main(verbosity=2)
