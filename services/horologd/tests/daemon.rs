//! The daemon as a program, on this machine's kernel: grants, refusals, deaths, and clients that misbehave.

use horolog_daemon::client::{Client, ClientError};
use horolog_daemon::frame::LONGEST_FRAME;
use horolog_daemon::host::{granted, process};
use horolog_daemon::protocol::{Bind, Create, Event, Named, PartAsked, Reserves, Shown};
use horolog_reserve::Amount;
use serde_json::{Value, json};
use std::io::{Read as _, Write as _};
use std::os::unix::net::UnixStream;
use std::path::PathBuf;
use std::process::{Child, Command};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

/// One test at a time: they share the kernel's bandwidth.
fn alone() -> MutexGuard<'static, ()> {
    static ALONE: Mutex<()> = Mutex::new(());
    let alone = ALONE.lock().unwrap_or_else(PoisonError::into_inner);
    // Some kernels (6.18) take the share of a killed thread away twice where another thread gets one before that is over.
    std::thread::sleep(Duration::from_millis(150));
    alone
}

struct Daemon {
    process: Child,
    folder: tempfile::TempDir,
    lease: &'static str,
}

impl Daemon {
    fn start(lease: &'static str) -> Daemon {
        let folder = tempfile::tempdir().expect("a folder");
        let process =
            launch(&folder.path().join("socket"), &folder.path().join("state"), lease, folder.path());
        Daemon { process, folder, lease }
    }

    fn socket(&self) -> PathBuf {
        self.folder.path().join("socket")
    }

    fn again(&mut self) {
        let folder = self.folder.path();
        self.process = launch(&folder.join("socket"), &folder.join("state"), self.lease, folder);
    }

    fn die(&mut self) {
        self.process.kill().expect("it lives");
        self.process.wait().expect("it ends");
    }

    fn client(&self) -> Client {
        Client::connect(&self.socket()).expect("it listens")
    }
}

impl Drop for Daemon {
    fn drop(&mut self) {
        horolog_sys::process::terminate(self.process.id());
        let _ = self.process.wait();
    }
}

fn launch(socket: &std::path::Path, state: &std::path::Path, lease: &str, folder: &std::path::Path) -> Child {
    let config = folder.join("horologd.toml");
    std::fs::write(&config, format!("socket = {socket:?}\nstate = {state:?}\nlease = {lease:?}\n"))
        .expect("room");
    let _ = std::fs::remove_file(socket);
    let process =
        Command::new(env!("CARGO_BIN_EXE_horologd")).arg("--config").arg(&config).spawn().expect("starts");
    within("the daemon listens", || Client::connect(socket).is_ok());
    process
}

fn within(what: &str, holds: impl Fn() -> bool) {
    let until = Instant::now() + Duration::from_secs(30);
    while !holds() {
        assert!(Instant::now() < until, "{what}: not within 30 s");
        std::thread::sleep(Duration::from_millis(10));
    }
}

/// A program that never sleeps; ends with the test.
struct Spinner(Child);

impl Spinner {
    fn start() -> Spinner {
        Spinner(Command::new("sh").args(["-c", "while :; do :; done"]).spawn().expect("a shell"))
    }
}

impl Drop for Spinner {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

fn amount(text: &str) -> Amount {
    text.parse().expect("an amount")
}

fn part(text: &str) -> PartAsked {
    PartAsked { amount: amount(text), threads: 1, kind: horolog_reserve::Kind::Hard, name: None }
}

fn create(client: &mut Client, text: &str, kept: bool) -> Shown {
    let made: Reserves =
        client.call("Create", Create { parts: vec![part(text)], kept }).expect("there is room");
    made.reserves.into_iter().next().expect("one")
}

#[derive(serde::Deserialize)]
struct Reply {
    reserve: Shown,
}

fn attach(client: &mut Client, id: u64, tid: u32) -> Result<Shown, ClientError> {
    client.call::<Reply>("Attach", Bind { id, tid, process: false }).map(|reply| reply.reserve)
}

/// Whether this machine enforces reserves and has room for them now; says why not.
fn may_run() -> bool {
    if let Err(error) = horolog_sys::machine::may_use_deadline() {
        println!("SKIPPED: {error}");
        return false;
    }
    true
}

#[test]
fn a_program_that_never_sleeps_gets_its_amount_and_not_more() {
    let _alone = alone();
    if !may_run() {
        return;
    }
    let daemon = Daemon::start("1 s");
    let _load: Vec<Spinner> = (0..4).map(|_| Spinner::start()).collect();
    let spinner = Spinner::start();
    let mut client = daemon.client();
    let id = create(&mut client, "2 ms / 10 ms", true).id;
    let shown = attach(&mut client, id, spinner.0.id()).expect("the kernel grants it");
    assert_eq!(shown.bound[0].granted, Some(amount("2 ms / 10 ms")));
    let mut shares = Vec::new();
    for _ in 0..6 {
        let look = |client: &mut Client| {
            client.call::<Reply>("Show", Named { id }).expect("shown").reserve.bound[0].clone()
        };
        let before = look(&mut client);
        std::thread::sleep(Duration::from_secs(1));
        let after = look(&mut client);
        let used = after.executed_ns.as_ns() - before.executed_ns.as_ns();
        shares.push(used as f64 / (after.bound_ns.as_ns() - before.bound_ns.as_ns()) as f64);
        if shares.last().is_some_and(|share| (0.18..0.22).contains(share)) {
            return;
        }
    }
    panic!("shares of a CPU {shares:?}, 0.2 granted");
}

#[test]
fn what_the_daemon_changed_is_put_back_when_it_is_killed_and_kept_where_it_comes_back() {
    let _alone = alone();
    if !may_run() {
        return;
    }
    let mut daemon = Daemon::start("500 ms");
    let spinner = Spinner::start();
    let tid = spinner.0.id();
    let id = create(&mut daemon.client(), "1 ms / 20 ms", true).id;
    attach(&mut daemon.client(), id, tid).expect("granted");
    daemon.die();
    assert!(granted(tid).is_some(), "the kernel goes on enforcing while the lease waits");
    within("the lease puts it back", || granted(tid).is_none());
    daemon.again();
    let all: Reserves = daemon.client().call("List", json!({})).expect("listed");
    assert_eq!((all.reserves.len(), all.reserves[0].id), (1, id));
    assert_eq!(all.reserves[0].bound[0].granted, Some(amount("1 ms / 20 ms")), "it is applied again");
    // In order: put back at once.
    horolog_sys::process::terminate(daemon.process.id());
    daemon.process.wait().expect("it ends");
    assert_eq!(granted(tid), None);
    daemon.again();
    // It listens before it has taken over.
    within("it is applied again", || granted(tid).is_some());
    let _: Value = daemon.client().call("Delete", Named { id }).expect("deleted");
    assert_eq!(granted(tid), None);
}

#[test]
fn a_reserve_ends_with_its_client_and_a_seat_with_its_thread() {
    let _alone = alone();
    if !may_run() {
        return;
    }
    let daemon = Daemon::start("1 s");
    let spinner = Spinner::start();
    let kept = create(&mut daemon.client(), "1 ms / 20 ms", true).id;
    let gone = Spinner::start();
    attach(&mut daemon.client(), kept, gone.0.id()).expect("granted");
    drop(gone);
    let bound = || {
        let all: Reserves = daemon.client().call("List", json!({})).expect("listed");
        all.reserves.iter().map(|one| one.bound.len()).sum::<usize>()
    };
    within("the seat is free", || bound() == 0);
    // A client of its own, killed while it holds a reserve to which another process is bound.
    let script = "import socket,sys,time,json\n\
        s=socket.socket(socket.AF_UNIX); s.connect(sys.argv[1])\n\
        a=dict(budget_ns=1000000,period_ns=20000000,deadline_ns=20000000)\n\
        def call(m,p):\n s.sendall(json.dumps(dict(method='io.horolog.Reserve.'+m,parameters=p)).encode()+b'\\0'); return json.loads(s.recv(65536)[:-1])\n\
        i=call('Create',dict(parts=[dict(amount=a)]))['parameters']['reserves'][0]['id']\n\
        call('Attach',dict(id=i,tid=int(sys.argv[2])))\ntime.sleep(60)\n";
    let holder = Command::new("python3")
        .args(["-c", script])
        .arg(daemon.socket())
        .arg(spinner.0.id().to_string())
        .spawn();
    let Ok(mut holder) = holder else {
        println!("SKIPPED: no python3");
        return;
    };
    within("the client has bound it", || granted(spinner.0.id()).is_some());
    holder.kill().expect("it lives");
    holder.wait().expect("it ends");
    within("its reserve is gone", || granted(spinner.0.id()).is_none());
    let all: Reserves = daemon.client().call("List", json!({})).expect("listed");
    assert_eq!(all.reserves.iter().map(|one| one.id).collect::<Vec<_>>(), [kept]);
}

#[test]
fn what_cannot_be_granted_is_refused_with_what_would_be() {
    let _alone = alone();
    if !may_run() {
        return;
    }
    let daemon = Daemon::start("1 s");
    let mut client = daemon.client();
    let refused = |client: &mut Client, parts: Vec<PartAsked>| -> horolog_daemon::protocol::ErrorReply {
        match client.call::<Reserves>("Create", Create { parts, kept: true }) {
            Err(ClientError::Refused(reply)) => reply,
            other => panic!("{other:?}"),
        }
    };
    let reply = refused(&mut client, vec![part("1 ms / 20 ms"), part("99 ms / 100 ms")]);
    assert!(reply.is("Refused"), "{reply:?}");
    assert_eq!(reply.parameters["refusal"]["reason"], "no-room");
    let largest: Amount =
        serde_json::from_value(reply.parameters["refusal"]["largest"].clone()).expect("some");
    let all: Reserves = client.call("List", json!({})).expect("listed");
    assert_eq!(all.reserves, [], "all or nothing");
    let both = vec![part("1 ms / 20 ms"), PartAsked { amount: largest, ..part("1 ms / 20 ms") }];
    let made: Reserves =
        client.call("Create", Create { parts: both, kept: true }).expect("what was named is granted");
    let id = made.reserves[0].id;
    let soft = PartAsked { kind: horolog_reserve::Kind::Soft, ..part("1 ms / 20 ms") };
    assert!(refused(&mut client, vec![soft]).message().contains("horolog serve"));
    for (tid, word) in
        [(1, "process 1"), (2, "kernel"), (daemon.process.id(), "daemon itself"), (4_000_000, "no thread")]
    {
        match attach(&mut client, id, tid) {
            Err(ClientError::Refused(reply)) => {
                assert!(reply.is("NotAllowed") && reply.message().contains(word), "{reply:?}");
            }
            other => panic!("{tid}: {other:?}"),
        }
    }
    // One thread, one reserve; a second seat there is none.
    let (one, two) = (Spinner::start(), Spinner::start());
    attach(&mut client, id, one.0.id()).expect("granted");
    for tid in [one.0.id(), two.0.id()] {
        assert!(
            matches!(attach(&mut client, id, tid), Err(ClientError::Refused(reply)) if reply.is("Refused"))
        );
    }
    assert!(process(one.0.id()).is_some());
}

#[test]
fn what_a_bound_thread_takes_beyond_its_reserve_is_counted() {
    let _alone = alone();
    if !may_run() {
        return;
    }
    let daemon = Daemon::start("1 s");
    let mut client = daemon.client();
    let mut watcher = daemon.client();
    watcher.send("Watch", json!({}), true).expect("taken");
    let spinner = Spinner::start();
    let id = create(&mut client, "5 ms / 100 ms", true).id;
    attach(&mut client, id, spinner.0.id()).expect("granted");
    let largest = |client: &mut Client| -> Amount {
        let parts = vec![part("100 ms / 100 ms")];
        let Err(ClientError::Refused(reply)) =
            client.call::<Reserves>("Create", Create { parts, kept: true })
        else {
            panic!("a budget and a tick do not fit before a deadline of the budget");
        };
        serde_json::from_value(reply.parameters["refusal"]["largest"].clone()).expect("some")
    };
    let before = largest(&mut client);
    let more = horolog_sys::deadline::Reservation {
        runtime: amount("40 ms / 100 ms").budget,
        deadline: amount("40 ms / 100 ms").deadline,
        period: amount("40 ms / 100 ms").period,
        reclaim: false,
        signal_overrun: false,
        reset_on_fork: true,
    };
    horolog_sys::deadline::set_deadline(spinner.0.id(), &more).expect("there is room");
    let after = largest(&mut client);
    if horolog_daemon::host::Host::probe().domain.processors() <= 2 {
        assert!(after.budget < before.budget, "{after} is granted as {before} was");
    }
    loop {
        let event: Event = watcher.receive(Duration::from_secs(20)).expect("an event of the change");
        if event.what == "changed" && event.id == id {
            break;
        }
    }
}

#[test]
fn names_are_short_and_without_control_characters() {
    let _alone = alone();
    let daemon = Daemon::start("1 s");
    let mut client = daemon.client();
    let mut named = |name: &str| {
        let parts = vec![PartAsked { name: Some(name.to_owned()), ..part("100 us / 1 s") }];
        client.call::<Reserves>("Create", Create { parts, kept: false })
    };
    if let Err(ClientError::Refused(reply)) = named("arm")
        && reply.is("NotAllowed")
    {
        println!("SKIPPED: {}", reply.message());
        return;
    }
    named(&"y".repeat(64)).expect("64 bytes");
    for (name, words) in
        [("y".repeat(65).as_str(), "65 bytes"), ("a\nb", "\\n"), ("\u{1b}[2J", "\\u{1b}"), (" ", "empty")]
    {
        match named(name) {
            Err(ClientError::Refused(reply)) => assert!(reply.message().contains(words), "{reply:?}"),
            other => panic!("{name:?}: {other:?}"),
        }
    }
}

#[test]
fn a_caller_from_another_pid_namespace_binds_no_stranger() {
    let _alone = alone();
    if !may_run() {
        return;
    }
    let daemon = Daemon::start("1 s");
    let spinner = Spinner::start();
    let id = create(&mut daemon.client(), "1 ms / 20 ms", true).id;
    let script = "import socket,sys,json\n\
        s=socket.socket(socket.AF_UNIX); s.connect(sys.argv[1])\n\
        p=dict(id=int(sys.argv[2]),tid=int(sys.argv[3]))\n\
        s.sendall(json.dumps(dict(method='io.horolog.Reserve.Attach',parameters=p)).encode()+b'\\0')\n\
        print(s.recv(65536)[:-1].decode())\n";
    let asked = Command::new("unshare")
        .args(["--pid", "--fork", "python3", "-c", script])
        .arg(daemon.socket())
        .args([id.to_string(), spinner.0.id().to_string()])
        .output();
    match asked {
        Ok(said) if said.status.success() => {
            let said = String::from_utf8_lossy(&said.stdout);
            assert!(said.contains("NotAllowed") && said.contains("PID namespace"), "{said}");
        }
        _ => println!("SKIPPED: no python3, or no PID namespace can be made"),
    }
    assert_eq!(granted(spinner.0.id()), None);
}

#[test]
fn clients_that_misbehave_harm_nobody() {
    let _alone = alone();
    let daemon = Daemon::start("1 s");
    let raw = |bytes: &[u8]| {
        let mut socket = UnixStream::connect(daemon.socket()).expect("listens");
        socket.set_read_timeout(Some(Duration::from_secs(20))).expect("allowed");
        // The daemon may close before it has read all.
        let _ = socket.write_all(bytes);
        let _ = socket.shutdown(std::net::Shutdown::Write);
        let mut answer = Vec::new();
        let _ = socket.read_to_end(&mut answer);
        String::from_utf8_lossy(&answer).into_owned()
    };
    assert_eq!(raw(b"{\"method\":\"io.horolog.Reserve.List\""), "", "a cut frame is no call");
    assert!(raw(b"no json\0").contains("BadRequest"));
    assert!(raw(&[b'['; 3_000]).is_empty());
    let mut deep = vec![b'['; 40_000];
    deep.push(0);
    assert!(raw(&deep).contains("BadRequest"), "depth is bounded");
    let mut long = vec![b' '; 2 * LONGEST_FRAME];
    long.push(0);
    let answer = raw(&long);
    assert!(answer.is_empty() || answer.contains("more than"), "{answer}");
    assert!(raw(b"{\"method\":\"x\"}\0").contains("MethodNotFound"));
    assert!(
        raw(b"{\"method\":\"io.horolog.Reserve.Show\",\"parameters\":{\"id\":-1}}\0")
            .contains("InvalidParameter")
    );
    assert!(raw(b"{\"method\":\"org.varlink.service.GetInfo\"}\0").contains("io.horolog.Reserve"));
    assert!(raw(b"{\"method\":\"io.horolog.Reserve.Watch\"}\0").contains("BadRequest"));
    // Watchers that never read, and connections that say nothing.
    let silent: Vec<UnixStream> =
        (0..200).filter_map(|_| UnixStream::connect(daemon.socket()).ok()).collect();
    let busy =
        Client::connect(&daemon.socket()).and_then(|mut client| client.call::<Reserves>("List", json!({})));
    match busy {
        Err(ClientError::Refused(reply)) => assert!(reply.is("Busy"), "{reply:?}"),
        other => panic!("their number is bounded, and it says so: {other:?}"),
    }
    drop(silent);
    within("it serves again", || {
        Client::connect(&daemon.socket())
            .and_then(|mut client| client.call::<Reserves>("List", json!({})))
            .is_ok()
    });
    let mut watcher = daemon.client();
    watcher.send("Watch", json!({}), true).expect("taken");
    let mut lazy = daemon.client();
    lazy.send("Watch", json!({}), true).expect("taken");
    std::thread::sleep(Duration::from_millis(200));
    let mut client = daemon.client();
    match client.call::<Reserves>("Create", Create { parts: vec![part("1 ms / 50 ms")], kept: true }) {
        Ok(made) => {
            let event: Event = watcher.receive(Duration::from_secs(20)).expect("told");
            assert_eq!((event.what.as_str(), event.id), ("created", made.reserves[0].id));
        }
        Err(ClientError::Refused(reply)) if reply.is("NotAllowed") => {
            println!("SKIPPED: {}", reply.message())
        }
        Err(error) => panic!("{error}"),
    }
}
