//! A Linux host that nobody here wrote uses a served drive, where QEMU and a kernel are there: `guest/setup.sh` fetches them. Where
//! they are not, nothing is tried, and the test says so.

use std::io::Write as _;
use std::path::Path;
use std::process::Command;

fn use_drive(transport: &str) {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let folder = std::env::var_os("FLASHLOOM_GUEST").map_or_else(|| root.join("target/guest"), Into::into);
    let missing = ["base.cpio.gz", "vmlinuz", "trixie/usr/bin/qemu-system-x86_64"].map(|name| folder.join(name));
    if let Some(missing) = missing.iter().find(|path| !path.exists()) {
        let missing = missing.display();
        // The harness keeps what `println!` says in a test that passes.
        let mut stdout = std::io::stdout();
        writeln!(stdout, "skipped: {missing} is not there; guest/setup.sh makes it, as root on Debian").unwrap();
        return;
    }
    let output = Command::new(root.join("guest/try.sh"))
        .args(["--quick", transport, env!("CARGO_BIN_EXE_flashloom")])
        .arg(folder)
        .output()
        .expect("a shell");
    let said = String::from_utf8_lossy(&output.stdout);
    assert!(output.status.success(), "{said}\n{}", String::from_utf8_lossy(&output.stderr));
}

#[test]
fn a_linux_host_uses_the_drive_over_tcp() {
    use_drive("tcp");
}

#[test]
fn a_linux_host_uses_the_drive_under_tls() {
    use_drive("secured");
}

#[test]
fn a_linux_guest_uses_the_drive_as_its_own() {
    use_drive("vfio-user");
}

/// By messages where doorbells in its memory do not do, and with an SGL for whatever is not in one piece.
#[test]
fn a_linux_guest_sends_doorbells_and_lists_of_pieces() {
    use_drive("sent");
}
