//! `serve` as a user meets it: it says where it listens, takes a host, and ends in good order on a signal.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::process::{Child, ChildStdout, Command, Stdio};
use std::thread::sleep;
use std::time::Duration;

struct Served {
    process: Child,
    out: BufReader<ChildStdout>,
    firmware: String,
    contents: Option<String>,
    address: SocketAddr,
}

/// Ends with the test, however that ends.
impl Drop for Served {
    fn drop(&mut self) {
        let _ = self.process.kill();
    }
}

fn serve(flags: &[&str]) -> Served {
    let mut command = Command::new(env!("CARGO_BIN_EXE_flashloom"));
    command.args(["serve", "--tcp", "127.0.0.1:0", "--device", "small"]).args(flags);
    let mut process = command.stdout(Stdio::piped()).spawn().expect("the program starts");
    let mut out = BufReader::new(process.stdout.take().expect("it is piped"));
    let (mut firmware, mut contents) = (String::new(), None);
    let address = loop {
        let mut line = String::new();
        assert_ne!(out.read_line(&mut line).expect("text"), 0, "it ended before it listened");
        if let Some(said) = line.strip_prefix("firmware") {
            firmware = said.trim().to_owned();
        }
        if let Some(said) = line.strip_prefix("contents") {
            contents = Some(said.trim().to_owned());
        }
        if let Some(address) = line.strip_prefix("listening") {
            break address.trim().parse().expect("an address");
        }
    };
    Served { process, out, firmware, contents, address }
}

fn sends(served: &Served, signal: &str) {
    let id = served.process.id().to_string();
    assert!(Command::new("kill").args([signal, &id]).status().expect("kill").success());
}

fn ends(mut served: Served, signal: &str) -> String {
    sends(&served, signal);
    let mut rest = String::new();
    served.out.read_to_string(&mut rest).expect("text");
    assert_eq!(served.process.wait().expect("it ends").code(), Some(0), "{rest}");
    rest
}

#[test]
fn a_group_has_as_many_threads_as_there_are_here_unless_more_are_asked_for() {
    let threads = |flags: &[&str]| serve(flags).firmware.clone();
    assert_eq!(threads(&[]), "deepflash; threads nvmq=1,ilock=1,cache=1,trans=1,log=1,bgc=1,fcmd=1");
    let more = threads(&["--set", "run.world_threads=2", "--threads", "trans=3,log=0"]);
    assert_eq!(more, "deepflash; threads nvmq=2,ilock=2,cache=2,trans=3,log=0,bgc=1,fcmd=2");
    assert_eq!(threads(&["--architecture", "layered"]), "layered; threads hil=1,ftl=1,fcmd=16");
}

#[test]
fn a_file_of_a_drive_with_other_threads_is_refused_with_advice() {
    let file = std::env::temp_dir().join(format!("flashloom-serve-{}.media", std::process::id()));
    let media = ["--media", file.to_str().expect("UTF-8")];
    ends(serve(&[&media[..], &["--threads", "trans=2"]].concat()), "-TERM");
    let mut command = Command::new(env!("CARGO_BIN_EXE_flashloom"));
    let refused = command.args(["serve", "--tcp", "127.0.0.1:0", "--device", "small"]).args(media).output();
    let said = String::from_utf8(refused.expect("the program starts").stderr).expect("text");
    let due =
        "threads of address translation is 2; expected 1, as this drive has\nhelp: `--threads trans=2` serves it with ";
    assert!(said.contains(due), "{said}");
    ends(serve(&[&media[..], &["--threads", "trans=2"]].concat()), "-TERM");
    std::fs::remove_file(&file).expect("it is there");
}

/// A file that was emptied meanwhile is a new drive: whoever takes it for the old one can see so.
#[test]
fn a_drive_says_whether_its_file_is_new() {
    let file = std::env::temp_dir().join(format!("flashloom-serve-new-{}.media", std::process::id()));
    let name = file.to_str().expect("UTF-8");
    for is_emptied in [true, false, true] {
        if is_emptied {
            std::fs::write(&file, "").expect("it can be written");
        }
        let mut served = serve(&["--media", name]);
        let due = if is_emptied { format!("{name}, which is new") } else { name.to_owned() };
        assert_eq!(served.contents.take(), Some(due));
        ends(served, "-TERM");
    }
    std::fs::remove_file(&file).expect("it is there");
}

#[test]
fn memory_is_taken_before_it_listens_if_there_is_so_much() {
    drop(serve(&["--preallocate"]));
    let mut command = Command::new(env!("CARGO_BIN_EXE_flashloom"));
    command.args(["serve", "--tcp", "127.0.0.1:0", "--device", "mlc-1tb", "--preallocate"]);
    let refused = command.output().expect("the program starts");
    let said = String::from_utf8_lossy(&refused.stderr);
    assert!(said.contains("--preallocate takes 1.1 TB; expected at most "), "{said}");
    assert_eq!(refused.status.code(), Some(2));
}

/// What its queues take of this machine is known before anybody is told where it listens.
#[test]
fn a_drive_that_there_is_no_memory_for_does_not_listen() {
    let media = std::env::temp_dir().join(format!("flashloom-serve-large-{}.media", std::process::id()));
    let command = "ulimit -v 8000000; exec \"$0\" serve --tcp 127.0.0.1:0 --device small --queues 4000 --media \"$1\"";
    let refused = Command::new("sh").args(["-c", command, env!("CARGO_BIN_EXE_flashloom")]).arg(&media).output();
    let refused = refused.expect("the program starts");
    let said = String::from_utf8_lossy(&refused.stderr);
    assert_eq!((refused.status.code(), refused.stdout.len(), media.exists()), (Some(2), 0, false), "{said}");
    assert!(said.contains("for queues and") && said.contains("fewer queues (--queues)"), "{said}");
}

#[test]
fn an_address_for_figures_is_looked_at_before_anything_is_made() {
    let media = std::env::temp_dir().join(format!("flashloom-serve-figures-{}.media", std::process::id()));
    for address in ["1.2.3.4:5", "nowhere"] {
        let mut command = Command::new(env!("CARGO_BIN_EXE_flashloom"));
        command.args(["serve", "--tcp", "127.0.0.1:0", "--device", "small", "--metrics", address, "--media"]);
        let refused = command.arg(&media).output().expect("the program starts");
        let said = String::from_utf8_lossy(&refused.stderr);
        assert!(said.starts_with(&format!("error: --metrics {address}")) && !media.exists(), "{said}");
    }
}

/// And on two at once, as `timeout` sends them.
#[test]
fn it_ends_in_good_order_on_either_signal() {
    for [signal, last] in [["-TERM", "-INT"], ["-INT", "-TERM"]] {
        let served = serve(&[]);
        let mut greeting = vec![0u8; 128];
        (greeting[2], greeting[4]) = (128, 128);
        let mut stream = TcpStream::connect(served.address).expect("it listens");
        stream.write_all(&greeting).unwrap();
        stream.read_exact(&mut greeting).expect("ICResp");
        assert_eq!((greeting[0], greeting[4]), (1, 128));
        sends(&served, signal);
        let said = ends(served, last);
        assert!(said.contains("1 connection, 0 broke the protocol"), "{said}");
        assert_eq!(stream.read(&mut [0]).unwrap_or(0), 0, "the connection is closed");
    }
}

#[test]
fn its_figures_come_as_json() {
    let file = std::env::temp_dir().join(format!("flashloom-serve-{}.json", std::process::id()));
    let served = serve(&["--json", file.to_str().expect("UTF-8")]);
    TcpStream::connect(served.address).expect("it listens").write_all(&[0xff; 128]).unwrap();
    // Closed by it, once the bytes are judged.
    let mut stream = TcpStream::connect(served.address).expect("it listens");
    stream.write_all(&[0x55; 128]).unwrap();
    let mut back = Vec::new();
    let _ = stream.read_to_end(&mut back);
    assert_eq!(back.first(), Some(&3), "C2HTermReq");
    ends(served, "-TERM");
    let json: serde_json::Value =
        serde_json::from_str(&std::fs::read_to_string(&file).expect("it was written")).expect("JSON");
    std::fs::remove_file(&file).expect("it is there");
    assert_eq!((json["connections"].as_u64(), json["protocol_violations"].as_u64()), (Some(2), Some(2)));
}

/// Standard output is for the program that reads it; whoever is to connect finds the address on standard error.
#[test]
fn with_json_on_standard_output_the_address_is_told_beside_it() {
    let mut command = Command::new(env!("CARGO_BIN_EXE_flashloom"));
    command.args(["serve", "--tcp", "127.0.0.1:0", "--device", "small", "--json", "-"]);
    let mut process = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().expect("the program starts");
    let mut said = BufReader::new(process.stderr.take().expect("it is piped"));
    let address: SocketAddr = loop {
        let mut line = String::new();
        assert_ne!(said.read_line(&mut line).expect("text"), 0, "it ended before it listened");
        if let Some(address) = line.strip_prefix("listening") {
            break address.trim().parse().expect("an address");
        }
    };
    TcpStream::connect(address).expect("it listens");
    let out = BufReader::new(process.stdout.take().expect("it is piped"));
    let rest = ends(Served { process, out, firmware: String::new(), contents: None, address }, "-TERM");
    let json: serde_json::Value = serde_json::from_str(&rest).expect("JSON and nothing else");
    assert_eq!(json["protocol_violations"].as_u64(), Some(0));
}

/// What a key of our own host says is not taken in silence where other hosts come.
#[test]
fn keys_that_change_nothing_are_said() {
    let mut command = Command::new(env!("CARGO_BIN_EXE_flashloom"));
    command.args(["serve", "--tcp", "127.0.0.1:0", "--device", "small", "--set", "host.entries=64"]);
    command.args(["--set", "host.depth=4", "--set", "controller.queue_entries=2000", "--set", "run.check=true"]);
    let mut process = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().expect("the program starts");
    let mut out = BufReader::new(process.stdout.take().expect("it is piped"));
    let mut said = process.stderr.take().expect("it is piped");
    let mut line = String::new();
    while !line.starts_with("listening") {
        line.clear();
        assert_ne!(out.read_line(&mut line).expect("text"), 0, "it ended before it listened");
    }
    let address = line.trim_start_matches("listening").trim().parse().expect("an address");
    ends(Served { process, out, firmware: String::new(), contents: None, address }, "-TERM");
    let mut notes = String::new();
    said.read_to_string(&mut notes).expect("text");
    let expected = [
        "note: --set host.entries=64 changes nothing: hosts say what they want",
        "note: --set host.depth=4 changes nothing: hosts say what they want",
        "note: --set controller.queue_entries=2000 changes nothing: a queue that is served has room for 128 commands",
    ];
    assert_eq!(notes.lines().collect::<Vec<_>>(), expected);
}

#[test]
fn a_port_that_is_taken_is_named() {
    let served = serve(&[]);
    let address = served.address.to_string();
    let output = Command::new(env!("CARGO_BIN_EXE_flashloom")).args(["serve", "--tcp", &address]).output().unwrap();
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    assert_eq!(output.status.code(), Some(2), "{said}");
    assert!(said.contains(&address) && said.contains("expected an address of this machine and a free port"), "{said}");
    ends(served, "-TERM");
}

/// Files of keys that are wrong, and what is said of them.
const BROKEN_KEYS: &[(&str, &str)] = &[
    ("secret = \"DHHC-1:00:AAAA:\"", "keys.toml:3: secret: it has 3 bytes; expected 32, 48 or 64"),
    ("tls_key = \"NVMeTLSkey-1:01:AAAA:\"", "keys.toml:3: tls_key: it has 3 bytes; expected 32 with hash 00 or 01"),
    ("tls_key = \"DHHC-1:00:AAAA:\"", "keys.toml:3: tls_key: expected NVMeTLSkey-1:00:"),
    ("controller_secret = \"DHHC-1:00:AAAA:\"", "keys.toml:3: controller_secret: expected a secret beside it"),
    ("older_libnvme = true", "keys.toml:2: host: expected a secret, a tls_key, or both"),
    ("tls = true", "keys.toml:3:1: unknown field `tls`"),
    (
        "secret = \"DHHC-1:00:ia6zGodOr4SEG0Zzaw398rpY0wqipUWj4jWjUh4HWUz6aQ2n:\"\n[[host]]\nnqn = \"nqn.2026-11.org.b:b\"\n\
         tls_key = \"NVMeTLSkey-1:01:VRLbtnN9AQb2WXW3c9+wEf/DRLz0QuLdbYvEhwtdWwNf9LrZ:\"",
        "keys.toml:2: host: it has no tls_key, but another host has",
    ),
];

#[test]
fn what_is_wrong_with_a_file_of_keys_is_said_by_its_line() {
    let folder = std::env::temp_dir().join(format!("flashloom-keys-{}", std::process::id()));
    std::fs::create_dir_all(&folder).expect("a folder");
    let file = folder.join("keys.toml");
    for (text, said) in BROKEN_KEYS {
        std::fs::write(&file, format!("[[host]]\nnqn = \"nqn.2026-11.org.a:a\"\n{text}\n")).expect("a file");
        let output = Command::new(env!("CARGO_BIN_EXE_flashloom"))
            .args(["serve", "--tcp", "127.0.0.1:0", "--device", "small", "--keys"])
            .arg(&file)
            .output()
            .expect("the program starts");
        let error = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.code() == Some(2) && error.contains(said), "{text}: {error}");
    }
    std::fs::remove_dir_all(folder).expect("it is there");
}

/// Whole files in which something secret stands where it should not, and what is said of them.
const MISPLACED_SECRETS: &[(&str, &str)] = &[
    (
        "nqn = \"SECRET\"\nsecret = \"nqn.2026-11.org.a:a\"",
        "keys.toml:2: nqn: it is no NVMe qualified name; expected nqn.",
    ),
    (
        "nqn = \"nqn.2026-11.org.a:a\"\nsecret = [\"SECRET\"]",
        "keys.toml:3:10: secret: a value of the wrong type; expected a string",
    ),
    (
        "nqn = \"nqn.2026-11.org.a:a\"\nolder_libnvme = \"SECRET\"",
        "keys.toml:3:17: older_libnvme: a value of the wrong type; expected a boolean",
    ),
    (
        "nqn = \"nqn.2026-11.org.a:a\"\nolder_libnvme = \"\"\"\nSECRET, expected\nSECRET\"\"\"",
        "wrong type; expected a boolean",
    ),
    ("nqn = \"nqn.2026-11.org.a:a\"\n\"SECRET\" = \"secret\"", "keys.toml:3:1: unknown field; expected one of `nqn`"),
    ("nqn = \"nqn.2026-11.org.a:a\"\nsecret = SECRET", "keys.toml:3:"),
    ("nqn = \"nqn.2026-11.org.a:a\"\nsecret = \"SECRET", "keys.toml:3:"),
    ("nqn = \"nqn.2026-11.org.a:a\"\nsecret = \"SECRET\"\nsecret = \"SECRET\"", "keys.toml:4:1: secret: duplicate key"),
    (
        "nqn = \"nqn.2026-11.org.a:a\"\nsecret = \"SECRET\"\n[[host]]\nnqn = \"nqn.2026-11.org.a:a\"\nsecret = \"SECRET\"",
        "keys.toml:5: nqn: a table before has the same, on line 2; expected one table a host",
    ),
];

/// What `serve` says of a file of keys that it refuses.
fn refused_keys(file: &std::path::Path) -> String {
    let output = Command::new(env!("CARGO_BIN_EXE_flashloom"))
        .args(["serve", "--tcp", "127.0.0.1:0", "--device", "small", "--keys"])
        .arg(file)
        .output()
        .expect("the program starts");
    assert_eq!(output.status.code(), Some(2));
    String::from_utf8_lossy(&output.stderr).into_owned()
}

#[test]
fn nothing_secret_of_a_file_of_keys_is_told_and_no_host_stands_twice() {
    let folder = std::env::temp_dir().join(format!("flashloom-secrets-{}", std::process::id()));
    std::fs::create_dir_all(&folder).expect("a folder");
    let file = folder.join("keys.toml");
    let secret = "ia6zGodOr4SEG0Zzaw398rpY0wqipUWj4jWjUh4HWUz6aQ2n";
    for (text, said) in MISPLACED_SECRETS {
        let text = text.replace("SECRET", &format!("DHHC-1:00:{secret}:"));
        std::fs::write(&file, format!("[[host]]\n{text}\n")).expect("a file");
        let error = refused_keys(&file);
        assert!(error.contains(said), "{text}: {error}");
        assert!(!error.contains(&secret[..8]), "{text}: {error}");
    }
    std::fs::remove_dir_all(folder).expect("it is there");
}

#[test]
fn a_file_of_keys_that_others_may_read_is_warned_of() {
    use std::os::unix::fs::PermissionsExt;
    let folder = std::env::temp_dir().join(format!("flashloom-open-keys-{}", std::process::id()));
    std::fs::create_dir_all(&folder).expect("a folder");
    let file = folder.join("keys.toml");
    std::fs::write(&file, "").expect("a file");
    for (mode, warns) in [(0o600, false), (0o400, false), (0o700, false), (0o640, true), (0o604, true), (0o620, true)] {
        std::fs::set_permissions(&file, std::fs::Permissions::from_mode(mode)).expect("it is its owner's");
        let error = refused_keys(&file);
        let warning = format!("keys.toml: others than its owner may read or write it (mode {mode:o})");
        assert_eq!(error.contains(&warning), warns, "{error}");
        assert!(error.contains("it names no host"), "it is read all the same: {error}");
    }
    std::fs::remove_dir_all(folder).expect("it is there");
}

#[test]
fn who_asks_for_figures_is_answered_though_the_drive_was_stopped_meanwhile() {
    let mut served = serve(&["--metrics", "127.0.0.1:0"]);
    let page = loop {
        let mut line = String::new();
        assert_ne!(served.out.read_line(&mut line).expect("text"), 0, "it says where the page is");
        if let Some(page) = line.strip_prefix("metrics") {
            break page.trim().trim_start_matches("http://").trim_end_matches("/metrics").to_owned();
        }
    };
    let mut client = TcpStream::connect(page).expect("the page is served");
    client.write_all(b"GET ").expect("it reads");
    // It waits for the rest by then, and is stopped before it goes on.
    for signal in ["-STOP", "-CONT"] {
        sleep(Duration::from_millis(300));
        sends(&served, signal);
    }
    sleep(Duration::from_millis(300));
    client.write_all(b"/metrics HTTP/1.1\r\n\r\n").expect("it reads");
    let mut answer = String::new();
    client.read_to_string(&mut answer).expect("text");
    assert!(answer.starts_with("HTTP/1.1 200 "), "{answer}");
    ends(served, "-TERM");
}
