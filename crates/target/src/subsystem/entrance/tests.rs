//! Who takes part, and what that costs the others.

use super::*;
use crate::orphan::Host;
use crate::port::{Line, Port};
use crate::rehearsal::hosts::{KNOWN, keys};
use crate::rehearsal::tests::settings;
use crate::rehearsal::{Plain, SHAPE, open_to_all};
use crate::subsystem::NewController;
use nvme::spec::{DataPointer, Status, Submission, registers};
use nvme::{AdminReply, Namespaces};
use units::Time;

/// A subsystem to which hosts have to prove who they are.
fn guarded() -> (Subsystem, Port) {
    let mut port = Port::new(Arc::new(Plain::new()), SHAPE, Arc::new(Line::new(SHAPE.pairs)));
    let mut subsystem = Subsystem::new(open_to_all(settings()), &mut port);
    subsystem.settings.keys = Some(keys());
    (subsystem, port)
}

/// A controller of a host that says who it is.
fn come(subsystem: &mut Subsystem) -> u16 {
    let host = Arc::new(Host { name: KNOWN.into(), id: [1; 16] });
    subsystem.create(NewController { host, ..NewController::default() }, Time::ZERO).expect("there is room")
}

/// It proves who it is and enables its controller.
fn settle_in(subsystem: &mut Subsystem, port: &mut Port, id: u16) {
    subsystem.vouch_for(id);
    subsystem.controllers.get_mut(&id).expect("it lives").controller.write_property(registers::CC, 0x46_0061);
    subsystem.obey(port, id, Time::ZERO);
}

fn detach(subsystem: &mut Subsystem, port: &mut Port, id: u16) {
    let list: Vec<u8> = [1, id].iter().flat_map(|word| word.to_le_bytes()).collect();
    let detach = Submission::attach_namespace(1, false, DataPointer::default());
    let reply = subsystem.administer(id, &detach, &list, Time::ZERO);
    assert!(matches!(reply, AdminReply::Complete { status: Status::SUCCESS, .. }), "{reply:?}");
    subsystem.obey(port, id, Time::ZERO);
}

/// The controllers that a host is told of (Identify, CNS 13h).
fn told(subsystem: &mut Subsystem, id: u16) -> Vec<u16> {
    let identify = Submission::identify(0x13, 0, DataPointer::default());
    let AdminReply::Transfer { data, .. } = subsystem.administer(id, &identify, &[], Time::ZERO) else {
        panic!("a list of controllers")
    };
    let mut words = data.chunks_exact(2).map(|word| u16::from_le_bytes([word[0], word[1]]));
    let count = words.next().expect("how many there are");
    words.take(count.into()).collect()
}

/// Whether a host that comes has the namespace, which the only one before it has detached, is no matter of who has proved nothing.
#[test]
fn who_has_proved_nothing_takes_no_part() {
    for intrudes in [false, true] {
        let (mut subsystem, mut port) = guarded();
        let host = come(&mut subsystem);
        settle_in(&mut subsystem, &mut port, host);
        let intruder = intrudes.then(|| come(&mut subsystem));
        assert_eq!(told(&mut subsystem, host), [host]);
        assert!(intruder.is_none_or(|id| subsystem.namespaces.pieces_of(id).count() == 0));
        assert_eq!(subsystem.namespaces.pieces_of(host).count(), 1);
        detach(&mut subsystem, &mut port, host);
        let next = come(&mut subsystem);
        settle_in(&mut subsystem, &mut port, next);
        assert_eq!(subsystem.namespaces.pieces_of(next).count(), 0, "an intruder: {intrudes}");
        assert_eq!(told(&mut subsystem, next), [host, next]);
        subsystem.end(host);
        subsystem.doomed.clear();
        assert_eq!(told(&mut subsystem, next), [next]);
    }
}

/// However many come that have proved nothing or only discover, and go: nobody has anything to do for that.
#[test]
fn strangers_come_and_go_without_a_look_at_the_namespaces() {
    let (mut subsystem, _port) = guarded();
    let hosts = [0; 3].map(|_| come(&mut subsystem));
    hosts.iter().for_each(|id| subsystem.vouch_for(*id));
    let before = Arc::as_ptr(&subsystem.namespaces);
    let is_shared = |subsystem: &Subsystem, id: u16| {
        std::ptr::eq(Arc::as_ptr(subsystem.controllers[&id].controller.namespaces()), before)
    };
    for _ in 0..200 {
        come(&mut subsystem);
        let discovery = NewController { discovery: Some(Vec::new()), ..NewController::default() };
        subsystem.create(discovery, Time::ZERO).expect("there is room");
    }
    assert_eq!(subsystem.controllers.len(), 3 + 64 + 64);
    assert!(std::ptr::eq(Arc::as_ptr(&subsystem.namespaces), before), "they are what they were");
    assert!(hosts.iter().all(|id| is_shared(&subsystem, *id)));
}

/// One copy of the namespaces for each that comes or goes, however many there are.
#[test]
fn controllers_share_the_namespaces() {
    let (mut subsystem, _port) = guarded();
    let ids: Vec<u16> = (0..8).map(|_| come(&mut subsystem)).collect();
    ids.iter().for_each(|id| subsystem.vouch_for(*id));
    subsystem.end(ids[0]);
    let shared: &Arc<Namespaces> = &subsystem.namespaces;
    let share = |id: &u16| Arc::ptr_eq(shared, subsystem.controllers[id].controller.namespaces());
    assert!(ids[1..].iter().all(share));
    assert_eq!(ids[1..].iter().filter(|id| shared.pieces_of(**id).count() == 1).count(), 7);
}
