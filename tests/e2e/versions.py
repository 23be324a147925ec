"""Versions: what changed travels, to whom, by which plan; watching, following, keeping; and what interrupts them."""
# timeout: 240
import hashlib
import os
import random
import shutil
import signal
import sys
import time

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from _field import KiB, MiB, case, check, main  # noqa: E402

BIN = os.environ.get("DDF_BIN", "")


def changed(source, target, places=200, seed=1, below=None):
    """`target` becomes what is in `source`, but for some bytes."""
    os.makedirs(os.path.dirname(target), exist_ok=True)
    if source != target:
        shutil.copyfile(source, target)
    chance = random.Random(seed)
    size = below or os.path.getsize(target)
    with open(target, "r+b") as f:
        for _ in range(places):
            f.seek(chance.randrange(size))
            f.write(bytes([chance.randrange(256)]))
    return target


class Site:
    """One object, published from this host with a state folder, and receivers that remember what they have."""

    def __init__(self, field, name="policy"):
        self.field, self.name, self.state = field, name, f"{field.directory}/published"
        self.group = ["--name", name]

    def version(self, number, path):
        self.field.also(self.name, path)
        return path

    def send(self, path, *arguments, expect=1):
        return self.field.send("--expect", str(expect), *self.group, *arguments, path, state=self.state)

    def receive(self, number, *arguments, host=None, **more):
        """Receiver `number`, with its own output and state, which stay from one call to the next."""
        folder = f"{self.field.directory}/receiver{number}"
        return self.field.receive(*arguments, host=host or number, output=f"{folder}/output", state=f"{folder}/state", **more)

    def has(self, receiver, path):
        with open(f"{receiver.output}/{self.name}", "rb") as f, open(path, "rb") as wanted:
            check(f.read() == wanted.read(), f"{receiver.title}: it has something else", receiver)

    def publish(self, path, *arguments, receivers=(1,)):
        """To these, and to the end."""
        tools = [self.receive(r) for r in receivers]
        sender = self.send(path, *arguments, expect=len(tools))
        for tool in tools:
            tool.wait(20, 0)
            self.has(tool, path)
        sender.wait(10, 0)
        return sender, tools


def arrived(receiver):
    told = receiver.summary()
    return told["bulk"]["bytes"] + told["repair"]["multicast_bytes"] + told["repair"]["unicast_bytes"]


def encoding(tool):
    return tool.summary()["objects"][0]["encoding"]


@case("delta", receivers=2, changes=False)
def who_holds_a_version_gets_the_delta_and_a_newcomer_the_whole_in_one_session(field):
    site = Site(field)
    old = site.version(1, field.file("step-100", 16 * MiB))
    site.publish(old)
    new = site.version(2, changed(old, f"{field.source}/step-101"))
    sender, (holder, newcomer) = site.publish(new, receivers=(1, 2))
    check(encoding(holder) == "delta" and encoding(newcomer) == "whole" and encoding(sender) == "delta+whole", "the encodings", sender, holder, newcomer)
    check(arrived(holder) < 200 * KiB, f"the holder took {arrived(holder)} bytes", holder)
    check(sender.summary()["bulk"]["bytes"] < 17 * MiB, "more than the whole and a delta was sent", sender)
    check(holder.summary()["delta_bytes"] > 0, "it says nothing of the delta", holder)
    check(sorted(r["holds"]["policy"] for r in sender.summary()["receivers"]) == [2, 2], "the record of holders", sender)
    check(sender.summary()["objects"][0]["version"] == 2, "the version", sender)


@case("delta", receivers=2, changes=False)
def a_plan_is_told_before_and_beside_what_came_of_it(field):
    site = Site(field)
    old = site.version(1, field.file("step-100", 8 * MiB))
    site.publish(old)
    new = site.version(2, changed(old, f"{field.source}/step-101"))
    receivers = [site.receive(1), site.receive(2)]
    for receiver in receivers:
        receiver.wait_for("listening on")
    asked = site.send(new, "--dry-run", expect=2)
    asked.wait(10, 0)
    plan, = asked.events("plan")
    check({c["holds"]: c["takes"] for c in plan["choices"]} == {"version 1": "delta", "nothing": "whole"}, f"the plan {plan}", asked)
    check(all(o["base"] == "version 1" for o in plan["operations"]) and plan["operations"], f"the operations {plan}", asked)
    check(8 * MiB < plan["group_bytes"] < 8.5 * MiB, f"the bytes {plan}", asked)
    check(asked.summary()["ok"] and asked.summary()["bulk"]["segments"] == 0, "something was sent", asked)
    in_words = field.start(0, [f"{BIN}/mcsend", "--group", field.group, "--state", site.state, "--name", site.name, "--expect", "2", "--dry-run", new], "mcsend --dry-run")
    in_words.wait(10, 0)
    in_words.says("plan of 'policy'", "receivers  holds", "version 1", "delta", "nothing", "there is no base to start from", "operation", "planned", "nothing was sent")
    check("complete" not in in_words.text(), "it tells of a session", in_words)
    check(all(r.running for r in receivers), "a dry run ended a receiver", *receivers)
    sender = field.start(0, [f"{BIN}/mcsend", "--group", field.group, "--state", site.state, "--name", site.name, "--expect", "2", "--explain", new], "mcsend --explain")
    sender.wait(20, 0)
    sender.says("plan of 'policy'", "version 1", "estimated", "measured", "delta and whole,", "to the group")
    check(sender.text().index("plan of") < sender.text().index("2 of 2 complete"), "the plan comes late", sender)
    for receiver in receivers:
        receiver.wait(10, 0)
        site.has(receiver, new)


def digest(path):
    with open(path, "rb") as f:
        return hashlib.sha256(f.read()).hexdigest()


def told_by_hook(log, count, limit=12):
    """The lines that the hooks wrote, once there are so many."""
    deadline = time.monotonic() + limit
    while True:
        lines = []
        if os.path.exists(log):
            with open(log) as f:
                lines = f.read().splitlines()
        if len(lines) >= count:
            return [line.split() for line in lines]
        check(time.monotonic() < deadline, f"the hook ran as {lines}")
        time.sleep(0.02)


HOOK = 'd=$(find "$DDF_PATH" -type f | LC_ALL=C sort | xargs -d "\\n" cat | sha256sum); echo "$DDF_VERSION ${d%% *}" >> '


@case("delta", receivers=2, changes=False)
def watched_and_followed_each_version_is_whole_and_its_hook_runs_once(field):
    site = Site(field)
    logs = [f"{field.directory}/ran{r}" for r in (1, 2)]
    receivers = [site.receive(r, "--follow", "--exec", HOOK + logs[r - 1]) for r in (1, 2)]
    watched = f"{field.source}/latest"
    sender = field.send("--watch", "--settle", "400ms", *site.group, watched, state=site.state)
    field.joined(1, 2)
    first = site.version(1, field.file("v1", 8 * MiB))
    # It appears, and grows for longer than the settle time.
    with open(first, "rb") as f, open(watched, "wb") as out:
        while piece := f.read(2 * MiB):
            out.write(piece)
            out.flush()
            time.sleep(0.2)
    wanted = [digest(first)]
    for log in logs:
        check(told_by_hook(log, 1) == [["1", wanted[0]]], "the first version")
    # It is replaced, as writers of checkpoints do.
    second = site.version(2, changed(first, f"{field.source}/v2", seed=2))
    os.link(second, f"{field.source}/new")
    os.rename(f"{field.source}/new", watched)
    wanted.append(digest(second))
    for log in logs:
        check(told_by_hook(log, 2) == [["1", wanted[0]], ["2", wanted[1]]], "the second version")
    # It is written to where it is, piece by piece: none of the states between is a version.
    third = changed(second, f"{field.source}/v3", seed=3)
    site.version(3, third)
    site.version(2, shutil.copyfile(second, f"{field.source}/v2-as-it-was"))
    with open(third, "rb") as f, open(watched, "r+b") as out:
        while piece := f.read(2 * MiB):
            out.write(piece)
            out.flush()
            time.sleep(0.2)
    wanted.append(digest(third))
    expected = [[str(i + 1), d] for i, d in enumerate(wanted)]
    for log in logs:
        check(told_by_hook(log, 3) == expected, f"the third version: {told_by_hook(log, 3)}", sender)
    time.sleep(0.8)   # nothing more comes
    sender.process.signal(signal.SIGINT)
    sender.wait(5, 0)
    summaries = sender.events("summary")
    check([s["objects"][0]["version"] for s in summaries] == [1, 2, 3], "a summary for each version", sender)
    check([s["objects"][0]["encoding"] for s in summaries][:2] == ["whole", "delta"], "the encodings", sender)
    check(all(s["ok"] and len(s["receivers"]) == 2 for s in summaries), "the summaries", sender)
    check(summaries[1]["bulk"]["bytes"] < 300 * KiB, "a replaced file is no base", sender)
    for receiver, log in zip(receivers, logs):
        receiver.process.signal(signal.SIGTERM)
        receiver.wait(5, 0)
        check(told_by_hook(log, 3) == expected, "a hook ran again", receiver)
        site.has(receiver, third)


@case("delta", receivers=1, changes=False)
def a_watched_folder_and_a_watched_link_are_followed(field):
    log = f"{field.directory}/ran"
    receiver = field.receive("--follow", "--exec", HOOK + log)
    for name in ("step-1/a", "step-1/b", "step-2/b", "step-2/c"):
        field.file(name, 300 * KiB, seed=len(name))
    link = f"{field.source}/current"
    os.symlink("step-1", link)

    def of(folder):
        return hashlib.sha256(b"".join(open(f"{folder}/{f}", "rb").read() for f in sorted(os.listdir(folder)))).hexdigest()

    sender = field.send("--watch", "--settle", "300ms", link, state=f"{field.directory}/published")
    wanted = [["1", of(f"{field.source}/step-1")]]
    check(told_by_hook(log, 1) == wanted, "what the link led to", sender)
    os.symlink("step-2", f"{field.source}/next")
    os.rename(f"{field.source}/next", link)
    wanted.append(["2", of(f"{field.source}/step-2")])
    check(told_by_hook(log, 2) == wanted, "what the link leads to", sender)
    field.file("step-2/d", 100 * KiB)
    os.unlink(f"{field.source}/step-2/b")
    wanted.append(["3", of(f"{field.source}/step-2")])
    check(told_by_hook(log, 3) == wanted, "a file added and one removed", sender)
    sender.process.signal(signal.SIGTERM)
    sender.wait(5, 0)
    receiver.process.signal(signal.SIGTERM)
    receiver.wait(5, 0)
    check(receiver.visible() == {"current/c", "current/d"}, "the folder", receiver)
    for name in ("c", "d"):
        field.also(f"current/{name}", f"{field.source}/step-2/{name}")


@case("delta", receivers=2, changes=False)
def a_watched_file_that_is_overwritten_while_it_is_sent_is_published_again_when_it_has_settled(field):
    site = Site(field)
    log = f"{field.directory}/ran"
    receiver = site.receive(1, "--follow", "--exec", HOOK + log)
    watched = field.file("latest", 16 * MiB)
    sender = site.send(watched, "--watch", "--settle", "300ms", "--rate", "40Mbit")
    receiver.wait_bytes(2 * MiB)
    overwritten = site.version(1, changed(watched, f"{field.source}/next", seed=5))
    with open(overwritten, "rb") as new, open(watched, "r+b") as out:
        out.write(new.read())
    (_, seen), = told_by_hook(log, 1, limit=20)
    check(seen == digest(overwritten), "something else was complete", sender, receiver)
    sender.process.signal(signal.SIGTERM)
    sender.wait(5, 0)
    receiver.process.signal(signal.SIGTERM)
    receiver.wait(5, 0)
    site.has(receiver, overwritten)
    check(len(told_by_hook(log, 1)) == 1, "a hook ran for what was overwritten", receiver)


@case("delta", receivers=2, changes=False)
def a_lost_receiver_does_not_hold_the_next_version_up_and_a_slow_command_can_read_its_version(field):
    site = Site(field)
    log = f"{field.directory}/ran"
    follower = site.receive(1, "--follow", "--exec", f'sleep 2.5; cat "$DDF_PATH" > /dev/null && echo $DDF_VERSION >> {log}')
    doomed = site.receive(2, "--follow")
    watched, kept = f"{field.source}/latest", []

    def write(number):
        path = site.version(number, changed(field.file("base", 2 * MiB), f"{field.source}/v{number}", seed=number))
        shutil.copyfile(path, f"{field.source}/new")
        os.rename(f"{field.source}/new", watched)
        kept.append(path)

    write(1)
    sender = site.send(watched, "--watch", "--settle", "200ms", "--rate", "10Mbit", expect=2)
    doomed.wait_bytes(512 * KiB)
    doomed.kill()
    follower.wait_for("version 1 is complete|\"version\":1", limit=10)
    write(2)   # while the command for version 1 sleeps
    follower.wait_for("\"version\":2", limit=15)
    site.has(follower, kept[1])
    check(told_by_hook(log, 2) == [["1"], ["2"]], "the commands", follower)
    sender.process.signal(signal.SIGTERM)
    sender.wait(5, 5)   # it was one of those that took part
    follower.process.signal(signal.SIGTERM)
    follower.wait(5, 0)
    states = [[r["state"] for r in s["receivers"]] for s in sender.events("summary")]
    check(sorted(states[0]) == ["complete", "lost"] and states[1] == ["complete"], f"the receivers were {states}", sender)


@case("delta", receivers=1, changes=False)
def a_watched_file_that_is_written_to_where_it_is_has_its_copy_for_a_base(field):
    site = Site(field)
    receiver = site.receive(1, "--follow", "--keep", "1")
    watched = field.file("latest", 8 * MiB)
    site.version(1, shutil.copyfile(watched, f"{field.source}/as-it-was"))
    field.also(".ddf-versions/policy.versions/1", f"{field.source}/as-it-was")
    sender = site.send(watched, "--watch", "--settle", "300ms", "--keep", "1")
    receiver.wait_for("\"version\":1", limit=10)
    deadline = time.monotonic() + 5
    while not (os.path.isdir(f"{site.state}/bases") and any(name.endswith(".data") for name in os.listdir(f"{site.state}/bases"))):
        check(time.monotonic() < deadline, "no copy is made", sender)
        time.sleep(0.05)
    changed(watched, watched, seed=6)
    site.version(2, watched)
    receiver.wait_for("\"version\":2", limit=10)
    for tool in (sender, receiver):
        tool.process.signal(signal.SIGTERM)
        tool.wait(5, 0)
    check(sender.events("summary")[1]["bulk"]["bytes"] < 200 * KiB, "the copy was not used", sender)


@case("delta", receivers=1, changes=False)
def watching_without_a_state_folder_counts_its_versions_and_makes_deltas(field):
    site = Site(field)
    receiver = site.receive(1, "--follow")
    first = site.version(1, field.file("v1", 4 * MiB))
    watched = shutil.copyfile(first, f"{field.source}/latest")
    sender = field.send("--watch", "--settle", "200ms", *site.group, watched, state="none")
    receiver.wait_for("\"version\":1", limit=10)
    second = site.version(2, changed(first, f"{field.source}/v2"))
    os.rename(shutil.copyfile(second, f"{field.source}/new"), watched)
    receiver.wait_for("\"version\":2", limit=10)
    for tool in (sender, receiver):
        tool.process.signal(signal.SIGTERM)
        tool.wait(5, 0)
    check(sender.events("summary")[1]["objects"][0]["encoding"] == "delta", "no delta was made", sender)


@case("delta", receivers=1, changes=False)
def the_command_runs_once_for_a_version_that_is_published_again(field):
    site = Site(field)
    log = f"{field.directory}/ran"
    receiver = site.receive(1, "--follow", "--exec", HOOK + log)
    first, second = site.version(1, field.file("v1", MiB)), site.version(1, field.file("v2", MiB, seed=2))
    for path in (first, first, second, second):
        sender = field.send("--expect", "1", *site.group, path, state="none")   # each is version 1
        sender.wait(10, 0)
    time.sleep(0.2)
    receiver.process.signal(signal.SIGTERM)
    receiver.wait(5, 0)
    check(told_by_hook(log, 2) == [["1", digest(first)], ["1", digest(second)]], f"it ran as {told_by_hook(log, 2)}", receiver)


@case("delta", receivers=1, changes=False)
def kept_versions_stay_readable(field):
    site = Site(field)
    receiver = site.receive(1, "--follow", "--keep", "2")
    path = field.file("v1", MiB)
    for number in range(1, 5):
        path = site.version(number, changed(path, f"{field.source}/v{number}", seed=number))
        sender = site.send(path)
        sender.wait(10, 0)
    receiver.process.signal(signal.SIGTERM)
    receiver.wait(5, 0)
    site.has(receiver, path)
    kept = f"{receiver.output}/.ddf-versions/policy.versions"
    check(sorted(os.listdir(kept)) == ["2", "3"], f"kept are {os.listdir(kept)}", receiver)
    for number in (2, 3):
        field.also(f".ddf-versions/policy.versions/{number}", f"{field.source}/v{number}")


def with_a_version(field, size=8 * MiB):
    site = Site(field)
    old = site.version(1, field.file("step-100", size))
    site.publish(old)
    return site, old, changed(old, f"{field.source}/step-101", places=60000)


@case("delta", receivers=1, changes=False)
def a_receiver_that_is_killed_in_the_middle_of_a_delta_has_the_old_version_and_ends_right_later(field):
    site, old, new = with_a_version(field)
    receiver = site.receive(1)
    sender = site.send(new, "--rate", "500kbit", "--serve")
    receiver.wait_for('"phase":"receiving"')
    time.sleep(0.5)
    receiver.kill()
    site.has(receiver, old)
    sender.process.signal(signal.SIGTERM)
    sender.wait(5)
    site.version(2, new)
    _, (again,) = site.publish(new)
    check(encoding(again) == "delta", "it took the whole", again)


@case("delta", receivers=1, changes=False)
def a_sender_that_is_killed_in_the_middle_of_a_delta_harms_nobody(field):
    site, old, new = with_a_version(field)
    receiver = site.receive(1)
    sender = site.send(new, "--rate", "500kbit")
    receiver.wait_for('"phase":"receiving"')
    time.sleep(0.3)
    sender.kill()
    receiver.kill(signal.SIGTERM)
    site.has(receiver, old)
    # What is published next is another version: somebody may have that one.
    other = site.version(3, changed(old, f"{field.source}/step-102", seed=9))
    sender, (again,) = site.publish(other)
    check(sender.summary()["objects"][0]["version"] == 3, "the number was given twice", sender)
    check(encoding(again) == "delta", "it took the whole", again)


@case("delta", receivers=1, changes=False)
def a_holder_that_is_killed_has_remembered_what_it_published(field):
    site = Site(field)
    old = site.version(1, field.file("step-100", 4 * MiB))
    receiver = site.receive(1)
    sender = site.send(old, "--serve")
    receiver.wait(10, 0)
    deadline = time.monotonic() + 5
    while not os.path.isdir(f"{site.state}/bases") or not os.listdir(f"{site.state}/bases"):
        check(time.monotonic() < deadline, "nothing is remembered", sender)
        time.sleep(0.02)
    sender.kill()
    new = site.version(2, changed(old, f"{field.source}/step-101"))
    sender, (again,) = site.publish(new)
    check(encoding(again) == "delta" and arrived(again) < 200 * KiB, "the base is forgotten", sender, again)


@case("delta", receivers=1, changes=False)
def without_a_base_everybody_gets_the_whole(field):
    site, old, new = with_a_version(field, 4 * MiB)
    site.version(2, new)
    sender, (receiver,) = site.publish(new, "--base", "none", "--explain")
    check(encoding(sender) == encoding(receiver) == "whole", "the encoding", sender, receiver)
    check(arrived(receiver) > 4 * MiB, "it took a delta", receiver)


@case("delta", receivers=1, changes=False)
def a_file_overwritten_in_place_is_a_base_by_its_digests_and_by_its_copy(field):
    for keep, most in (("0", 5 * MiB), ("1", 200 * KiB)):
        site = Site(field, f"policy{keep}")
        path = field.file(f"latest{keep}", 8 * MiB)
        site.version(1, shutil.copyfile(path, f"{field.source}/{keep}-1"))
        site.publish(path, "--keep", keep)
        changed(path, path, seed=4, below=2 * MiB)   # the blocks of its first quarter
        site.version(2, path)
        sender, (receiver,) = site.publish(path, "--keep", keep)
        check(encoding(receiver) == "delta", "the encoding", receiver)
        check(arrived(receiver) < most, f"with --keep {keep} it took {arrived(receiver)} bytes", sender, receiver)


@case("delta", receivers=2, changes=False)
def a_receiver_whose_file_was_edited_gets_the_whole_and_the_others_the_delta(field):
    site = Site(field)
    old = site.version(1, field.file("step-100", 8 * MiB))
    _, receivers = site.publish(old, receivers=(1, 2))
    with open(f"{receivers[1].output}/policy", "r+b") as f:
        f.seek(MiB)
        f.write(b"edited by a user")
    site.version(1, shutil.copyfile(f"{receivers[1].output}/policy", f"{field.source}/edited"))
    new = site.version(2, changed(old, f"{field.source}/step-101"))
    sender, (holder, edited) = site.publish(new, receivers=(1, 2))
    check(encoding(holder) == "delta" and arrived(holder) < 200 * KiB, "the holder took more than the delta", holder)
    check(encoding(edited) == "whole", "an edited file was taken for a base", edited)


@case("delta", receivers=1, changes=False)
def another_object_may_be_the_base(field):
    base = Site(field, "base")
    old = base.version(1, field.file("base-model", 8 * MiB))
    base.publish(old)
    tuned = Site(field, "tuned")
    new = tuned.version(1, changed(old, f"{field.source}/tuned-model"))
    receiver = base.receive(1, "tuned")
    sender = tuned.send(new, "--base", "base@1")
    receiver.wait(10, 0)
    sender.wait(5, 0)
    tuned.has(receiver, new)
    check(encoding(receiver) == "delta" and arrived(receiver) < 200 * KiB, "it took the whole", sender, receiver)
    field.also("base", old)
    unknown = tuned.send(new, "--base", "base@7")
    unknown.wait(5, 1)
    unknown.says("base@7", "known are 1")


@case("delta", receivers=3, changes=False)
def a_group_switches_together_or_not_at_all(field):
    site = Site(field)
    old = site.version(1, field.file("step-100", 8 * MiB))
    site.publish(old, receivers=(1, 2))
    new = site.version(2, changed(old, f"{field.source}/step-101"))
    good, late = site.receive(1), site.receive(2)
    sender = site.send(new, "--commit", "group", "--wait", "1s", expect=3)   # a third is expected, and never comes
    for receiver in (good, late):
        receiver.wait(15, 5)
        site.has(receiver, old)
    sender.wait(10, 5)
    sender.says("the group did not switch: 2 of 3")
    together = [site.receive(1), site.receive(2), site.receive(3)]
    sender = site.send(new, "--commit", "group", "--deadline", "20s", expect=3)
    for receiver in together:
        receiver.wait(20, 0)
        site.has(receiver, new)
    sender.wait(10, 0)


main()
