//! The service over a disk that the test holds up, and over a real file.

use super::client::DiskClient;
use super::server::DiskServer;
use super::{Device, DiskError, DiskService, LONGEST_REQUEST, Named, Use, Work, measure};
use horolog_disk::{Policy, Reserve, Settings};
use horolog_sys::direct_file::{DIRECT_BLOCK, DirectFile};
use std::io::{Read as _, Write as _};
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};

/// A disk whose operations are told, and wait until the test lets them go.
struct Held {
    begun: SyncSender<u64>,
    go: Receiver<bool>,
    data: Vec<u8>,
}

impl Held {
    fn pass(&self, offset: u64) -> Result<(), horolog_sys::Error> {
        self.begun.send(offset / DIRECT_BLOCK).expect("the test waits");
        match self.go.recv() {
            Ok(true) => Ok(()),
            _ => Err(horolog_sys::Error::os("pread", 5, "is the disk in order?")),
        }
    }
}

impl Device for Held {
    fn length(&self) -> u64 {
        self.data.len() as u64
    }

    fn is_writable(&self) -> bool {
        true
    }

    fn read(&mut self, offset: u64, bytes: u64) -> Result<&[u8], horolog_sys::Error> {
        self.pass(offset)?;
        Ok(&self.data[offset as usize..(offset + bytes) as usize])
    }

    fn write(&mut self, offset: u64, data: &[u8]) -> Result<(), horolog_sys::Error> {
        self.pass(offset)?;
        self.data[offset as usize..offset as usize + data.len()].copy_from_slice(data);
        Ok(())
    }
}

const SECOND: u64 = 1_000_000_000;

/// Three hours long, so that no clock of a loaded machine plays a part.
fn reserves(operations: u64) -> Vec<Named> {
    let (longest_ns, period_ns) = (1_000 * SECOND, 10_800 * SECOND);
    let reserve = Reserve { operations, longest_ns, period_ns, deadline_ns: period_ns, start_ns: 0 };
    vec![Named { name: "camera".to_owned(), reserve }]
}

fn settings(policy: Policy) -> Settings {
    Settings { policy, chunk: DIRECT_BLOCK, longest_ns: 1_000 * SECOND }
}

fn held(policy: Policy) -> (DiskService, Receiver<u64>, SyncSender<bool>) {
    let (begun, told) = sync_channel(100);
    let (let_go, go) = sync_channel(100);
    let data = (0..16 * DIRECT_BLOCK).map(|byte| (byte / DIRECT_BLOCK) as u8).collect();
    let service = DiskService::start(Held { begun, go, data }, settings(policy), reserves(2), None);
    (service.expect("admitted"), told, let_go)
}

/// How many requests wait for their answers.
fn wait_for(service: &DiskService, requests: usize) {
    while service.shared.lock().jobs.len() < requests {
        std::thread::yield_now();
    }
}

/// The order of operations where one of best effort is under way and four wait, when a reserved request of two blocks comes.
fn order(policy: Policy) -> Vec<u64> {
    let (service, told, let_go) = held(policy);
    let read = |reserve, place: u64, blocks: u64| {
        let handle = service.handle(reserve).expect("it is there");
        let work = Work::Read { offset: place * DIRECT_BLOCK, bytes: blocks * DIRECT_BLOCK };
        move || {
            let answer = handle.ask(work).expect("done");
            for (block, data) in answer.data.chunks(DIRECT_BLOCK as usize).enumerate() {
                assert!(data.iter().all(|&byte| u64::from(byte) == place + block as u64));
            }
            assert!(!answer.finished.is_late());
        }
    };
    let mut order = Vec::new();
    std::thread::scope(|scope| {
        for (number, place) in [0, 1, 2, 3, 4].into_iter().enumerate() {
            scope.spawn(read(None, place, 1));
            wait_for(&service, number + 1);
            if number == 0 {
                order.push(told.recv().expect("it begins"));
            }
        }
        scope.spawn(read(Some("camera"), 10, 2));
        wait_for(&service, 6);
        for _ in 0..6 {
            let_go.send(true).expect("it waits");
            order.push(told.recv().expect("the next one"));
        }
        let_go.send(true).expect("it waits");
    });
    order
}

#[test]
fn a_reserved_request_waits_for_one_operation_alone() {
    assert_eq!(order(Policy::Edf), [0, 10, 11, 4, 3, 2, 1]);
    // In three hours there is slack for all the others.
    assert_eq!(order(Policy::JustInTime), [0, 1, 2, 3, 4, 10, 11]);
}

#[test]
fn operations_beyond_the_amount_wait_and_the_end_of_the_service_is_told() {
    let (service, told, let_go) = held(Policy::Edf);
    let handle = service.handle(Some("camera")).expect("it is there");
    let waiting = std::thread::spawn(move || handle.ask(Work::Read { offset: 0, bytes: 3 * DIRECT_BLOCK }));
    for place in [0, 1] {
        assert_eq!(told.recv(), Ok(place));
        let_go.send(true).expect("it waits");
    }
    // Best effort goes on meanwhile, and a disk that fails is told.
    let other = service.handle(None).expect("best effort");
    let_go.send(false).expect("it waits");
    let failed = other.ask(Work::Read { offset: 5 * DIRECT_BLOCK, bytes: DIRECT_BLOCK });
    assert!(failed.expect_err("it failed").to_string().contains("EIO"));
    assert_eq!(told.recv(), Ok(5));
    let uses = service.uses();
    assert_eq!(uses[0].tally.operations, 2, "the third waits for the next period");
    drop(service);
    assert!(matches!(waiting.join().expect("it ends"), Err(DiskError::Ended)));
    assert!(matches!(other.ask(Work::Read { offset: 0, bytes: DIRECT_BLOCK }), Err(DiskError::Ended)));
    assert!(told.try_recv().is_err());
}

#[test]
fn what_makes_no_sense_is_told() {
    let (service, _told, _go) = held(Policy::Edf);
    let handle = service.handle(None).expect("best effort");
    for (offset, bytes) in
        [(1, 4_096), (0, 4_095), (0, 0), (65_536, 4_096), (0, 69_632), (u64::MAX - 4_095, 4_096)]
    {
        let error = handle.ask(Work::Read { offset, bytes }).expect_err("refused");
        assert!(matches!(&error, DiskError::BadInput(why) if why.contains("multiples of 4096")), "{error}");
    }
    assert!(service.handle(Some("nobody")).expect_err("refused").to_string().contains("camera"));
    let (begun, _told) = sync_channel(1);
    let device = || Held { begun: begun.clone(), go: sync_channel(1).1, data: vec![0; 8_192] };
    let twice = [reserves(1), reserves(1)].concat();
    let start = |settings, reserves| DiskService::start(device(), settings, reserves, None).map(|_| ());
    assert!(matches!(start(settings(Policy::Edf), twice), Err(DiskError::BadInput(_))));
    let odd = Settings { chunk: 5_000, ..settings(Policy::Edf) };
    assert!(matches!(start(odd, Vec::new()), Err(DiskError::BadInput(_))));
    // 10 operations of 1,000 s and one in the way go into three hours less 200 s less than 11.
    let refused = start(settings(Policy::Edf), reserves(10)).expect_err("one too many").to_string();
    assert!(
        refused.contains("`camera` is not admitted") && refused.contains("9 operations would be"),
        "{refused}"
    );
    start(settings(Policy::Edf), reserves(9)).expect("admitted");
}

/// A file on a disk, where the machine can pass its cache by.
fn file(folder: &Path, is_writable: bool) -> Option<DirectFile> {
    let path = folder.join("file");
    let data: Vec<u8> = (0..64 * DIRECT_BLOCK).map(|byte| (byte / DIRECT_BLOCK) as u8).collect();
    std::fs::write(&path, data).expect("writable");
    DirectFile::open(&path, 65_536, is_writable).map_err(|error| println!("SKIPPED: {error}")).ok()
}

#[test]
fn programs_read_and_write_a_real_file_over_the_socket() {
    let folder = tempfile::tempdir_in(env!("CARGO_MANIFEST_DIR")).expect("a folder on a disk");
    let Some(mut device) = file(folder.path(), true) else { return };
    let found = measure(&mut device, DIRECT_BLOCK).expect("it answers");
    assert!(found.median_ns <= found.longest_ns && found.counted_ns == 2 * found.longest_ns, "{found:?}");
    let settings = Settings { policy: Policy::JustInTime, ..settings(Policy::Edf) };
    let service = DiskService::start(device, settings, reserves(4), None).expect("admitted");
    let socket = folder.path().join("socket");
    let server = DiskServer::bind(&socket).expect("a socket");
    assert!(DiskServer::bind(&socket).is_err(), "a service listens there");
    let stop = AtomicBool::new(false);
    std::thread::scope(|scope| {
        scope.spawn(|| server.serve(&service, &stop));
        let clients: Vec<_> = (0..5_u64)
            .map(|client| {
                let socket = &socket;
                scope.spawn(move || {
                    let mut disk =
                        DiskClient::connect(socket, (client == 0).then_some("camera")).expect("it listens");
                    assert_eq!((disk.length(), disk.chunk()), (64 * DIRECT_BLOCK, DIRECT_BLOCK));
                    let mut data = vec![0; 4 * DIRECT_BLOCK as usize];
                    let place = 8 * client;
                    let times = disk.read(place * DIRECT_BLOCK, &mut data).expect("inside");
                    assert!(
                        data.iter().zip(0..).all(|(&byte, at)| u64::from(byte) == place + at / DIRECT_BLOCK)
                    );
                    assert_eq!(times.promised_ns.is_some(), client == 0);
                    assert!(!times.is_late() && times.asked_ns <= times.done_ns);
                    if client > 0 {
                        let written = vec![100 + client as u8; DIRECT_BLOCK as usize];
                        disk.write(place * DIRECT_BLOCK, &written).expect("writable");
                        disk.read(place * DIRECT_BLOCK, &mut data).expect("inside");
                        assert!(data.starts_with(&written) && data[4_096] == place as u8 + 1);
                        assert!(
                            disk.read(1, &mut data).expect_err("not whole").to_string().contains("multiples")
                        );
                        // The connection goes on.
                        disk.read(0, &mut data).expect("inside");
                    }
                })
            })
            .collect();
        let nobody = DiskClient::connect(&socket, Some("nobody")).expect_err("no such reserve");
        assert!(matches!(&nobody, DiskError::BadInput(why) if why.contains("camera")), "{nobody}");
        clients.into_iter().for_each(|client| client.join().expect("all right"));
        strangers(&socket);
        stop.store(true, Ordering::Release);
    });
    assert!(matches!(
        DiskClient::connect(&folder.path().join("nowhere"), None),
        Err(DiskError::NoService(_))
    ));
    let Use { tally, .. } = service.uses()[0].clone();
    assert_eq!((tally.requests, tally.operations, tally.late), (1, 4, 0));
    drop(server);
    assert!(!socket.exists());
}

/// A client that speaks otherwise is answered, and others go on.
fn strangers(socket: &Path) {
    let answer = |text: &[u8]| {
        let mut stream = UnixStream::connect(socket).expect("it listens");
        stream.write_all(text).expect("it takes it");
        stream.shutdown(std::net::Shutdown::Write).expect("open");
        let mut answer = String::new();
        stream.read_to_string(&mut answer).map(|_| answer)
    };
    assert_eq!(answer(b"").expect("closed"), "");
    assert!(answer(b"GET / HTTP/1.1\r\n\r\n").expect("told").contains("error"));
    assert!(answer(b"{\"protocol\":\"horolog.disk/9\"}\n").expect("told").contains("horolog.disk/1"));
    let long = [b'x'; 10_000];
    assert!(answer(&long).is_err() || answer(&long).is_ok_and(|told| told.contains("cut off")));
    let hello = "{\"protocol\":\"horolog.disk/1\",\"reserve\":null}\n";
    let too_much = format!("{hello}{{\"kind\":\"write\",\"offset\":0,\"bytes\":{}}}\n", LONGEST_REQUEST + 1);
    assert!(answer(too_much.as_bytes()).expect("told").contains("at most"));
    // A write whose bytes do not come.
    let cut = format!("{hello}{{\"kind\":\"write\",\"offset\":0,\"bytes\":4096}}\nabc");
    assert!(answer(cut.as_bytes()).expect("told").contains("error"));
}

/// The service's own way out while a request waits: what is overdue then is late, what is not due is neither.
#[test]
fn what_is_overdue_in_the_end_is_late() {
    for (deadline_ns, late) in [(1_000_000, 1), (1_000 * SECOND, 0)] {
        let (begun, told) = sync_channel(100);
        let (let_go, go) = sync_channel(100);
        let held = Held { begun, go, data: vec![0; 16 * DIRECT_BLOCK as usize] };
        let settings = Settings { policy: Policy::Edf, chunk: DIRECT_BLOCK, longest_ns: 1_000 };
        let reserve =
            Reserve { operations: 2, longest_ns: 1_000, period_ns: 1_000 * SECOND, deadline_ns, start_ns: 0 };
        let reserves = vec![Named { name: "camera".to_owned(), reserve }];
        let mut service = DiskService::start(held, settings, reserves, None).expect("admitted");
        let (handle, shared) = (service.handle(Some("camera")).expect("it is there"), service.shared.clone());
        let work = Work::Read { offset: 0, bytes: 2 * DIRECT_BLOCK };
        let waiting = std::thread::spawn(move || handle.ask(work));
        assert_eq!(told.recv(), Ok(0));
        std::thread::sleep(std::time::Duration::from_millis(5));
        std::thread::scope(|scope| {
            scope.spawn(|| service.end());
            while !shared.lock().is_ending {
                std::thread::yield_now();
            }
            let_go.send(true).expect("it waits");
        });
        assert!(matches!(waiting.join().expect("it ends"), Err(DiskError::Ended)));
        let tally = service.uses()[0].tally;
        assert_eq!((tally.requests, tally.unanswered, tally.late), (0, 1, late));
        assert_eq!((tally.operations, tally.overran, tally.bytes), (1, 1, DIRECT_BLOCK));
    }
}

/// A held disk behind a socket, while `body` runs.
fn serving(body: impl FnOnce(&DiskService, &Path, &Receiver<u64>, &SyncSender<bool>)) -> Vec<Use> {
    let folder = tempfile::tempdir().expect("a folder");
    let socket = folder.path().join("socket");
    let (mut service, told, let_go) = held(Policy::Edf);
    let server = DiskServer::bind(&socket).expect("a socket");
    let stop = AtomicBool::new(false);
    std::thread::scope(|scope| {
        scope.spawn(|| server.serve(&service, &stop));
        body(&service, &socket, &told, &let_go);
        stop.store(true, Ordering::Release);
    });
    service.end();
    service.uses()
}

#[test]
fn a_read_of_a_client_that_is_gone_is_called_off_and_its_write_is_not() {
    let hello = "{\"protocol\":\"horolog.disk/1\",\"reserve\":null}\n";
    let uses = serving(|service, socket, told, let_go| {
        let send = |text: &str, data: &[u8]| {
            let mut stream = UnixStream::connect(socket).expect("it listens");
            stream.write_all(&[format!("{hello}{text}\n").as_bytes(), data].concat()).expect("it takes it");
            stream
        };
        let read = send("{\"kind\":\"read\",\"offset\":0,\"bytes\":12288}", b"");
        assert_eq!(told.recv(), Ok(0));
        let write = send("{\"kind\":\"write\",\"offset\":32768,\"bytes\":8192}", &[7; 8_192]);
        wait_for(service, 2);
        drop((read, write));
        while service.shared.lock().jobs.len() > 1 {
            std::thread::yield_now();
        }
        for place in [8, 9] {
            let_go.send(true).expect("it waits");
            assert_eq!(told.recv(), Ok(place), "the write");
        }
        let_go.send(true).expect("it waits");
        while service.uses()[1].tally.requests == 0 {
            std::thread::yield_now();
        }
    });
    let tally = uses[1].tally;
    assert_eq!((tally.requests, tally.unanswered, tally.operations), (1, 1, 3));
}

#[test]
fn bytes_of_an_operation_that_failed_do_not_count() {
    let (mut service, _told, let_go) = held(Policy::Edf);
    let handle = service.handle(None).expect("best effort");
    [true, false, true].iter().for_each(|&passes| let_go.send(passes).expect("it waits"));
    handle.ask(Work::Read { offset: 0, bytes: 3 * DIRECT_BLOCK }).expect_err("the second one fails");
    service.end();
    let tally = service.uses()[1].tally;
    assert_eq!((tally.operations, tally.bytes, service.failed()), (3, 2 * DIRECT_BLOCK, 1));
}

#[test]
fn what_is_at_the_path_of_the_socket_later_stays() {
    let folder = tempfile::tempdir().expect("a folder");
    let socket = folder.path().join("socket");
    let first = DiskServer::bind(&socket).expect("a socket");
    std::fs::remove_file(&socket).expect("it is there");
    std::fs::write(&socket, "mine").expect("writable");
    drop(first);
    assert_eq!(std::fs::read_to_string(&socket).expect("it stays"), "mine");
    std::fs::remove_file(&socket).expect("it is there");
    let first = DiskServer::bind(&socket).expect("a socket");
    std::fs::remove_file(&socket).expect("it is there");
    let second = DiskServer::bind(&socket).expect("another one");
    drop(first);
    assert!(UnixStream::connect(&socket).is_ok(), "the second one's");
    drop(second);
    assert!(!socket.exists());
}

#[test]
fn a_peer_that_is_no_service_is_told() {
    let folder = tempfile::tempdir().expect("a folder");
    let socket = folder.path().join("socket");
    let listener = std::os::unix::net::UnixListener::bind(&socket).expect("a socket");
    let answers: [&[u8]; 2] = [b"220 ready\r\n", b""];
    std::thread::scope(|scope| {
        scope.spawn(|| {
            for answer in answers {
                // Closed before what the client says is read: the connection is reset.
                let (mut stream, _) = listener.accept().expect("it connects");
                stream.write_all(answer).expect("it takes it");
                while !answer.is_empty() && stream.read(&mut [0; 100]).is_ok_and(|some| some > 0) {}
            }
        });
        let strange = DiskClient::connect(&socket, None).expect_err("no service");
        assert!(
            matches!(&strange, DiskError::BadInput(why) if why.contains("does not speak horolog.disk/1")),
            "{strange}"
        );
        let reset = DiskClient::connect(&socket, None).expect_err("no service");
        assert!(matches!(&reset, DiskError::Ended), "{reset}");
    });
}
