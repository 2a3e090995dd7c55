//! A guest with doorbells in its memory: when it rings, and what it finds there of before.

use crate::Serving;
use crate::monitor::{BUFFERS, MEMORY, Machine, at};
use crate::plugged::exercise;
use nvme::spec::identify::{self, IdentifyController};
use nvme::spec::{Status, Submission};
use rand::SeedableRng;
use rand_xoshiro::Xoshiro256PlusPlus;
use rig::DoorbellPath;
use units::{HostAddress, QueueId};

/// Pages for doorbells and event indices.
const SHADOW: [u64; 2] = [MEMORY + (3 << 20) + 0x10000, MEMORY + (3 << 20) + 0x11000];

#[test]
fn a_guest_with_doorbells_in_its_memory_need_not_ring_while_the_drive_looks() {
    for (path, admin) in [(DoorbellPath::Mapped, false), (DoorbellPath::Sent, true), (DoorbellPath::Sent, false)] {
        let plugged = Serving::default().plug(path);
        let mut random = Xoshiro256PlusPlus::seed_from_u64(14);
        let mut machine = Machine::start(&plugged.socket, true);
        for round in 0..3u64 {
            machine.enable();
            machine.done(0, Submission::identify(identify::CONTROLLER, 0, at(BUFFERS)));
            let controller = IdentifyController::from_bytes(&machine.ram.get(BUFFERS, 4096));
            assert_eq!(controller.optional_admin_commands() >> 8 & 1, 1, "OACS");
            machine.make_queues(16);
            let [doorbells, events] = SHADOW.map(HostAddress);
            for (doorbells, events) in [
                (doorbells + 8, events),
                (doorbells, events + 2048),
                (HostAddress(0x1000), events),
                (doorbells, HostAddress(!4095)),
            ] {
                let refused = machine.command(0, Submission::doorbell_buffers(doorbells, events));
                assert_eq!(refused.status(), Status::INVALID_FIELD);
            }
            if round > 0 {
                // What the guest has done before, by registers, is where it begins.
                exercise(&mut machine, &mut random, 3);
            }
            machine.shadow(SHADOW, admin);
            exercise(&mut machine, &mut random, 30);
            machine.done(0, Submission::identify(identify::CONTROLLER, 0, at(BUFFERS)));
            if path == DoorbellPath::Mapped {
                assert_eq!(machine.rings, 0, "nobody sleeps");
            }
            // As many as fit without a completion taken: the drive has to be told of the room that comes.
            for _ in 0..4 {
                (0..15).for_each(|block| assert!(machine.push(1, Submission::write_zeroes(1, block, 1)) > 0));
                (0..15).for_each(|_| assert_eq!(machine.reap(1).status(), Status::SUCCESS));
            }
            if path == DoorbellPath::Sent {
                // The drive sleeps when it has asked to be told. It may have seen the last head just then, and be awake once more.
                let rings = machine.rings;
                for _ in 0..100 {
                    machine.await_event(QueueId(2));
                    machine.push(2, Submission::write_zeroes(1, 0, 8));
                    assert_eq!(machine.reap(2).status(), Status::SUCCESS);
                    if machine.rings > rings {
                        break;
                    }
                }
                assert!(machine.rings > rings, "a drive that sleeps is rung for");
            }
        }
        drop(machine);
        assert_eq!(plugged.end().violations, 0);
    }
}

/// Linux 5.10 does not clear its pages: after a reset they have what the doorbells of the queues before were, and the rings what these
/// had been told to do.
#[test]
fn what_a_guest_has_left_of_doorbells_before_a_reset_is_not_rung() {
    for queues_first in [true, false] {
        let plugged = Serving::default().plug(DoorbellPath::Mapped);
        let mut machine = Machine::start(&plugged.socket, true);
        machine.enable();
        machine.make_queues(16);
        machine.shadow(SHADOW, false);
        let page = |machine: &mut Machine, byte: u8| machine.ram.put(BUFFERS, &[byte; 4096]);
        page(&mut machine, 7);
        for block in 0..5 {
            machine.done(1, Submission::write(1, 8 * block, 8, at(BUFFERS)));
        }
        page(&mut machine, 9);
        machine.enable();
        if queues_first {
            machine.make_queues(16);
            machine.shadow_as_left(SHADOW);
        } else {
            machine.shadow_as_left(SHADOW);
            machine.make_queues(16);
        }
        // As many at once as were told before: the doorbell comes to where it was left.
        machine.push_all(1, &[Submission::read(1, 0, 8, at(BUFFERS + 4096)); 5]);
        (0..5).for_each(|_| assert_eq!(machine.reap(1).status(), Status::SUCCESS));
        assert!(machine.ram.get(BUFFERS + 4096, 4096) == [7; 4096], "nothing was written again");
        machine.done(1, Submission::read(1, 8, 8, at(BUFFERS + 4096)));
        assert!(machine.ram.get(BUFFERS + 4096, 4096) == [7; 4096], "queues first: {queues_first}");
        drop(machine);
        assert_eq!(plugged.end().violations, 0);
    }
}
