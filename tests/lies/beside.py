# What disturbs a run from outside, on CPU 1 for some seconds: beside.py burst|ping-pong|hog SECONDS
import os
import sys
import time

what, seconds = sys.argv[1], float(sys.argv[2])
os.sched_setaffinity(0, {1})
end = time.monotonic() + seconds
if what != "hog":
    os.sched_setscheduler(0, os.SCHED_FIFO, os.sched_param(99))
print("ready", flush=True)


def take(length):
    until = time.monotonic() + length
    while time.monotonic() < until:
        pass


if what == "burst":
    # 12 ms at a time, longer than any deadline of the tasks allows.
    while time.monotonic() < end:
        take(0.012)
        time.sleep(0.05)
elif what == "ping-pong":
    # Two threads that hand the processor to each other in thousands of short turns.
    to_child, from_parent = os.pipe()
    to_parent, from_child = os.pipe()
    if os.fork() == 0:
        # So that the end of the other one is seen.
        os.close(from_parent)
        os.close(to_parent)
        while os.read(to_child, 1) == b"x":
            os.write(from_child, b"x")
        os._exit(0)
    os.close(to_child)
    os.close(from_child)
    while time.monotonic() < end:
        for _ in range(40):
            os.write(from_parent, b"x")
            os.read(to_parent, 1)
        time.sleep(0.002)
    os.write(from_parent, b"e")
elif what == "hog":
    take(seconds)
