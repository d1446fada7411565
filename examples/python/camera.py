"""A camera thread and a planner that say what they do: python3 camera.py, or horolog trace record --out camera.trace -- python3 camera.py."""

import queue
import sys
import threading
import time

import horolog

FRAMES = int(sys.argv[1]) if len(sys.argv) > 1 else 20
waiting: queue.Queue[int] = queue.Queue()


def camera() -> None:
    for frame in range(FRAMES):
        # The arrow from here to the plan of this frame.
        horolog.trace.event("camera/frame", frame=frame, size=(640 * 480, "B"), flow=frame)
        waiting.put(frame)
        horolog.trace.counter("camera/waiting", waiting.qsize(), unit="frames")
        time.sleep(0.002)


def plan(frame: int) -> None:
    with horolog.trace.span("plan", frame=frame, flow_end=frame):
        time.sleep(0.001)


thread = threading.Thread(target=camera)
thread.start()
for _ in range(FRAMES):
    plan(waiting.get())
thread.join()
print(f"{FRAMES} frames planned, {'recorded' if horolog.trace.is_recorded() else 'not recorded'}")
