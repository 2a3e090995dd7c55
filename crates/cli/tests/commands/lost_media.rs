//! What the end of a drive says of a file that was removed, cut or written to by somebody else while it was served.

use crate::initiator::Payload;
use crate::killed::{Drive, NOWHERE, Scratch};
use nvme::spec::{Opcode, Status, Submission};
use std::fs::OpenOptions;
use std::os::unix::fs::FileExt;
use std::path::Path;
use std::process::Command;

/// Where the records of blocks are, behind the header and the namespaces, and how many bytes.
const BLOCKS: (u64, usize) = (3 * 4096, 8192);

/// Serves a file, loses what it has after a page of it was made durable, and ends it; what it says.
fn said_of(file: &Path, lose: impl Fn(&Path) -> std::io::Result<()>) -> String {
    let drive = Drive::serve(file, &["--timing", "off"], None);
    let mut host = drive.attach().expect("it listens");
    let queue = &mut host.queues[0];
    let write = |page: u64| Submission::write(1, page * 8, 8, NOWHERE).with_fua();
    queue.done(write(0), Payload::Send(&[7; 4096]));
    lose(file).expect("it is there");
    // Some may come before the drive looks.
    let is_refused = |page| queue.command(write(page), Payload::Send(&[8; 4096])).0.status() == Status::WRITE_FAULT;
    assert!((1..100).any(is_refused) || !file.exists(), "a file that is only removed takes what is written");
    queue.command(Submission::new(Opcode::Flush as u8, 1), Payload::None);
    assert!(Command::new("kill").args(["-TERM", &drive.id().to_string()]).status().expect("kill").success());
    assert_eq!(drive.wait().code(), Some(1));
    drive.said()
}

#[test]
fn the_end_of_a_drive_says_what_became_of_its_file_and_what_is_left() {
    let file = Scratch(std::env::temp_dir().join(format!("flashloom-lost-{}.media", std::process::id())));
    let open = |path: &Path| OpenOptions::new().write(true).open(path);
    let said = said_of(&file.0, |path| std::fs::remove_file(path));
    assert!(said.contains("it has been removed; ") && said.ends_with("it held is gone with this process\n"), "{said}");
    let lost = ["it has been cut; ", "the record of block"];
    for (round, why) in lost.into_iter().enumerate() {
        let said = said_of(&file.0, |path| match round {
            0 => open(path)?.set_len(64),
            _ => open(path)?.write_all_at(&[0xff; BLOCKS.1], BLOCKS.0),
        });
        assert!(said.contains(why) && said.ends_with("what is left is not served again\n"), "{why}: {said}");
        let again = Drive::serve(&file.0, &["--timing", "off"], None);
        assert_eq!(again.wait().code(), Some(2), "{why}: {}", again.said());
        std::fs::remove_file(&file.0).expect("it is there");
    }
}
