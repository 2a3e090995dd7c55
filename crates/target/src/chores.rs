//! What the subsystem asks of the drive itself: namespaces that are to be erased, and self-tests. Its commands go by its own queue
//! pair, beside those of the hosts.

use crate::lifetime::{Lifetime, SelfTestRecord, SelfTestUnderWay, SelfTests, TESTS_KEPT};
use crate::port::{Moved, Port};
use crate::subsystem::Subsystem;
use nvme::spec::log_page::SelfTestPage;
use nvme::spec::{ALL_NAMESPACES, Completion, Opcode, Status, Submission};
use nvme::{Namespaces, Piece};
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

/// Bytes of a result in the log of self-tests (Base §5.16.1.7), and what marks those that are not there.
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
    /// Who asked for it, and for which namespace.
    controller: u16,
    asked: u32,
    extended: bool,
    /// The namespaces that it reads.
    namespaces: BTreeSet<u32>,
    /// What is still to be read, of which namespace, and how much that was.
    left: VecDeque<(u32, Piece)>,
    steps: usize,
    /// The namespace that it is at, and pieces of that which are read.
    at: (u32, u32),
}

impl Test {
    /// Of a sample of each of these namespaces, or of all of it.
    fn new(controller: u16, extended: bool, asked: u32, pieces: Vec<(u32, Piece)>) -> Self {
        let namespaces = pieces.iter().map(|(id, _)| *id).collect();
        let left: VecDeque<(u32, Piece)> = pieces
            .into_iter()
            .flat_map(|(id, piece)| {
                let apart = if extended { STRIDE } else { (piece.blocks / SAMPLES).max(SAMPLE) };
                strides(piece, if extended { STRIDE } else { SAMPLE }, apart).map(move |piece| (id, piece))
            })
            .collect();
        let at = (left.front().map_or(0, |(id, _)| *id), 0);
        Test { controller, asked, extended, namespaces, steps: left.len(), left, at }
    }

    /// The next piece is read, or was before: of which namespace it is.
    fn advance(&mut self) -> Option<u32> {
        let (id, _) = self.left.pop_front()?;
        self.at = match self.left.front() {
            Some((next, _)) if *next != id => (*next, 0),
            _ => (id, self.at.1 + 1),
        };
        Some(id)
    }

    /// It goes on where one of the same had come to, namespace by namespace in the order of their identifiers.
    fn resume_at(&mut self, namespace: u32, read: u32) {
        let is_before = |(id, done): (u32, u32)| id < namespace || id == namespace && done < read;
        while is_before(self.at) && self.advance().is_some() {}
    }
}

/// Those of a drive's namespaces that a self-test is to read.
fn asked_for(pieces: impl Iterator<Item = (u32, Piece)>, namespace: u32) -> Vec<(u32, Piece)> {
    pieces.filter(|(id, _)| [ALL_NAMESPACES, *id].contains(&namespace)).collect()
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
    results: VecDeque<SelfTestRecord>,
    /// The Verify that is under way is of a test that has ended.
    is_stale: bool,
    /// The service ends: nothing more is asked.
    is_ending: bool,
    /// How long the drive was on before it was started, and when these were last looked at.
    powered: Duration,
    now: Time,
}

impl Chores {
    /// Of a drive that has done so much before it was started: an extended self-test that had not ended then goes on. Whoever asked for it
    /// is gone, so what is left is of all that its drive has of what it named.
    pub(crate) fn after(before: &Lifetime, namespaces: &Namespaces) -> Self {
        let SelfTests { results, under_way } = before.tests;
        let results = results.into_iter().take_while(|result| result.code != 0).collect();
        let test = under_way.map(|SelfTestUnderWay { asked, namespace, read }| {
            let mut test = Test::new(0, true, asked, asked_for(namespaces.pieces(), asked));
            test.resume_at(namespace, read);
            test
        });
        Chores { powered: before.powered, results, test, ..Chores::default() }
    }

    /// What is kept of self-tests.
    pub(crate) fn tests(&self) -> SelfTests {
        let mut tests = SelfTests::default();
        tests.results.iter_mut().zip(&self.results).for_each(|(place, result)| *place = *result);
        tests.under_way = self.test.as_ref().filter(|test| test.extended).map(|test| {
            let (namespace, read) = test.at;
            SelfTestUnderWay { asked: test.asked, namespace, read }
        });
        tests
    }

    /// The log page of self-tests.
    pub(crate) fn self_test_page(&self) -> Vec<u8> {
        let mut page = SelfTestPage::default();
        if let Some(Test { extended, left, steps, .. }) = &self.test {
            let done = (steps - left.len()) * 100 / steps.max(&1);
            page.set_current(1 + u8::from(*extended)).set_completion(done.min(99) as u8);
        }
        let mut bytes = page.as_bytes()[..4].to_vec();
        self.results.iter().for_each(|result| bytes.extend_from_slice(&in_log(result)));
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
        let code = match how {
            TestResult::Passed => 0,
            TestResult::Ended => 1,
            TestResult::Reset => 2,
            TestResult::Deleted => 3,
            TestResult::Formatted => 4,
            TestResult::Failed(..) => 7,
        };
        let code = (1 + u8::from(test.extended)) << 4 | code;
        let hours = (self.powered + Duration::from_nanos(self.now.since(Time::ZERO).nanos())).as_secs() / 3600;
        let failed = match how {
            TestResult::Failed(namespace, status) => Some((namespace, [status.code_type(), status.code()])),
            _ => None,
        };
        self.results.push_front(SelfTestRecord { code, hours, failed });
        self.results.truncate(TESTS_KEPT);
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

    /// Whether any of these are to be gone on with.
    fn are_due(&self) -> bool {
        !self.is_ending && (self.test.is_some() || !self.erasing.is_empty())
    }

    /// Whether the drive works on none of these.
    pub(crate) fn is_idle(&self) -> bool {
        self.errands.is_empty()
    }
}

/// A result as the log has it.
fn in_log(result: &SelfTestRecord) -> [u8; RESULT_BYTES] {
    let mut bytes = [0; RESULT_BYTES];
    bytes[0] = result.code;
    bytes[4..12].copy_from_slice(&result.hours.to_le_bytes());
    if let Some((namespace, status)) = result.failed {
        // Segment 1 is reading. The namespace, the status type and the status count; which block it was is not told.
        (bytes[1], bytes[2]) = (1, 0b1101);
        bytes[12..16].copy_from_slice(&namespace.to_le_bytes());
        bytes[24..26].copy_from_slice(&status);
    }
    bytes
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
        self.wake();
        let pieces = asked_for(self.namespaces.pieces_of(controller), namespace);
        self.chores.test = Some(Test::new(controller, extended, namespace, pieces));
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
        if !self.chores.are_due() || self.is_going_to_rest() {
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
        self.take_back(now, self.own.id(), opcode, completion);
        match errand {
            Errand::Verify if std::mem::take(&mut self.chores.is_stale) => {}
            Errand::Verify => {
                let read = self.chores.test.as_mut().and_then(Test::advance);
                if let Some(namespace) = read.filter(|_| !status.is_success()) {
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
    use crate::subsystem::{NewController, SubsystemSettings};
    use nvme::spec::{AdminOpcode, DataPointer, registers};
    use nvme::{AdminReply, ControllerSettings, NamespaceSettings};
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
        assert_eq!(subsystem.chores.results[0].code, 0x12, "a controller that is gone is reset");
    }

    /// A drive that is served again, before which such self-tests were.
    fn again(controller: ControllerSettings, tests: SelfTests) -> (Subsystem, Port) {
        let lifetime = Lifetime { errors: 6, tests, ..Lifetime::default() };
        let mut port = Port::new(Arc::new(Plain::new()), SHAPE, Arc::new(Line::new(SHAPE.pairs)));
        let settings = SubsystemSettings { lifetime, ..open_to_all(controller) };
        (Subsystem::new(settings, &mut port), port)
    }

    /// Base §8.6: an extended one resumes when there is power again.
    #[test]
    fn an_extended_self_test_goes_on_with_the_drive_and_results_outlast_it() {
        let (mut subsystem, mut port) = subsystem();
        let own = enabled(&mut subsystem, &mut port);
        ask(&mut subsystem, &mut port, own, Submission::device_self_test(1));
        ask(&mut subsystem, &mut port, own, Submission::device_self_test(0xf));
        ask(&mut subsystem, &mut port, own, Submission::device_self_test(2));
        let tests = subsystem.chores.tests();
        let begun = |asked, namespace| SelfTestUnderWay { asked, namespace, read: 0 };
        assert_eq!((told(&subsystem), tests.under_way), ((2, 0x11), Some(begun(ALL_NAMESPACES, 1))));
        let cases = [(0, 0, 0), (1, 1, 1), (ALL_NAMESPACES, 1, 1), (7, 0, 0)]
            .map(|(asked, at, steps)| (Some(begun(asked, at)), steps));
        for (under_way, steps) in [(None, 0)].into_iter().chain(cases) {
            let before = SelfTests { under_way, ..tests };
            let (mut again, mut port) = again(settings(), before);
            let runs = if under_way.is_some() { 2 } else { 0 };
            assert_eq!((told(&again), again.errors_of_all()), ((runs, 0x11), 6), "{under_way:?}");
            assert_eq!(again.chores.tests(), before);
            again.reap(&mut port, Time::ZERO);
            assert_eq!(again.chores.errands.len(), steps, "{under_way:?}");
            if runs > 0 && steps == 0 {
                assert_eq!(told(&again), (0, 0x20), "nothing is left to read");
            }
        }
    }

    /// It reads nothing twice, and after the last piece it has passed.
    #[test]
    fn an_extended_self_test_resumes_where_it_was() {
        let mut controller = settings();
        let space = NamespaceSettings { blocks: 2 * STRIDE, ..controller.namespaces[0].clone() };
        controller.namespaces =
            (1..=3).map(|number| NamespaceSettings { nguid: [number; 16], ..space.clone() }).collect();
        let mut under_way = Some(SelfTestUnderWay { asked: ALL_NAMESPACES, namespace: 1, read: 0 });
        for (namespace, at) in [(1, 0), (1, 1), (2, 0), (2, 1), (3, 0), (3, 1)] {
            let before = SelfTests { under_way, ..SelfTests::default() };
            let (mut subsystem, mut port) = again(controller.clone(), before);
            let part = (namespace - 1) * 2 + at;
            assert_eq!(u64::from(subsystem.chores.self_test_page()[1]), part * 100 / 6);
            subsystem.reap(&mut port, Time::ZERO);
            let test = subsystem.chores.test.as_ref().expect("it goes on");
            assert_eq!((test.left[0].0, test.left[0].1.first), (namespace as u32, at * STRIDE));
            let slot = *subsystem.chores.errands.keys().next().expect("a piece is read");
            let read = Completion::new(0, 0, QueueId(1), slot, false, Status::SUCCESS);
            subsystem.on_chore(&read, Time::ZERO);
            under_way = subsystem.chores.tests().under_way;
        }
        let (mut subsystem, mut port) = again(controller, SelfTests { under_way, ..SelfTests::default() });
        subsystem.reap(&mut port, Time::ZERO);
        assert_eq!(told(&subsystem), (0, 0x20));
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
        let result = in_log(&subsystem.chores.results[0]);
        assert_eq!((result[0], result[2], &result[12..16]), (0x17, 0b1101, &[2, 0, 0, 0][..]));
    }
}
