//! What the subsystem asks of the drive itself: namespaces that are to be erased, and self-tests. Its commands go by its own queue
//! pair, beside those of the hosts.

use crate::port::{Moved, Port};
use crate::subsystem::Subsystem;
use nvme::Piece;
use nvme::spec::log_page::SelfTestPage;
use nvme::spec::{ALL_NAMESPACES, Completion, Opcode, Status, Submission};
use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::time::Duration;
use units::Time;

/// Blocks of the drive that one command erases or verifies; as many as a command can name.
const STRIDE: u64 = 1 << 16;

/// Blocks that a short self-test reads at each of so many places.
const SAMPLE: u64 = 256;
const SAMPLES: u64 = 64;

/// Erasing commands under way at a time.
const ERASES: usize = 4;

/// Results that the log of self-tests keeps (Base §5.16.1.7), and what marks those that are not there.
const RESULTS: usize = 20;
const RESULT_BYTES: usize = 28;
const NO_RESULT: u8 = 0xf;

/// A namespace that is to be erased for a controller.
#[derive(Debug)]
struct Erasing {
    controller: u16,
    namespace: u32,
    piece: Piece,
    /// Blocks that commands were sent for.
    sent: u64,
    is_good: bool,
    is_flushing: bool,
}

/// How a self-test ended (Base §5.16.1.7, figure of the result's status).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum TestResult {
    /// Without an error.
    Passed,
    /// By a Device Self-test command.
    Ended,
    /// By a reset of its controller.
    Reset,
    /// Its namespace is deleted.
    Deleted,
    /// By a Format.
    Formatted,
    /// Blocks of this namespace could not be read.
    Failed(u32, Status),
}

/// A self-test under way.
#[derive(Debug)]
struct Test {
    /// Who asked for it.
    controller: u16,
    extended: bool,
    /// The namespaces that it reads.
    namespaces: BTreeSet<u32>,
    /// What is still to be read, of which namespace, and how much that was.
    left: VecDeque<(u32, Piece)>,
    steps: usize,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Errand {
    Erase,
    Flush,
    Verify,
}

/// What there is to do, and what was found.
#[derive(Debug, Default)]
pub(crate) struct Chores {
    erasing: VecDeque<Erasing>,
    test: Option<Test>,
    /// What each slot of the own pair is for.
    errands: BTreeMap<u16, Errand>,
    results: VecDeque<[u8; RESULT_BYTES]>,
    /// The Verify that is under way is of a test that has ended.
    is_stale: bool,
    /// The service ends: nothing more is asked.
    is_ending: bool,
    /// How long the drive was on before it was started, and when these were last looked at.
    powered: Duration,
    now: Time,
}

impl Chores {
    /// Nothing yet, of a drive that was on for so long before it was started.
    pub(crate) fn after(powered: Duration) -> Self {
        Chores { powered, ..Chores::default() }
    }

    /// The log page of self-tests.
    pub(crate) fn self_test_page(&self) -> Vec<u8> {
        let mut page = SelfTestPage::default();
        if let Some(Test { extended, left, steps, .. }) = &self.test {
            let done = (steps - left.len()) * 100 / steps.max(&1);
            page.set_current(1 + u8::from(*extended)).set_completion(done.min(99) as u8);
        }
        let mut bytes = page.as_bytes()[..4].to_vec();
        self.results.iter().for_each(|result| bytes.extend_from_slice(result));
        while bytes.len() < SelfTestPage::BYTES {
            bytes.push(NO_RESULT);
            bytes.extend_from_slice(&[0; RESULT_BYTES - 1]);
        }
        bytes
    }

    /// The self-test is over, if one runs.
    pub(crate) fn end_test(&mut self, how: TestResult) {
        let Some(test) = self.test.take() else { return };
        self.is_stale = self.errands.values().any(|errand| *errand == Errand::Verify);
        let mut result = [0; RESULT_BYTES];
        let code = match how {
            TestResult::Passed => 0,
            TestResult::Ended => 1,
            TestResult::Reset => 2,
            TestResult::Deleted => 3,
            TestResult::Formatted => 4,
            TestResult::Failed(..) => 7,
        };
        result[0] = (1 + u8::from(test.extended)) << 4 | code;
        let hours = (self.powered + Duration::from_nanos(self.now.since(Time::ZERO).nanos())).as_secs() / 3600;
        result[4..12].copy_from_slice(&hours.to_le_bytes());
        if let TestResult::Failed(namespace, status) = how {
            // Segment 1 is reading. The namespace, the status type and the status count; which block it was is not told.
            (result[1], result[2]) = (1, 0b1101);
            result[12..16].copy_from_slice(&namespace.to_le_bytes());
            (result[24], result[25]) = (status.code_type(), status.code());
        }
        self.results.push_front(result);
        self.results.truncate(RESULTS);
    }

    /// A controller is reset: a short self-test that it was asked for ends, an extended one goes on (Base §8.6).
    pub(crate) fn on_reset(&mut self, controller: u16) {
        if self.test.as_ref().is_some_and(|test| test.controller == controller && !test.extended) {
            self.end_test(TestResult::Reset);
        }
    }

    /// The contents of a namespace go: so does a self-test that reads it.
    pub(crate) fn on_erasing(&mut self, namespace: u32, deletes: bool) {
        if self.test.as_ref().is_some_and(|test| test.namespaces.contains(&namespace)) {
            self.end_test(if deletes { TestResult::Deleted } else { TestResult::Formatted });
        }
    }

    /// Asks nothing more of the drive: a namespace whose contents were going keeps some of them.
    pub(crate) fn end(&mut self) {
        self.is_ending = true;
    }

    /// Whether nothing is under way or waits for its turn.
    pub(crate) fn are_done(&self) -> bool {
        self.is_idle() && self.erasing.is_empty() && self.test.is_none()
    }

    /// Whether the drive works on none of these.
    pub(crate) fn is_idle(&self) -> bool {
        self.errands.is_empty()
    }
}

/// Pieces of at most so many blocks that a piece has, `apart` blocks from one another.
fn strides(piece: Piece, blocks: u64, apart: u64) -> impl Iterator<Item = Piece> {
    let count = piece.blocks.div_ceil(apart);
    (0..count).map(move |at| {
        let first = at * apart;
        Piece { home: piece.home, first: piece.first + first, blocks: blocks.min(piece.blocks - first) }
    })
}

impl Subsystem {
    /// Has a namespace erased for a controller.
    pub(crate) fn erase(&mut self, port: &mut Port, controller: u16, namespace: u32, piece: Piece, now: Time) {
        self.wake();
        let erasing = Erasing { controller, namespace, piece, sent: 0, is_good: !self.is_full(), is_flushing: false };
        self.chores.erasing.push_back(erasing);
        self.go_on(port, now);
    }

    /// Begins a self-test: a sample of each namespace that its controller has now is read, or all of it; without a namespace, nothing of
    /// any.
    pub(crate) fn begin_test(&mut self, port: &mut Port, controller: u16, extended: bool, namespace: u32, now: Time) {
        let pieces = self.namespaces.pieces_of(controller);
        let pieces: Vec<_> = pieces.filter(|(id, _)| [ALL_NAMESPACES, *id].contains(&namespace)).collect();
        let namespaces = pieces.iter().map(|(id, _)| *id).collect();
        let left: VecDeque<(u32, Piece)> = pieces
            .into_iter()
            .flat_map(|(id, piece)| {
                let apart = if extended { STRIDE } else { (piece.blocks / SAMPLES).max(SAMPLE) };
                strides(piece, if extended { STRIDE } else { SAMPLE }, apart).map(move |piece| (id, piece))
            })
            .collect();
        self.chores.test = Some(Test { controller, extended, namespaces, steps: left.len(), left });
        self.go_on(port, now);
    }

    /// Asks the drive for what can be asked now.
    pub(crate) fn go_on(&mut self, port: &mut Port, now: Time) {
        self.chores.now = now;
        // What is to be done next counts as begun, so there is a slot for it first.
        while let Some(slot) = self.own.take_slot() {
            let Some((errand, submission)) = self.next_errand() else { return self.own.give_back(slot) };
            self.chores.errands.insert(slot, errand);
            self.work();
            self.served.begin(now, (self.own.id(), slot), 0);
            port.submit(&mut self.own, slot, submission, Moved::Nothing);
        }
    }

    fn next_errand(&mut self) -> Option<(Errand, Submission)> {
        if self.chores.is_ending {
            return None;
        }
        let busy = |errands: &BTreeMap<u16, Errand>, kind| errands.values().filter(|errand| **errand == kind).count();
        let erases = busy(&self.chores.errands, Errand::Erase);
        let has_room = self.chores.errands.len() < ERASES;
        if let Some(erasing) = self.chores.erasing.front_mut() {
            // Commands of hosts that came before it are waited for.
            let waits = erasing.sent == 0 && self.served.under_way(erasing.namespace) > 0;
            let Piece { home, first, blocks } = erasing.piece;
            if !waits && erasing.is_good && erasing.sent < blocks && has_room {
                let count = STRIDE.min(blocks - erasing.sent);
                let submission = Submission::write_zeroes(home, first + erasing.sent, count as u32);
                erasing.sent += count;
                return Some((Errand::Erase, submission));
            }
            let is_over = erasing.sent == blocks || !erasing.is_good;
            if !waits && is_over && erases == 0 && !erasing.is_flushing {
                erasing.is_flushing = true;
                return Some((Errand::Flush, Submission::flush(home)));
            }
        }
        if busy(&self.chores.errands, Errand::Verify) > 0 {
            return None;
        }
        let test = self.chores.test.as_mut()?;
        let Some((_, piece)) = test.left.front() else {
            self.chores.end_test(TestResult::Passed);
            return None;
        };
        Some((Errand::Verify, Submission::verify_unmarked(piece.home, piece.first, piece.blocks as u32)))
    }

    /// One of its own commands is over.
    pub(crate) fn on_chore(&mut self, completion: &Completion, now: Time) {
        let errand = self.chores.errands.remove(&completion.command_id()).expect("it was sent for one");
        let status = completion.status();
        let opcode = match errand {
            Errand::Erase => Opcode::WriteZeroes,
            Errand::Flush => Opcode::Flush,
            Errand::Verify => Opcode::Verify,
        };
        self.served.end(now, self.own.id(), opcode, completion);
        match errand {
            Errand::Verify if std::mem::take(&mut self.chores.is_stale) => {}
            Errand::Verify => {
                let read = self.chores.test.as_mut().and_then(|test| test.left.pop_front());
                if let Some((namespace, _)) = read.filter(|_| !status.is_success()) {
                    self.chores.end_test(TestResult::Failed(namespace, status));
                }
            }
            Errand::Erase => {
                let erasing = self.chores.erasing.front_mut().expect("its commands are the only ones");
                erasing.is_good &= status.is_success();
            }
            Errand::Flush => {
                let erasing = self.chores.erasing.pop_front().expect("its commands are the only ones");
                let is_good = erasing.is_good && status.is_success();
                let is_good = self.on_erased(erasing.namespace, is_good);
                if let Some(live) = self.controllers.get_mut(&erasing.controller) {
                    live.controller.on_erased(erasing.namespace, is_good);
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::port::Line;
    use crate::rehearsal::tests::settings;
    use crate::rehearsal::{Plain, SHAPE, open_to_all};
    use crate::subsystem::NewController;
    use nvme::spec::{AdminOpcode, DataPointer, registers};
    use nvme::{AdminReply, NamespaceSettings};
    use std::sync::Arc;
    use units::QueueId;

    /// A subsystem on its port, before a drive that never answers.
    fn subsystem() -> (Subsystem, Port) {
        let mut port = Port::new(Arc::new(Plain::new()), SHAPE, Arc::new(Line::new(SHAPE.pairs)));
        (Subsystem::new(open_to_all(settings()), &mut port), port)
    }

    #[test]
    fn what_finds_no_slot_is_begun_when_there_is_one() {
        let (mut subsystem, mut port) = subsystem();
        let take_all =
            |subsystem: &mut Subsystem| -> Vec<u16> { std::iter::from_fn(|| subsystem.own.take_slot()).collect() };
        let slots = take_all(&mut subsystem);
        let piece = Piece { home: 1, first: 0, blocks: 2 * STRIDE };
        subsystem.erase(&mut port, 1, 1, piece, Time::ZERO);
        assert!(subsystem.chores.is_idle() && subsystem.chores.erasing[0].sent == 0, "nothing is under way");
        slots.into_iter().for_each(|slot| subsystem.own.give_back(slot));
        subsystem.reap(&mut port, Time::ZERO);
        assert_eq!((subsystem.chores.errands.len(), subsystem.chores.erasing[0].sent), (2, 2 * STRIDE));
        let slots = take_all(&mut subsystem);
        subsystem.make_durable(&mut port, Time::ZERO);
        subsystem.own.give_back(slots[0]);
        subsystem.reap(&mut port, Time::ZERO);
        assert!(take_all(&mut subsystem).is_empty(), "the flush has it");
    }

    /// A drive may have been given more namespaces than its hosts can make.
    #[test]
    fn an_erase_waits_for_commands_that_came_before_whichever_the_namespace() {
        let mut controller = settings();
        let space = controller.namespaces[0].clone();
        controller.namespaces.extend((2..=7).map(|number| NamespaceSettings { nguid: [number; 16], ..space.clone() }));
        for namespace in 1..=7 {
            let mut port = Port::new(Arc::new(Plain::new()), SHAPE, Arc::new(Line::new(SHAPE.pairs)));
            let mut subsystem = Subsystem::new(open_to_all(controller.clone()), &mut port);
            let place = (QueueId(2), 0);
            subsystem.served.begin(Time::ZERO, place, namespace);
            let piece = Piece { home: namespace, first: 0, blocks: STRIDE };
            subsystem.erase(&mut port, 1, namespace, piece, Time::ZERO);
            assert!(subsystem.chores.is_idle(), "namespace {namespace} has a write under way");
            let over = Completion::new(0, 0, place.0, place.1, false, Status::SUCCESS);
            subsystem.served.end(Time::ZERO, place.0, Opcode::Write, &over);
            subsystem.go_on(&mut port, Time::ZERO);
            assert!(!subsystem.chores.is_idle(), "namespace {namespace} has none");
        }
    }

    /// A host's controller, enabled.
    fn enabled(subsystem: &mut Subsystem, port: &mut Port) -> u16 {
        let id = subsystem.create(NewController::default(), Time::ZERO).expect("there is room");
        configure(subsystem, port, id, 0x46_0061);
        id
    }

    fn configure(subsystem: &mut Subsystem, port: &mut Port, id: u16, value: u32) {
        let live = subsystem.controllers.get_mut(&id).expect("it lives");
        live.controller.write_property(registers::CC, value);
        subsystem.obey(port, id, Time::ZERO);
    }

    fn ask(subsystem: &mut Subsystem, port: &mut Port, id: u16, command: Submission) {
        let reply = subsystem.administer(id, &command, &[], Time::ZERO);
        let is_good = |status: Status| status.is_success();
        assert!(!matches!(reply, AdminReply::Complete { status, .. } if !is_good(status)), "{reply:?}");
        subsystem.obey(port, id, Time::ZERO);
    }

    /// What the log says of the test that runs, and of the newest result (Base §5.16.1.7).
    fn told(subsystem: &Subsystem) -> (u8, u8) {
        let page = subsystem.chores.self_test_page();
        (page[0], page[4])
    }

    #[test]
    fn a_self_test_says_what_ended_it() {
        let (mut subsystem, mut port) = subsystem();
        let (own, other) = (enabled(&mut subsystem, &mut port), enabled(&mut subsystem, &mut port));
        for (code, disturbed, expected) in [(1, other, (1, 0x0f)), (1, own, (0, 0x12)), (2, own, (2, 0x12))] {
            subsystem.chores.test = None;
            ask(&mut subsystem, &mut port, own, Submission::device_self_test(code));
            configure(&mut subsystem, &mut port, disturbed, 0x46_0060);
            configure(&mut subsystem, &mut port, disturbed, 0x46_0061);
            assert_eq!(told(&subsystem), expected, "test {code}, controller {disturbed}");
        }
        let format = Submission::new(AdminOpcode::FormatNvm as u8, 1);
        ask(&mut subsystem, &mut port, other, format);
        assert_eq!(told(&subsystem), (0, 0x24));
        subsystem.on_erased(1, true);
        subsystem.controllers.get_mut(&other).expect("it lives").controller.on_erased(1, true);
        ask(&mut subsystem, &mut port, own, Submission::device_self_test(2));
        ask(&mut subsystem, &mut port, other, Submission::delete_namespace(1));
        assert_eq!(told(&subsystem), (0, 0x23));
        ask(&mut subsystem, &mut port, own, Submission::device_self_test(1));
        subsystem.end(own);
        assert_eq!(subsystem.chores.results[0][0], 0x12, "a controller that is gone is reset");
    }

    /// All namespaces are those that the controller has which asked (Base §5.9), and the log names the one that could not be read.
    #[test]
    fn a_self_test_of_all_namespaces_reads_those_of_its_controller() {
        let mut controller = settings();
        let second = NamespaceSettings { nguid: [9; 16], ..controller.namespaces[0].clone() };
        controller.namespaces.push(second);
        let mut port = Port::new(Arc::new(Plain::new()), SHAPE, Arc::new(Line::new(SHAPE.pairs)));
        let mut subsystem = Subsystem::new(open_to_all(controller), &mut port);
        let (own, other) = (enabled(&mut subsystem, &mut port), enabled(&mut subsystem, &mut port));
        let list: Vec<u8> = [1, own].iter().flat_map(|word| word.to_le_bytes()).collect();
        let detach = Submission::attach_namespace(1, false, DataPointer::default());
        let reply = subsystem.administer(own, &detach, &list, Time::ZERO);
        assert!(matches!(reply, AdminReply::Complete { status: Status::SUCCESS, .. }), "{reply:?}");
        subsystem.obey(&mut port, own, Time::ZERO);
        ask(&mut subsystem, &mut port, own, Submission::device_self_test(1));
        assert_eq!(subsystem.chores.test.as_ref().map(|test| test.namespaces.clone()), Some([2].into()));
        ask(&mut subsystem, &mut port, other, Submission::new(AdminOpcode::FormatNvm as u8, 1));
        assert_eq!(told(&subsystem).0, 1, "what another has is not read");
        let verify = subsystem.chores.errands.iter().find(|(_, errand)| **errand == Errand::Verify);
        let slot = *verify.expect("one is under way").0;
        let failed = Completion::new(0, 0, QueueId(1), slot, false, Status::UNRECOVERED_READ);
        subsystem.on_chore(&failed, Time::ZERO);
        let result = subsystem.chores.results[0];
        assert_eq!((result[0], result[2], &result[12..16]), (0x17, 0b1101, &[2, 0, 0, 0][..]));
    }
}
