//! Namespaces that hosts made, in a drive whose file keeps them: served again it has them, and what was written to them.

use crate::Serving;
use crate::conversations::NOWHERE;
use crate::initiator::{Host, Payload};
use crate::kept::{Scratch, refusal, serving};
use crate::namespaces::{attach, create, list, namespace, read_from, write_to};
use nvme::spec::identify;
use nvme::spec::{Status, Submission};
use std::fs::OpenOptions;
use std::os::unix::fs::FileExt;
use std::path::Path;

/// A drive with metadata.
fn tagged(architecture: &'static str, file: &Path) -> Serving {
    Serving { set: &["device.tags=true", "run.timing=false"], ..serving(architecture, file) }
}

/// What is to be seen of a namespace: identifier, blocks, bytes of a block, format, protection, name.
type Seen = (u32, u64, Option<u32>, u8, u8, [u8; 16]);

fn seen(host: &mut Host) -> Vec<Seen> {
    let ids = list(&mut host.admin, identify::ALLOCATED_NAMESPACES);
    let mut allocated = |id| {
        let asked = Submission::identify(identify::ALLOCATED_NAMESPACE, id, NOWHERE);
        let (_, data) = host.admin.done(asked, Payload::Receive(4096));
        identify::IdentifyNamespace::from_bytes(&data)
    };
    let of = |id| {
        let space = allocated(id);
        (id, space.size(), space.block_bytes(), space.format(), space.protection(), space.nguid())
    };
    ids.into_iter().map(of).collect()
}

/// Data of namespace 2, whose blocks are of 4 KiB with metadata.
fn extended(fill: u8) -> Vec<u8> {
    [vec![fill; 4096], vec![!fill; 8]].concat()
}

#[test]
fn served_again_a_drive_has_the_namespaces_that_hosts_made() {
    for architecture in ["deepflash", "naive", "pipessd", "tradition"] {
        let scratch = Scratch::new(&format!("lasting-{architecture}"));
        let running = tagged(architecture, &scratch.0).start();
        let mut host = running.host("host").attach();
        write_to(&mut host, 1, 0, 8, &[9; 4096]);
        host.admin.done(Submission::delete_namespace(1), Payload::None);
        let made = [create(&mut host.admin, 8192, 0), create(&mut host.admin, 1024, 1), create(&mut host.admin, 5, 1)];
        assert_eq!(made, [1, 2, 3].map(|id| (id, Status::SUCCESS)));
        for id in [1, 2] {
            assert_eq!(attach(&mut host.admin, id, &[host.controller], true), Status::SUCCESS);
        }
        // Format 3 is of 4 KiB with metadata behind the data, which are protection information of type 2.
        let protected = Submission::format_nvm(2, 0, 0).with_dword(10, 3 | 1 << 4 | 2 << 5);
        host.admin.done(protected, Payload::None);
        write_to(&mut host, 1, 8184, 8, &[1; 4096]);
        write_to(&mut host, 2, 0, 1, &extended(2));
        write_to(&mut host, 2, 1023, 1, &extended(3));
        let before = seen(&mut host);
        assert_eq!(before.iter().map(|space| space.4).collect::<Vec<_>>(), [0, 2, 0]);
        assert!(running.end().durable);

        let running = tagged(architecture, &scratch.0).start();
        let mut host = running.host("other").attach();
        assert_eq!(seen(&mut host), before, "{architecture}");
        assert_eq!(list(&mut host.admin, identify::ACTIVE_NAMESPACES), [1, 2], "namespace 3 was attached to nobody");
        assert!(read_from(&mut host, 1, 8184, 8, 4096) == [1; 4096], "{architecture}");
        assert!(read_from(&mut host, 1, 0, 8, 4096) == [0; 4096], "{architecture}: what the first one had is gone");
        assert!(read_from(&mut host, 2, 0, 1, 4104) == extended(2), "{architecture}");
        assert!(read_from(&mut host, 2, 1023, 1, 4104) == extended(3), "{architecture}");
        host.admin.done(Submission::delete_namespace(1), Payload::None);
        assert_eq!(attach(&mut host.admin, 3, &[host.controller], true), Status::SUCCESS);
        write_to(&mut host, 3, 4, 1, &[4; 4096]);
        host.admin.done(Submission::format_nvm(2, 0, 0), Payload::None);
        running.end();

        let running = tagged(architecture, &scratch.0).start();
        let mut host = running.host("host").attach();
        assert_eq!(list(&mut host.admin, identify::ACTIVE_NAMESPACES), [2, 3]);
        let space = namespace(&mut host.admin, 2);
        assert_eq!((space.size(), space.block_bytes(), space.protection()), (8192, Some(512), 0));
        assert!(read_from(&mut host, 2, 0, 8, 4096) == [0; 4096], "{architecture}: it was formatted");
        assert!(read_from(&mut host, 3, 4, 1, 4096) == [4; 4096], "{architecture}");
        let (id, status) = create(&mut host.admin, 1, 0);
        assert_eq!((id, status), (1, Status::SUCCESS));
        let name = seen(&mut host)[0].5;
        assert!(before.iter().all(|space| space.5 != name), "a name is not used again");
        assert!(running.end().durable);
    }
}

#[test]
fn namespaces_that_are_not_this_drives_are_refused_by_name() {
    let scratch = Scratch::new("lasting-refused");
    let running = serving("deepflash", &scratch.0).start();
    let mut host = running.host("host").attach();
    host.admin.done(Submission::delete_namespace(1), Payload::None);
    assert_eq!(create(&mut host.admin, 2048, 0).1, Status::SUCCESS);
    let made = seen(&mut host);
    running.end();
    let name = scratch.0.display().to_string();
    let other = Serving { lba_bytes: 4096, ..serving("deepflash", &scratch.0) };
    assert_eq!(refusal(other), format!("{name}: device.lba_bytes is 512; expected 4096, as this drive has"));
    // Behind the header, which has a page, the table is in two slots.
    let file = OpenOptions::new().write(true).open(&scratch.0).expect("it is there");
    let damage = |slot: u64| file.write_all_at(&[0xee], slot + 100).expect("it can be written");
    for slot in [4096, 8192] {
        damage(slot);
        let running = serving("deepflash", &scratch.0).start();
        let mut host = running.host("host").attach();
        assert_eq!(seen(&mut host), made, "what was answered is in the other");
        running.end();
    }
    [4096, 8192].into_iter().for_each(damage);
    let said = refusal(serving("deepflash", &scratch.0));
    assert_eq!(said, format!("{name}: the record of the namespaces is damaged; expected a file as its drive left it"));
}
