"""Disks that fill up, sources that change, hooks, followers and holders; and where the time went."""
# timeout: 180
import os
import shutil
import signal
import subprocess
import sys
import time

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from _field import KiB, MiB, case, check, lab, main  # noqa: E402


class small_disk:
    """A tmpfs of so many bytes, as a receiver's output folder."""

    def __init__(self, field, size):
        self.path = f"{field.directory}/disk"
        os.makedirs(self.path)
        done = subprocess.run(["mount", "-t", "tmpfs", "-o", f"size={size}", "ddf-e2e", self.path], capture_output=True, text=True)
        if done.returncode:
            raise lab.Skip(f"no tmpfs can be mounted: {done.stderr.strip()}")

    def __enter__(self):
        return self

    def __exit__(self, *_):
        subprocess.run(["umount", "--lazy", self.path])


@case("53", receivers=2, changes=False)
def a_disk_that_is_too_small_fails_this_receiver_at_once_and_the_other_completes(field):
    field.file("model.bin", 24 * MiB)
    with small_disk(field, "8m") as disk:
        receivers = [field.receive(host=1), field.receive(host=2, output=disk.path)]
        sender = field.send("--expect", "1", "--wait", "2s", "model.bin")
        field.complete(receivers[0], "model.bin")
        receivers[1].wait(10, 1)
        receivers[1].says("make room in the output folder")
        sender.wait(10, 5)
        field.nothing_visible(receivers[1])
        check("make room" in sender.text(), "the sender does not know why", sender)


@case("53", receivers=2, changes=False)
def a_disk_that_fills_up_on_the_way_fails_this_receiver_with_the_real_error(field):
    field.file("model.bin", 24 * MiB)
    with small_disk(field, "32m") as disk:
        receivers = [field.receive(host=1), field.receive(host=2, output=disk.path)]
        sender = field.send("--expect", "2", "--rate", "100Mbit", "model.bin")
        receivers[1].wait_bytes(2 * MiB)
        with open(f"{disk.path}/.other.ddf-00000000.partial", "wb") as other:   # somebody else's, as hidden as ours
            try:
                while other.write(b"x" * MiB):
                    pass
            except OSError:
                pass
        field.complete(receivers[0], "model.bin")
        check(receivers[0].summary()["seconds"] < 3.5, "it slowed the other", receivers[0])
        receivers[1].wait(10, 1)
        receivers[1].says("No space left on device", "model.bin")
        field.nothing_visible(receivers[1])
        sender.wait(5, 5)
        sender.says("No space left on device")


@case("53", receivers=1, changes=False)
def an_output_folder_that_cannot_be_written_is_an_error_before_anything_is_sent(field):
    read_only = f"{field.directory}/read-only"
    os.makedirs(read_only)
    done = subprocess.run(["mount", "-t", "tmpfs", "-o", "ro", "ddf-e2e", read_only], capture_output=True)
    if done.returncode:
        raise lab.Skip("no tmpfs can be mounted")
    try:
        receiver = field.receive(output=read_only)
        receiver.wait(3, 1)
        receiver.says("read-only")
    finally:
        subprocess.run(["umount", "--lazy", read_only])


def while_it_is_sent(field, change, receivers=1):
    """Sends a file slowly, and changes it at about a half."""
    path = field.file("model.bin", 32 * MiB)
    tools = [field.receive(host=1) for _ in range(receivers)]
    sender = field.send("--expect", str(receivers), "--rate", "200Mbit", "model.bin")
    tools[0].wait_bytes(8 * MiB)
    change(path)
    sender.wait(15, 4)
    for receiver in tools:
        receiver.wait(15)
        check(receiver.process.status not in (0, 3), "it reports success", receiver)
        field.nothing_visible(receiver)
        check("changed" in receiver.text() or "shorter" in receiver.text(), "it does not say why", receiver)
    check("model.bin" in sender.summary()["outcome"]["message"], "the file is not named", sender)
    return sender


@case(changes=False)
def a_source_that_is_truncated_while_it_is_sent_is_an_error_that_says_so(field):
    while_it_is_sent(field, lambda path: os.truncate(path, 9 * MiB))


@case(changes=False)
def a_source_that_grows_while_it_is_sent_is_an_error_that_says_so(field):
    def grow(path):
        with open(path, "ab") as f:
            f.write(b"more" * 1000)
    while_it_is_sent(field, grow)


@case(changes=False)
def a_source_that_is_rewritten_in_place_while_it_is_sent_is_an_error_that_says_so(field):
    def rewrite(path):
        with open(path, "r+b") as f:
            f.seek(30 * MiB)
            f.write(b"\0" * MiB)
    while_it_is_sent(field, rewrite)


@case(changes=False)
def a_source_that_is_replaced_by_rename_is_sent_as_it_was(field):
    path = field.file("model.bin", 32 * MiB)
    old = field.file("old", 0)
    os.link(path, f"{field.source}/kept")
    field.also("model.bin", f"{field.source}/kept")
    receiver = field.receive()
    sender = field.send("--expect", "1", "--rate", "200Mbit", "model.bin")
    receiver.wait_bytes(8 * MiB)
    os.rename(old, path)   # the open file is untouched
    receiver.wait(15, 0)
    sender.wait(5, 0)
    check(os.path.getsize(f"{receiver.output}/model.bin") == 32 * MiB, "it has another", receiver)


@case(changes=False)
def a_source_that_is_replaced_while_receivers_are_waited_for_is_sent_as_it_was(field):
    path = field.file("model.bin", 4 * MiB)
    field.also("model.bin", shutil.copyfile(path, f"{field.source}/kept"))
    sender = field.send("--expect", "1", "model.bin")
    sender.wait_for('"event":"progress"')
    os.rename(field.file("other", 1 * MiB, seed=2), path)
    receiver = field.receive()
    receiver.wait(10, 0)
    sender.wait(5, 0)
    check(os.path.getsize(f"{receiver.output}/model.bin") == 4 * MiB, "it has another", receiver)


@case(changes=False)
def a_source_that_cannot_be_read_is_named(field):
    sender = field.send("missing.bin")
    sender.wait(3, 1)
    sender.says("missing.bin", "No such file")


@case("115", receivers=1, mode="wire")
def the_command_of_exec_runs_exactly_once_for_each_version(field):
    field.net.loss(5)
    for i in range(3):
        field.file(f"object{i}", 500 * KiB)
    log = f"{field.directory}/ran"
    receiver = field.receive("--exec", f'echo "$DDF_NAME $DDF_VERSION $DDF_PATH" >> {log}', "**", "object*")
    sender = field.send("--expect", "1", "--object-version", "7", "object0", "object1", "object2")
    field.complete(receiver, "object0", "object1", "object2")
    sender.wait(5, 0)
    with open(log) as f:
        lines = sorted(f.read().splitlines())
    check(lines == [f"object{i} 7 {receiver.output}/object{i}" for i in range(3)], f"it ran as {lines}", receiver)


@case(receivers=1, changes=False)
def a_command_of_exec_that_fails_makes_the_exit_1_and_the_object_stays(field):
    field.file("model.bin", 1000)
    receiver = field.receive("--exec", "exit 3")
    sender = field.send("--expect", "1", "model.bin")
    receiver.wait(5, 1)
    receiver.says("exit status 3")
    check(receiver.visible() == {"model.bin"}, "the object is gone", receiver)
    sender.wait(5, 0)


@case(receivers=2, changes=False)
def a_follower_gets_three_publications_and_each_is_whole(field):
    receivers = [field.receive("--follow", "--exec", 'echo "$DDF_VERSION" >> "$DDF_PATH.ran"', host=h) for h in (1, 2)]
    for version in (1, 2, 3):
        path = field.file(f"v{version}/model.bin", 4 * MiB, seed=version)
        field.published["model.bin"] = [path]
        sender = field.send("--expect", "2", "--state", f"{field.directory}/published", path)
        sender.wait(20, 0)
        check(sender.summary()["objects"][0]["version"] == version, "the version", sender)
        for receiver in receivers:
            field.true_to_source_of(receiver, "model.bin")
    for receiver in receivers:
        receiver.process.signal(signal.SIGTERM)
        receiver.wait(5, 0)
        with open(f"{receiver.output}/model.bin.ran") as f:
            check(f.read().split() == ["1", "2", "3"], "the commands ran otherwise", receiver)
        os.unlink(f"{receiver.output}/model.bin.ran")


@case(receivers=3, changes=False)
def a_holder_serves_receivers_that_come_one_by_one(field):
    field.file("model.bin", 8 * MiB)
    sender = field.send("--serve", "model.bin")
    for host in (1, 2, 3):
        receiver = field.receive(host=host)
        field.complete(receiver, "model.bin", limit=10)
        time.sleep(0.3)
    check(sender.running, "it ended", sender)
    sender.process.signal(signal.SIGTERM)
    sender.wait(3, 0)
    check([r["state"] for r in sender.summary()["receivers"]] == ["complete"] * 3, "it served them all", sender)


@case(receivers=2, changes=False)
def a_holder_serves_who_comes_after_its_deadline(field):
    field.file("model.bin", MiB)
    sender = field.send("--serve", "--wait", "200ms", "--deadline", "1500ms", "model.bin")
    field.complete(field.receive(host=1), "model.bin", limit=10)
    time.sleep(1.6)
    field.complete(field.receive(host=2), "model.bin", limit=10)
    time.sleep(0.2)
    check(sender.running, "it ended", sender)
    sender.process.signal(signal.SIGTERM)
    sender.wait(3, 0)


@case("64", receivers=1, changes=False)
def the_summaries_tell_where_the_time_went(field):
    field.file("model.bin", 64 * MiB)
    receiver = field.receive()
    sender = field.send("--expect", "1", "--rate", "800Mbit", "model.bin")
    field.complete(receiver, "model.bin")
    sender.wait(5, 0)
    stages = {"discover", "prepare", "plan", "wire", "repair", "verify", "apply", "commit"}
    for tool in (sender, receiver):
        told = tool.summary()["stages"]
        check(set(told) == stages and all(s >= 0 for s in told.values()), f"stages {told}", tool)
        check(0.5 < told["wire"] < 1.5, f"the wire took {told['wire']} s", tool)
    told = receiver.summary()["stages"]
    check(told["apply"] > 0 and told["commit"] > 0, f"writing and committing took time: {told}", receiver)
    check(sum(receiver.summary()["stages"].values()) < receiver.seconds * 4, "stages are longer than the run", receiver)


@case("64", receivers=1, changes=False)
def the_summary_in_words_has_the_stages_too(field):
    field.file("model.bin", MiB)
    receiver = field.start(1, [f"{os.environ['DDF_BIN']}/mcrecv", "--group", field.group, "--output", f"{field.directory}/words", "--state",
                               f"{field.directory}/words-state", "--timeout", "10s"], "mcrecv in words", output=f"{field.directory}/words")
    sender = field.start(0, [f"{os.environ['DDF_BIN']}/mcsend", "--group", field.group, "--state", "none", "--expect", "1", "model.bin"], "mcsend in words")
    field.complete(receiver, "model.bin")
    sender.wait(5, 0)
    for tool in (receiver, sender):
        tool.says("stages", "wire", "model.bin", "repairs", "goodput", "interfaces  eth0")
    sender.says("egress", "1 of 1 complete")


@case("63", changes=False)
def a_rate_is_never_beyond_what_was_asked(field):
    field.file("model.bin", 16 * MiB)
    receiver = field.receive()
    sender = field.send("--expect", "1", "--rate", "100Mbit", "model.bin")
    field.complete(receiver, "model.bin")
    sender.wait(5, 0)
    for tool in (receiver, sender):
        check(tool.summary()["goodput_bytes_per_s"] * 8 < 104e6, "too fast", tool)
        check(tool.summary()["goodput_bytes_per_s"] * 8 > 80e6, "too slow", tool)


main()
