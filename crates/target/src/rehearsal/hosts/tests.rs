//! Queues of a host that has others which are gone, while the drive still works on what these asked for.

use super::*;
use crate::orphan::{Host, LeftBehind, Orphan};
use crate::proof::tests::greeting_of;
use crate::rehearsal::tests::settings;
use crate::session::Attached;
use nvme::spec::DataPointer;
use nvme::spec::fabrics::{ANY_CONTROLLER, Property};
use nvme::spec::registers;
use std::sync::Arc;
use units::HostAddress;

/// Hosts of a drive that answers at once.
struct Scene {
    rehearsal: Rehearsal,
    connections: [Connection; CONNECTIONS],
}

impl Scene {
    fn new() -> Self {
        let mut rehearsal = Rehearsal::new(settings());
        rehearsal.subsystem.settings.controller.transport = Transport::Message { capsule: Bytes(8192) };
        rehearsal.subsystem.settings.keys = Some(keys());
        Scene { rehearsal, connections: std::array::from_fn(Connection::dial) }
    }

    fn send(&mut self, at: ConnectionId, bytes: &[u8]) {
        self.rehearsal.send(&mut self.connections, at, bytes);
    }

    /// Time passes, until whoever waits for it has had a turn.
    fn wait(&mut self) {
        (0..20).for_each(|_| self.rehearsal.turn(&mut self.connections));
    }

    /// Says what is right next of who it is, and hears the answer where there is one by then.
    fn prove(&mut self, at: ConnectionId) {
        let message = self.connections[at].next_message(&self.rehearsal.subsystem.settings, 1, false);
        self.send(at, &saying(&message));
        self.wait();
    }

    fn hear(&mut self, at: ConnectionId) {
        self.send(at, &hearing());
    }

    fn connect(&mut self, at: ConnectionId, queue: u16, controller: u16) {
        let subsystem = self.rehearsal.subsystem.settings.controller.subsystem.clone();
        self.send(at, &greeting_of(&subsystem, queue, controller));
    }

    /// A queue of the known host is gone, and leaves a write that the drive does not come to the end of.
    fn leave_behind(&mut self) {
        let pair = self.rehearsal.port.take_pair().expect("one is free");
        let host = Arc::new(Host { name: KNOWN.into(), id: [0; 16] });
        self.rehearsal.subsystem.adopt(Orphan::new(pair, host, vec![LeftBehind::write(0)]));
    }

    fn is_queue(&self, at: ConnectionId) -> bool {
        matches!(self.connections[at].session.attached, Attached::Io(_))
    }

    fn write(&mut self, at: ConnectionId) -> u64 {
        let nowhere = DataPointer { prp1: HostAddress(0), prp2: HostAddress(0) };
        let data = Sgl::InCapsule { offset: 0, bytes: 512 };
        self.send(at, &capsule(Submission::write(1, 0, 1, nowhere).with_sgl(data), &[7; 512]));
        self.rehearsal.subsystem.figures().writes
    }
}

/// Whether it was proved already whose the queue is or not: no write of it goes to the drive while an older one is there.
#[test]
fn nothing_of_a_host_goes_to_the_drive_before_what_its_lost_queues_asked_for_is_over() {
    let mut scene = Scene::new();
    scene.connect(0, 0, ANY_CONTROLLER);
    scene.prove(0);
    scene.hear(0);
    scene.prove(0);
    let controller = scene.connections[0].session.joined.controller;
    let enabled = Submission::property_set(Property { offset: registers::CC, bytes: 4 }, 0x46_0061);
    scene.send(0, &capsule(enabled.with_sgl(Sgl::Transport { bytes: 0 }), &[]));
    scene.connect(1, 1, controller);
    scene.prove(1);
    scene.hear(1);
    // It was challenged before another queue was gone, and answers now.
    scene.leave_behind();
    scene.prove(1);
    assert!(!scene.is_queue(1));
    scene.rehearsal.subsystem.orphans.clear();
    scene.wait();
    assert!(scene.is_queue(1));
    assert_eq!(scene.write(1), 1);
    // It is a queue, and another is gone.
    scene.leave_behind();
    assert_eq!(scene.write(1), 1);
    scene.wait();
    assert_eq!(scene.rehearsal.subsystem.figures().writes, 1);
    scene.rehearsal.subsystem.orphans.clear();
    scene.wait();
    assert_eq!(scene.rehearsal.subsystem.figures().writes, 2);
}
