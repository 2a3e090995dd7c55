//! How long a host may be silent.

use super::*;
use crate::orphan::LeftBehind;
use crate::port::{Line, PortShape};
use crate::rehearsal::tests::settings;
use crate::rehearsal::{Plain, SHAPE, open_to_all};
use nvme::spec::registers::{self, AdminQueueAttributes};
use nvme::spec::{Completion, DataPointer};
use std::sync::Mutex;
use units::QueueId;

/// CC: disabled, enabled, enabled and to be shut down.
const DISABLED: u32 = 0x46_0060;
const ENABLED: u32 = 0x46_0061;
const SHUT_DOWN: u32 = 0x46_4061;

fn at(seconds: u64) -> Time {
    Time::ZERO + Span::from_secs(seconds)
}

/// A controller of a host with such a timeout, before a drive that never answers: CC is written at these seconds.
fn controller(keep_alive_ms: u32, writes: &[(u64, u32)]) -> (Subsystem, Port, u16) {
    controller_of(settings(), keep_alive_ms, writes)
}

fn controller_of(like: ControllerSettings, keep_alive_ms: u32, writes: &[(u64, u32)]) -> (Subsystem, Port, u16) {
    let mut port = Port::new(Arc::new(Plain::new()), SHAPE, Arc::new(Line::new(SHAPE.pairs)));
    let mut subsystem = Subsystem::new(open_to_all(like), &mut port);
    let new = NewController { keep_alive_ms, ..NewController::default() };
    let id = subsystem.create(new, Time::ZERO).expect("there is room");
    for (seconds, value) in writes {
        let live = subsystem.controllers.get_mut(&id).expect("it lives");
        live.heard(at(*seconds));
        live.controller.write_property(registers::CC, *value);
        subsystem.obey(&mut port, id, at(*seconds));
    }
    (subsystem, port, id)
}

/// A keep alive timeout, what is written to CC and when, and when the controller ends.
type Case = (u32, &'static [(u64, u32)], Option<u64>);

/// Base §3.9: the timer runs from CSTS.RDY on, and not while the controller is disabled or shut down. What is left of its host may be gone.
#[test]
fn a_silent_host_is_let_go_by_its_timer_or_two_minutes_after_it_stopped() {
    let cases: [Case; 6] = [
        (1_000, &[], Some(120)),
        (0, &[], Some(120)),
        (1_000, &[(50, ENABLED)], Some(51)),
        (0, &[(50, ENABLED)], None),
        (1_000, &[(50, ENABLED), (51, DISABLED)], Some(171)),
        (300_000, &[(50, ENABLED), (51, DISABLED), (52, ENABLED)], Some(352)),
    ];
    for (keep_alive_ms, writes, end) in cases {
        let (mut subsystem, ..) = controller(keep_alive_ms, writes);
        assert_eq!(subsystem.next_expiry(), end.map(at), "{keep_alive_ms} ms, {writes:x?}");
        if let Some(end) = end {
            assert_eq!([end - 1, end].map(|seconds| subsystem.expire(at(seconds))), [0, 1]);
        }
    }
}

/// Base §3.9 with TBKAS: the timer is started again at the end of an interval with a command, however long before that it came.
#[test]
fn a_command_within_an_interval_begins_another_at_its_end() {
    let (mut subsystem, _, id) = controller(1_000, &[(50, ENABLED)]);
    let millis = |millis| Time::ZERO + Span::from_millis(millis);
    for (heard, end) in [(50_050, 51_000), (51_930, 52_000)] {
        subsystem.controllers.get_mut(&id).expect("it lives").heard(millis(heard));
        assert_eq!(subsystem.next_expiry(), Some(millis(end)));
        assert_eq!(subsystem.expire(millis(end)), 0, "{end}");
    }
    assert_eq!([52_999, 53_000].map(|now| subsystem.expire(millis(now))), [0, 1], "nothing came in the third");
}

/// As after one by CC.EN, whoever asked for it, and also while the end of its queues is waited for.
#[test]
fn a_reset_of_the_subsystem_gives_every_host_two_minutes() {
    let (mut subsystem, mut port, other) = controller(0, &[(50, ENABLED)]);
    let id = subsystem.create(NewController::default(), at(60)).expect("there is room");
    subsystem.controllers.get_mut(&other).expect("it lives").queues.insert(1, 7);
    let live = subsystem.controllers.get_mut(&id).expect("it lives");
    live.controller.write_property(registers::NSSR, registers::NSSR_SIGNATURE);
    subsystem.obey(&mut port, id, at(170));
    assert_eq!(subsystem.doomed, [7], "the admin queues stay");
    assert_eq!([289, 290].map(|seconds| subsystem.expire(at(seconds))), [0, 2]);
    assert!([id, other].iter().all(|id| !subsystem.controllers.contains_key(id)));
}

/// Nothing else would tell it so before it asks for something; who has just come has nothing to lose.
#[test]
fn a_host_without_queues_hears_of_a_reset_of_the_subsystem_by_the_end_of_its_admin_queue() {
    let (mut subsystem, mut port, id) = controller(0, &[(1, ENABLED)]);
    for (admin, is_enabled) in [(8, true), (9, false)] {
        let new = NewController { admin, ..NewController::default() };
        let other = subsystem.create(new, at(1)).expect("there is room");
        configure(&mut subsystem, &mut port, other, if is_enabled { ENABLED } else { DISABLED });
    }
    let live = subsystem.controllers.get_mut(&id).expect("it lives");
    live.controller.write_property(registers::NSSR, registers::NSSR_SIGNATURE);
    subsystem.obey(&mut port, id, at(2));
    assert_eq!(subsystem.doomed, [8]);
}

#[test]
fn a_shutdown_takes_as_long_as_it_takes_and_then_the_host_has_two_minutes_to_see_it() {
    let (mut subsystem, mut port, id) = controller(1_000, &[(5, ENABLED), (6, SHUT_DOWN)]);
    assert_eq!((subsystem.expire(at(1_000)), subsystem.next_expiry()), (0, None));
    assert!(flushed_at(&mut subsystem, &mut port, at(1_000)));
    let status = subsystem.controllers[&id].controller.read_property(registers::CSTS);
    assert_eq!(status, registers::CSTS_READY | registers::CSTS_SHUT_DOWN);
    assert_eq!([1_119, 1_120].map(|seconds| subsystem.expire(at(seconds))), [0, 1]);
}

/// What the one who keeps a drive's rest was called with; it can keep it as `keeps` says.
fn calls_to_keep(subsystem: &mut Subsystem, keeps: impl Fn(bool) -> bool + Send + 'static) -> Arc<Mutex<Vec<bool>>> {
    let calls = Arc::new(Mutex::new(Vec::new()));
    let called = calls.clone();
    subsystem.settings.keep_shut_down = Some(Box::new(move |is_down| {
        called.lock().expect("nobody panics with it").push(is_down);
        keeps(is_down)
    }));
    calls
}

/// A host writes CC.
fn configure(subsystem: &mut Subsystem, port: &mut Port, id: u16, value: u32) {
    subsystem.controllers.get_mut(&id).expect("it lives").controller.write_property(registers::CC, value);
    subsystem.obey(port, id, at(2));
}

/// The flush that is under way ends well; whether there was one.
fn flushed(subsystem: &mut Subsystem, port: &mut Port) -> bool {
    flushed_at(subsystem, port, at(2))
}

fn flushed_at(subsystem: &mut Subsystem, port: &mut Port, now: Time) -> bool {
    let Some(slot) = subsystem.flush_slot.take() else { return false };
    let completion = Completion::new(0, 0, subsystem.own.id(), slot, false, Status::SUCCESS);
    subsystem.own.give_back(slot);
    subsystem.served.end(now, subsystem.own.id(), Opcode::Flush, &completion);
    subsystem.on_flushed(port, now, &completion);
    true
}

/// A write goes to the drive by a slot of a host's pair.
fn begin_write(subsystem: &mut Subsystem, slot: u16) {
    let write = Submission::write(1, 0, 8, DataPointer::default());
    subsystem.begin_for_host(at(2), (QueueId(2), slot), 1, (&write, Bytes(0)));
}

/// It is over.
fn end_write(subsystem: &mut Subsystem, slot: u16) {
    let written = Completion::new(0, 0, QueueId(2), slot, false, Status::SUCCESS);
    subsystem.served.end(at(2), QueueId(2), Opcode::Write, &written);
}

/// What CSTS says of a controller, but that it is ready.
fn shutdown_status(subsystem: &Subsystem, id: u16) -> u32 {
    subsystem.controllers[&id].controller.read_property(registers::CSTS) & !registers::CSTS_READY
}

/// Two hosts shut down, and what keeps the drive cannot say that it is off: neither hears that power may go, the first not any more.
#[test]
fn a_shutdown_that_is_not_kept_is_not_complete() {
    let (mut subsystem, mut port, first) = controller(0, &[(1, ENABLED)]);
    let second = subsystem.create(NewController::default(), at(1)).expect("there is room");
    let calls = calls_to_keep(&mut subsystem, |is_down| !is_down);
    let mut configure = |subsystem: &mut Subsystem, id, value| {
        configure(subsystem, &mut port, id, value);
        flushed(subsystem, &mut port);
    };
    let status = |subsystem: &Subsystem, id| subsystem.controllers[&id].controller.read_property(registers::CSTS);
    configure(&mut subsystem, second, ENABLED);
    configure(&mut subsystem, first, SHUT_DOWN);
    assert_eq!(status(&subsystem, first), registers::CSTS_READY | registers::CSTS_SHUT_DOWN, "the second uses it");
    configure(&mut subsystem, second, SHUT_DOWN);
    let failed = registers::CSTS_READY | registers::CSTS_FATAL | registers::CSTS_SHUTTING_DOWN;
    assert_eq!([first, second].map(|id| status(&subsystem, id)), [failed; 2]);
    assert_eq!(*calls.lock().expect("nobody panics with it"), [true], "and it works on");
    assert!(!subsystem.is_resting);
    for id in [first, second] {
        configure(&mut subsystem, id, DISABLED);
        configure(&mut subsystem, id, ENABLED);
        assert_eq!(status(&subsystem, id), registers::CSTS_READY, "a reset is the way out");
    }
}

/// A host that goes without a shutdown has written while another's was under way: what the flush of that does not cover is flushed before
/// the drive says that it is off.
#[test]
fn nothing_rests_before_what_came_during_a_shutdown_is_durable() {
    let (mut subsystem, mut port, first) = controller(0, &[(1, ENABLED)]);
    let second = subsystem.create(NewController::default(), at(1)).expect("there is room");
    let calls = calls_to_keep(&mut subsystem, |_| true);
    let flushed = |subsystem: &mut Subsystem, port: &mut Port| {
        assert!(flushed(subsystem, port), "a flush is under way");
    };
    configure(&mut subsystem, &mut port, second, ENABLED);
    configure(&mut subsystem, &mut port, first, SHUT_DOWN);
    begin_write(&mut subsystem, 0);
    end_write(&mut subsystem, 0);
    flushed(&mut subsystem, &mut port);
    subsystem.end(second);
    subsystem.reap(&mut port, at(3));
    assert_eq!(calls.lock().expect("nobody panics with it").len(), 0, "the write is in the buffer");
    flushed(&mut subsystem, &mut port);
    assert_eq!(*calls.lock().expect("nobody panics with it"), [true]);
    assert!(subsystem.is_resting);
    subsystem.reap(&mut port, at(4));
    assert!(subsystem.flush_slot.is_none(), "nothing has come since");
}

/// A host is gone, and what it had under way is not over as the flush of another's shutdown ends.
#[test]
fn the_last_host_waits_for_what_others_have_left_under_way() {
    let (mut subsystem, mut port, first) = controller(0, &[(1, ENABLED)]);
    let second = subsystem.create(NewController::default(), at(1)).expect("there is room");
    let calls = calls_to_keep(&mut subsystem, |_| true);
    configure(&mut subsystem, &mut port, second, ENABLED);
    configure(&mut subsystem, &mut port, first, SHUT_DOWN);
    begin_write(&mut subsystem, 0);
    subsystem.end(second);
    assert!(flushed(&mut subsystem, &mut port));
    assert!(subsystem.flush_slot.is_none(), "the next one waits");
    assert_eq!(shutdown_status(&subsystem, first), registers::CSTS_SHUTTING_DOWN);
    end_write(&mut subsystem, 0);
    subsystem.reap(&mut port, at(2));
    assert!(flushed(&mut subsystem, &mut port));
    assert_eq!(shutdown_status(&subsystem, first), registers::CSTS_SHUT_DOWN);
    assert_eq!(*calls.lock().expect("nobody panics with it"), [true]);
}

/// Another host's write is under way as the flush of a shutdown begins, and the host is gone when that ends.
#[test]
fn the_last_host_hears_that_power_may_go_when_that_is_so() {
    let (mut subsystem, mut port, first) = controller(0, &[(1, ENABLED)]);
    let calls = calls_to_keep(&mut subsystem, |_| true);
    let come = |subsystem: &mut Subsystem, port: &mut Port, slot| {
        let other = subsystem.create(NewController::default(), at(1)).expect("there is room");
        configure(subsystem, port, other, ENABLED);
        begin_write(subsystem, slot);
        other
    };
    begin_write(&mut subsystem, 0);
    configure(&mut subsystem, &mut port, first, SHUT_DOWN);
    let second = come(&mut subsystem, &mut port, 1);
    end_write(&mut subsystem, 0);
    subsystem.reap(&mut port, at(2));
    end_write(&mut subsystem, 1);
    subsystem.end(second);
    assert!(flushed(&mut subsystem, &mut port));
    assert_eq!(shutdown_status(&subsystem, first), registers::CSTS_SHUTTING_DOWN, "what it wrote is in the buffer");
    // It waits for nobody who comes and goes meanwhile.
    let third = come(&mut subsystem, &mut port, 2);
    end_write(&mut subsystem, 2);
    subsystem.end(third);
    assert!(flushed(&mut subsystem, &mut port));
    assert_eq!(shutdown_status(&subsystem, first), registers::CSTS_SHUT_DOWN);
    assert_eq!(calls.lock().expect("nobody panics with it").len(), 0);
    assert!(flushed(&mut subsystem, &mut port));
    assert_eq!(*calls.lock().expect("nobody panics with it"), [true]);
}

/// It asks anew behind the reset, and the flush that is under way then is not for that.
#[test]
fn a_reset_of_the_subsystem_forgets_the_shutdown_of_a_controller_that_is_disabled() {
    let (mut subsystem, mut port, first) = controller(0, &[]);
    let second = subsystem.create(NewController::default(), at(1)).expect("there is room");
    configure(&mut subsystem, &mut port, second, ENABLED);
    configure(&mut subsystem, &mut port, first, SHUT_DOWN & !1);
    let live = subsystem.controllers.get_mut(&second).expect("it lives");
    live.controller.write_property(registers::NSSR, registers::NSSR_SIGNATURE);
    subsystem.obey(&mut port, second, at(2));
    assert_eq!(shutdown_status(&subsystem, first), registers::CSTS_SUBSYSTEM_RESET);
    configure(&mut subsystem, &mut port, first, SHUT_DOWN & !1);
    assert!(flushed(&mut subsystem, &mut port), "that of before");
    let reset = registers::CSTS_SUBSYSTEM_RESET;
    assert_eq!(shutdown_status(&subsystem, first), reset | registers::CSTS_SHUTTING_DOWN);
    assert!(flushed(&mut subsystem, &mut port));
    assert_eq!(shutdown_status(&subsystem, first), reset | registers::CSTS_SHUT_DOWN);
}

/// A host shuts down while an extended self-test runs, which would take longer than it waits: the test goes on when a host comes.
#[test]
fn what_the_drive_does_for_its_hosts_waits_until_one_comes_again() {
    let mut like = settings();
    like.namespaces[0].blocks = 1 << 20;
    let (mut subsystem, mut port, id) = controller_of(like, 0, &[(1, ENABLED)]);
    let calls = calls_to_keep(&mut subsystem, |_| true);
    let slot = subsystem.own.take_slot().expect("nothing is under way");
    subsystem.own.give_back(slot);
    let begin = subsystem.administer(id, &Submission::device_self_test(2), &[], at(1));
    assert_eq!(begin, AdminReply::Complete { result: 0, status: Status::SUCCESS });
    subsystem.obey(&mut port, id, at(1));
    configure(&mut subsystem, &mut port, id, SHUT_DOWN);
    assert!(subsystem.flush_slot.is_none() && !subsystem.chores.is_idle(), "it waits for the step that is under way");
    subsystem.own.give_back(slot);
    let verified = Completion::new(0, 0, subsystem.own.id(), slot, false, Status::SUCCESS);
    subsystem.on_chore(&verified, at(2));
    subsystem.reap(&mut port, at(2));
    assert!(subsystem.chores.is_idle() && flushed(&mut subsystem, &mut port));
    assert_eq!(shutdown_status(&subsystem, id), registers::CSTS_SHUT_DOWN);
    assert_eq!(*calls.lock().expect("nobody panics with it"), [true]);
    subsystem.end(id);
    subsystem.reap(&mut port, at(3));
    assert!(subsystem.chores.is_idle(), "power may go");
    let id = subsystem.create(NewController::default(), at(3)).expect("there is room");
    configure(&mut subsystem, &mut port, id, ENABLED);
    subsystem.reap(&mut port, at(3));
    assert!(!subsystem.chores.is_idle() && !subsystem.is_resting);
}

/// Who goes on writing keeps nobody waiting.
#[test]
fn a_shutdown_is_complete_however_busy_another_host_is() {
    let (mut subsystem, mut port, first) = controller(0, &[(1, ENABLED)]);
    let second = subsystem.create(NewController::default(), at(1)).expect("there is room");
    configure(&mut subsystem, &mut port, second, ENABLED);
    begin_write(&mut subsystem, 0);
    configure(&mut subsystem, &mut port, first, SHUT_DOWN);
    begin_write(&mut subsystem, 1);
    end_write(&mut subsystem, 0);
    subsystem.reap(&mut port, at(2));
    end_write(&mut subsystem, 1);
    begin_write(&mut subsystem, 0);
    assert!(flushed(&mut subsystem, &mut port));
    assert_eq!(shutdown_status(&subsystem, first), registers::CSTS_SHUT_DOWN);
}

/// That it is ready comes when commands of before are over: then the timer begins.
#[test]
fn a_timer_does_not_begin_before_the_controller_is_ready() {
    let (mut subsystem, mut port, id) = controller(1_000, &[]);
    subsystem.doomed.push(7);
    subsystem.controllers.get_mut(&id).expect("it lives").controller.write_property(registers::CC, ENABLED);
    subsystem.obey(&mut port, id, at(1));
    assert_eq!(subsystem.next_expiry(), None, "it waits");
    subsystem.doomed.clear();
    subsystem.obey(&mut port, id, at(30));
    assert_eq!(subsystem.next_expiry(), Some(at(31)));
}

/// A host that is let in leaves room to others, whatever it asks for.
#[test]
fn a_host_has_at_most_as_many_controllers_and_queues_as_it_leaves() {
    let mut port = Port::new(Arc::new(Plain::new()), SHAPE, Arc::new(Line::new(SHAPE.pairs)));
    let mut subsystem = Subsystem::new(open_to_all(settings()), &mut port);
    let mut create = |name: &str, discovery| {
        let host = Arc::new(Host { name: name.into(), id: [0; 16] });
        subsystem.create(NewController { host, discovery, ..NewController::default() }, Time::ZERO)
    };
    let mut taken = |name| (0..CONTROLLERS_MAX).filter_map(|_| create(name, None)).collect::<Vec<_>>();
    let [greedy, modest, third] = ["greedy", "modest", "third"].map(&mut taken);
    assert_eq!([greedy.len(), modest.len(), third.len()], [32, 16, 8]);
    // Who only discovers has proved nothing, and the one that is silent longest gives way.
    assert!((0..2 * CONTROLLERS_MAX).all(|_| create("anybody", Some(Vec::new())).is_some()));
    assert_eq!(subsystem.controllers.len(), 32 + 16 + 8 + CONTROLLERS_MAX);

    let free = port.free_pairs();
    let half = subsystem.queues_left(&port, greedy[0]);
    assert_eq!(usize::from(half), (free / 2).max(1));
    subsystem.controllers.get_mut(&greedy[0]).expect("it lives").granted = Granted::Set(half);
    let left = [greedy[1], modest[0]].map(|id| usize::from(subsystem.queues_left(&port, id)));
    let rest = free - usize::from(half);
    assert_eq!(left, [(rest.saturating_sub(half.into()) / 2).max(1), (rest / 2).max(1)]);
    // The last pair is for a host that has none.
    let mut pairs: Vec<_> =
        std::iter::from_fn(|| (port.free_pairs() > 1).then(|| port.take_pair()).flatten()).collect();
    let live = subsystem.controllers.get_mut(&greedy[1]).expect("it lives");
    live.queues.insert(1, 0);
    let finds = |subsystem: &Subsystem, port: &Port| {
        [greedy[0], greedy[1], modest[0]].map(|id| subsystem.has_pair_for(port, id))
    };
    assert_eq!(finds(&subsystem, &port), [true, false, false], "it was promised to the first");
    subsystem.controllers.get_mut(&greedy[0]).expect("it lives").granted = Granted::Taken(1);
    assert_eq!(finds(&subsystem, &port), [false, false, true]);
    // A queue that is gone has a pair as well while the drive still works on its commands.
    let left_behind = Arc::new(Host { name: "modest".into(), id: [0; 16] });
    let orphan = Orphan::new(pairs.pop().expect("they were taken"), left_behind, vec![LeftBehind::write(0)]);
    subsystem.adopt(orphan);
    assert_eq!(finds(&subsystem, &port), [false; 3]);
    subsystem.orphans.clear();
    pairs.extend(port.take_pair());
    assert_eq!(finds(&subsystem, &port), [false; 3]);
}

/// Whatever a host has of queues that are gone is of its share, under whichever of its controllers it comes.
#[test]
fn queues_that_are_gone_count_while_the_drive_works_on_their_commands() {
    let shape = PortShape { pairs: 17, ..SHAPE };
    let mut port = Port::new(Arc::new(Plain::new()), shape, Arc::new(Line::new(shape.pairs)));
    let mut subsystem = Subsystem::new(open_to_all(settings()), &mut port);
    let mut create = |name: &str| {
        let host = Arc::new(Host { name: name.into(), id: [0; 16] });
        subsystem.create(NewController { host, ..NewController::default() }, Time::ZERO).expect("there is room")
    };
    let [dying, other] = ["dying", "other"].map(&mut create);
    let host = subsystem.controllers[&dying].host.clone();
    let mut left = Vec::new();
    for orphans in 0..8 {
        assert_eq!(port.free_pairs(), 16 - orphans);
        left.push([dying, other].map(|id| subsystem.queues_left(&port, id)));
        assert!(subsystem.has_pair_for(&port, other));
        assert_eq!(subsystem.has_pair_for(&port, dying), 2 * orphans + 1 < 16, "{orphans}");
        let pair = port.take_pair().expect("one is free");
        subsystem.adopt(Orphan::new(pair, host.clone(), vec![LeftBehind::write(0)]));
    }
    assert_eq!(left, [[8, 8], [7, 7], [6, 7], [5, 6], [4, 6], [3, 5], [2, 5], [1, 4]]);
    assert_eq!([dying, other].map(|id| subsystem.has_pair_for(&port, id)), [false, true]);
}

/// Who shuts down waits for what was under way then, and not for what others go on to ask for.
#[test]
fn a_shutdown_waits_for_no_command_that_came_after_it() {
    let (mut subsystem, mut port, first) = controller(1_000, &[(5, ENABLED)]);
    let second = subsystem.create(NewController::default(), Time::ZERO).expect("there is room");
    subsystem.served.begin(at(6), (QueueId(2), 0), 0);
    subsystem.controllers.get_mut(&first).expect("it lives").controller.write_property(registers::CC, SHUT_DOWN);
    subsystem.obey(&mut port, first, at(6));
    // Another does so again and again, with something under way each time.
    for slot in 1..4 {
        subsystem.served.begin(at(6), (QueueId(2), slot), 0);
        subsystem.flush_after_all(&mut port, Flush::ShutDown(second), at(6));
        subsystem.forget_waiting(second);
    }
    subsystem.flush_after_all(&mut port, Flush::ShutDown(second), at(6));
    assert!(subsystem.flushing.is_empty());
    let completion = Completion::new(0, 0, QueueId(2), 0, false, Status::SUCCESS);
    subsystem.served.end(at(7), QueueId(2), Opcode::Read, &completion);
    subsystem.settle(&mut port, at(7));
    assert_eq!(subsystem.flushing.iter().collect::<Vec<_>>(), [&Flush::ShutDown(first)]);
}

/// A subsystem with a controller in memory, 1, and one of a host over messages.
fn plugged() -> (Subsystem, Port, u16) {
    let mut port = Port::new(Arc::new(Plain::new()), SHAPE, Arc::new(Line::new(SHAPE.pairs)));
    let controller = ControllerSettings { transport: Transport::Memory, ..settings() };
    let mut subsystem = Subsystem::new(open_to_all(controller), &mut port);
    subsystem.plug(1);
    let other = subsystem.create(NewController::default(), Time::ZERO).expect("there is room");
    [1, other].iter().for_each(|id| enable(&mut subsystem, &mut port, *id));
    (subsystem, port, other)
}

fn enable(subsystem: &mut Subsystem, port: &mut Port, id: u16) {
    let live = subsystem.controllers.get_mut(&id).expect("it lives");
    live.controller.write_property(registers::AQA, AdminQueueAttributes::new(32, 32).0);
    live.controller.write_property(registers::CC, ENABLED);
    subsystem.obey(port, id, Time::ZERO);
    subsystem.advance(id);
}

/// Has a command fail: how the error is counted.
fn fail(subsystem: &mut Subsystem, id: u16) -> u8 {
    subsystem.administer(id, &Submission::new(0x7f, 0), &[], Time::ZERO);
    let page = |id, words| Submission::get_log_page(id, 0, words, DataPointer::default());
    let [errors, health] = [page(log_page::ERRORS, 16), page(log_page::HEALTH, 128)].map(|command| {
        match subsystem.administer(id, &command, &[], Time::ZERO) {
            AdminReply::Transfer { data, .. } => data,
            other => panic!("{other:?}"),
        }
    });
    assert_eq!(errors[0], health[176], "both pages count alike");
    errors[0]
}

/// A namespace that another has is not attached again.
#[test]
fn a_reset_of_the_function_attaches_nothing() {
    let (mut subsystem, mut port, other) = plugged();
    let list: Vec<u8> = [1u16, 1].iter().flat_map(|word| word.to_le_bytes()).collect();
    let detach = Submission::attach_namespace(1, false, DataPointer::default());
    let reply = subsystem.administer(other, &detach, &list, Time::ZERO);
    assert!(matches!(reply, AdminReply::Complete { status: Status::SUCCESS, .. }), "{reply:?}");
    subsystem.obey(&mut port, other, Time::ZERO);
    let has = |subsystem: &Subsystem| [1, other].map(|id| subsystem.namespaces.pieces_of(id).count());
    assert_eq!(has(&subsystem), [0, 1]);
    subsystem.plug(1);
    assert_eq!(has(&subsystem), [0, 1]);
}

/// Base §5.16.1.2: each error of a controller has a number that no other of it has. One that comes goes on from those of all.
#[test]
fn the_count_of_errors_never_goes_back() {
    let (mut subsystem, mut port, other) = plugged();
    assert_eq!([1, 1, other].map(|id| fail(&mut subsystem, id)), [1, 2, 1]);
    subsystem.plug(1);
    enable(&mut subsystem, &mut port, 1);
    assert_eq!(fail(&mut subsystem, 1), 4, "after a reset of the function");
    subsystem.end(other);
    subsystem.doomed.clear();
    let third = subsystem.create(NewController::default(), Time::ZERO).expect("there is room");
    enable(&mut subsystem, &mut port, third);
    assert_eq!([third, 1].map(|id| fail(&mut subsystem, id)), [5, 5]);
}
