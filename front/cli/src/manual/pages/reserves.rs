//! The pages of `horolog reserve`.

use super::*;

const COUNTERS: (&str, &str) = ("counters.json", "What `--counters` writes: an object a line.");

pub(super) const PAGES: &[Page] = &[
    Page {
        verb: "reserve",
        examples: &[
            (
                "horolog reserve run --cpu '2 ms / 10 ms' -- ./program",
                "A program that gets two of every ten milliseconds.",
            ),
            ("horolog reserve list", "What is granted, and to whom."),
        ],
        exit: RESERVED,
        files: &[RESERVES],
    },
    Page {
        verb: "reserve create",
        examples: &[(
            "horolog reserve create --cpu '1 ms / 5 ms by 3 ms'",
            "One millisecond of every five, before three are over.",
        )],
        exit: RESERVED,
        files: &[RESERVES],
    },
    Page {
        verb: "reserve resize",
        examples: &[(
            "horolog reserve resize --cpu '2 ms / 10 ms' 1",
            "Another amount for reserve 1, or the old one where that is refused.",
        )],
        exit: RESERVED,
        files: &[RESERVES],
    },
    Page {
        verb: "reserve delete",
        examples: &[("horolog reserve delete 1", "Its threads are scheduled as before.")],
        exit: RESERVED,
        files: &[RESERVES],
    },
    Page {
        verb: "reserve attach",
        examples: &[("horolog reserve attach 1 4711", "Thread 4711 gets the amount of reserve 1.")],
        exit: RESERVED,
        files: &[RESERVES],
    },
    Page {
        verb: "reserve detach",
        examples: &[("horolog reserve detach 1 4711", "The thread is scheduled as before.")],
        exit: RESERVED,
        files: &[RESERVES],
    },
    Page {
        verb: "reserve list",
        examples: &[("horolog reserve list --format json", "Every reserve, for a script.")],
        exit: RESERVED,
        files: &[RESERVES],
    },
    Page {
        verb: "reserve show",
        examples: &[("horolog reserve show 1", "Reserve 1 and its threads.")],
        exit: RESERVED,
        files: &[RESERVES],
    },
    Page {
        verb: "reserve top",
        examples: &[("horolog reserve top", "What each thread uses of its amount, live.")],
        exit: RESERVED,
        files: &[RESERVES],
    },
    Page {
        verb: "reserve disk",
        examples: &[(
            "horolog reserve disk serve disk.img --reserve 'camera: 64 KiB / 40 ms by 20 ms' --socket disk.sock",
            "Reads of the program `camera` come before others, as far as it has reserved them.",
        )],
        exit: DISK,
        files: &[DISK_SOCKET],
    },
    Page {
        verb: "reserve disk serve",
        examples: &[
            (
                "horolog reserve disk serve disk.img --reserve 'camera: 64 KiB / 40 ms by 20 ms' --socket disk.sock",
                "64 KiB in every 40 ms, each within 20 ms, until Ctrl-C; then what became of it.",
            ),
            (
                "horolog reserve disk serve disk.img --reserve 'log: 5 ms / 100 ms' --longest '2 ms' --dry-run",
                "Whether two operations of up to 2 ms in every 100 ms are admitted.",
            ),
        ],
        exit: DISK,
        files: &[DISK_SOCKET],
    },
    Page {
        verb: "reserve disk read",
        examples: &[
            (
                "horolog reserve disk read --socket disk.sock --reserve camera --every 40ms --count 100",
                "A hundred reads at random places, and how long they took.",
            ),
            (
                "horolog reserve disk read --socket disk.sock --offset 0 --bytes 1M --output part.bin",
                "The first MiB, without a reserve.",
            ),
        ],
        exit: DISK,
        files: &[DISK_SOCKET],
    },
    Page {
        verb: "reserve network",
        examples: &[(
            "sudo horolog reserve network run --device eth0 --port udp:5000 --amount '4500 B / 4 ms' -- ./program",
            "A program whose packets have a queue and a budget of their own.",
        )],
        exit: NETWORKED,
        files: &[COUNTERS],
    },
    Page {
        verb: "reserve network run",
        examples: &[
            (
                "sudo horolog reserve network run --device eth0 --port udp:5000 --amount '4500 B / 4 ms' -- ./program",
                "A queue and a budget of its own; what became of the packets is told in the end.",
            ),
            (
                "sudo horolog reserve network run --device eth0 --port 5000 --amount '1 MB / 1 s' --unreserved '100 kB / 10 ms' --counters c.json --every 1s -- ./program",
                "A cap on all other packets, and the counters each second.",
            ),
        ],
        exit: NETWORKED,
        files: &[COUNTERS],
    },
    Page {
        verb: "reserve run",
        examples: &[
            (
                "horolog reserve run --cpu '2 ms / 10 ms' -- ./program",
                "A program that gets two of every ten milliseconds.",
            ),
            (
                "sudo horolog reserve run --no-daemon --cpu '2 ms / 10 ms' -- ./program",
                "The same where no daemon runs.",
            ),
        ],
        exit: &[(0, "The command ended with 0; else its status."), REFUSED, BAD, NO_DAEMON],
        files: &[RESERVES],
    },
];
