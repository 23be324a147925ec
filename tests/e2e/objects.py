"""Every size, every name, every shape of what is published arrives as it was: files, folders, many of them."""
# timeout: 240
import os
import stat
import subprocess
import sys

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from _field import GiB, KiB, MiB, case, check, lab, main  # noqa: E402


@case("18 19", changes=False)
def sizes_around_the_boundaries_arrive_exactly(field):
    block = 64 * KiB
    sizes = [0, 1, block - 1, block, block + 1, 3 * block - 1, 3 * block, 3 * block + 1, 20 * MiB + 1]
    names = [f"{n}.bin" for n in sizes]
    for n, name in zip(sizes, names):
        field.file(name, n)
    receiver = field.receive()
    sender = field.send("--expect", "1", *names)
    field.complete(receiver, *names)
    sender.wait(5, 0)
    check([o["bytes"] for o in receiver.summary()["objects"]] == sizes, "sizes in the summary", receiver)


@case("18", changes=False)
def an_empty_file_alone_is_complete_at_once(field):
    field.file("empty", 0)
    receiver = field.receive()
    sender = field.send("--expect", "1", "empty")
    field.complete(receiver, "empty", limit=5)
    sender.wait(5, 0)


@case(changes=False)
def a_folder_keeps_its_tree_its_empty_folders_and_its_modes(field):
    field.file("tree/a.bin", 200 * KiB)
    field.file("tree/deep/er/b.bin", 70 * KiB)
    field.file("tree/deep/zero", 0)
    field.file("tree/run.sh", 100)
    os.makedirs(f"{field.source}/tree/nothing/in/here")
    os.chmod(f"{field.source}/tree/run.sh", 0o755)
    receiver = field.receive()
    sender = field.send("--expect", "1", "tree")
    field.complete(receiver, "tree")
    sender.wait(5, 0)
    check(os.path.isdir(f"{receiver.output}/tree/nothing/in/here"), "an empty folder is missing", receiver)
    check(stat.S_IMODE(os.stat(f"{receiver.output}/tree/run.sh").st_mode) == 0o755, "run.sh is not executable", receiver)
    check(stat.S_IMODE(os.stat(f"{receiver.output}/tree/a.bin").st_mode) == 0o644, "a.bin has another mode", receiver)


@case(changes=False)
def an_empty_folder_arrives(field):
    os.makedirs(f"{field.source}/hollow")
    receiver = field.receive()
    sender = field.send("--expect", "1", "hollow")
    field.complete(receiver, limit=10)
    sender.wait(5, 0)
    check(os.path.isdir(f"{receiver.output}/hollow"), "the folder is missing", receiver)


@case(receivers=2, changes=False)
def a_receiver_takes_only_the_names_that_match(field):
    names = ["weights.bin", "notes.txt", "tokens.bin"]
    for name in names:
        field.file(name, 300 * KiB)
    some = field.receive("*.bin")
    every = field.receive(host=2)
    sender = field.send("--expect", "2", *names)
    field.complete(some, "weights.bin", "tokens.bin")
    field.complete(every, *names)
    sender.wait(5, 0)


@case(changes=False)
def a_receiver_whose_patterns_match_nothing_waits_and_ends_with_3(field):
    field.file("model.bin", 1000)
    receiver = field.receive("other*", timeout="3s")
    sender = field.send("--wait", "1s", "model.bin")
    receiver.wait(8, 3)
    sender.wait(5, 3)
    field.nothing_visible(receiver)


@case(changes=False)
def names_with_spaces_utf8_255_bytes_and_a_leading_dash_arrive(field):
    names = ["two  words", "ünïcödé ☃", "n" * 255, "é" * 127, "-dash", "--group", "[a,b]", "'\"$`\\", ".hidden"]
    for name in names:
        field.file(name, 1000 + len(name))
    receiver = field.receive()
    sender = field.send("--expect", "1", "--", *names)
    field.complete(receiver, *names)
    sender.wait(5, 0)


@case(changes=False)
def the_name_given_is_the_name_that_arrives(field):
    path = field.file("local.bin", 100 * KiB)
    field.also("acme/policy", path)
    receiver = field.receive("acme/*")
    sender = field.send("--expect", "1", "--name", "acme/policy", "--object-version", "41", "local.bin")
    field.complete(receiver, "acme/policy")
    sender.wait(5, 0)
    check(receiver.summary()["objects"][0]["version"] == 41, "version", receiver)


@case(changes=False)
def ten_thousand_small_files_in_one_folder_arrive(field):
    os.makedirs(f"{field.source}/many")
    for i in range(10_000):
        with open(f"{field.source}/many/{i:05}.txt", "w") as f:
            f.write(f"file {i}\n" * (i % 50))
    receiver = field.receive()
    sender = field.send("--expect", "1", "many")
    field.complete(receiver, "many", limit=40)
    sender.wait(10, 0)


@case(receivers=2, changes=False)
def a_thousand_files_are_a_thousand_objects_of_one_session(field):
    names = [f"object-{i:04}" for i in range(1000)]
    for i, name in enumerate(names):
        with open(f"{field.source}/{name}", "w") as f:
            f.write(f"{name}\n" * (i % 97))
    receivers = [field.receive(host=1), field.receive(host=2)]
    sender = field.send("--expect", "2", *names)
    for receiver in receivers:
        field.complete(receiver, *names, limit=30)
        check(len(receiver.events("object")) == 1000, "one event for each object", receiver)
    sender.wait(10, 0)


@case("20", changes=False, limit=110)
def more_than_four_gibibytes_arrive_exactly(field):
    size = 4 * GiB + 64 * KiB + 1   # slow: the holes are read and sent as zeros
    free = os.statvfs(field.directory)
    with open("/proc/meminfo") as f:
        memory = int(next(line for line in f if line.startswith("MemAvailable")).split()[1]) * KiB
    if min(free.f_bavail * free.f_frsize, memory) < size + GiB:
        raise lab.Skip("needs 5 GiB of memory")
    path = f"{field.source}/huge.bin"
    with open(path, "wb") as f:
        for at in (0, 4 * GiB - 5, size - 11):
            f.seek(at)
            f.write(b"0123456789a")
    receiver = field.receive()
    sender = field.send("--expect", "1", "huge.bin")
    receiver.wait(100, 0)
    sender.wait(10, 0)
    arrived = f"{receiver.output}/huge.bin"
    check(os.path.getsize(arrived) == size, "its size is another", receiver)
    check(subprocess.run(["cmp", path, arrived]).returncode == 0, "its bytes are others", receiver)
    os.truncate(path, 0)
    os.truncate(arrived, 0)   # compared already; the memory is worth more than a second look


main()
