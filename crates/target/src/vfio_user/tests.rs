//! The loop in turns that a test gives it.

use super::*;
use crate::rehearsal::tests::settings;
use crate::rehearsal::{Machine, Plain, SHAPE, open_to_all};
use nvme::AsynchronousEvent;
use nvme::spec::Submission;

/// A loop at a socket of its own, with a monitor that says nothing.
fn attended(name: &str) -> (Loop, std::os::unix::net::UnixStream) {
    let path = std::env::temp_dir().join(format!("flashloom-{name}-{}", std::process::id()));
    let server = VfioUser::listen(&path, DoorbellPath::Sent, Trust::Seals, SHAPE.pairs).expect("a free path");
    let stream = std::os::unix::net::UnixStream::connect(&path).expect("it listens");
    (Loop::new(server, open_to_all(settings()), Arc::new(Plain::new()), SHAPE).expect("memory to share"), stream)
}

#[test]
fn a_drive_that_ends_leaves_the_socket_of_another_at_its_path_alone() {
    let path = std::env::temp_dir().join(format!("flashloom-taken-{}", std::process::id()));
    let listen = || VfioUser::listen(&path, DoorbellPath::Sent, Trust::Seals, SHAPE.pairs).expect("a free path");
    let first = listen();
    std::fs::remove_file(&path).expect("it is there");
    let second = listen();
    drop(first);
    std::os::unix::net::UnixStream::connect(&path).expect("the second listens");
    drop(second);
    assert!(!path.exists(), "it is its own");
}

/// Eight at a time, again and again.
#[test]
fn of_drives_that_begin_at_one_stale_socket_one_listens_and_stays() {
    let path = std::env::temp_dir().join(format!("flashloom-stale-{}", std::process::id()));
    for round in 0..200 {
        drop(std::os::unix::net::UnixListener::bind(&path).expect("a free path"));
        let start = std::sync::Barrier::new(8);
        let listen = || {
            start.wait();
            VfioUser::listen(&path, DoorbellPath::Sent, Trust::Seals, SHAPE.pairs).ok()
        };
        let servers: Vec<VfioUser> = std::thread::scope(|scope| {
            let threads: Vec<_> = (0..8).map(|_| scope.spawn(listen)).collect();
            threads.into_iter().filter_map(|thread| thread.join().expect("it says so")).collect()
        });
        assert_eq!(servers.len(), 1, "in round {round}");
        assert!(file_at(&path).is_ok_and(|found| found == servers[0].file), "in round {round}");
    }
    let lock = path.with_file_name(format!(".{}.flashloom-lock", path.file_name().expect("it has one").display()));
    assert!(!path.exists() && !lock.exists(), "nothing is left");
}

#[test]
fn a_file_that_is_no_socket_is_named_as_such_and_stays() {
    let path = std::env::temp_dir().join(format!("flashloom-plain-{}", std::process::id()));
    std::fs::write(&path, "somebody's").expect("a file");
    let refused = VfioUser::listen(&path, DoorbellPath::Sent, Trust::Seals, SHAPE.pairs);
    let said = refused.err().expect("it cannot be listened at").to_string();
    assert!(said.ends_with("a file that is no socket is there; expected a path where a socket can be made"), "{said}");
    assert_eq!(std::fs::read_to_string(&path).expect("it is there"), "somebody's");
    std::fs::remove_file(&path).expect("it is there");
}

/// Turns that may wait are those of a drive that is idle.
#[test]
fn figures_are_published_where_no_turn_may_wait() {
    let (mut attended, _monitor) = attended("figures");
    let figures = attended.server.ties.figures.clone();
    let began = Instant::now();
    while figures.lock().expect("nobody panics with it").accepted == 0 {
        assert!(began.elapsed() < Duration::from_secs(20), "the figures stand still");
        attended.turn(Duration::ZERO).expect("the system lets it poll");
    }
}

/// Far ahead, where a host's longest keep alive still has room.
#[test]
fn a_drive_ends_while_its_time_has_room() {
    let (mut attended, _monitor) = attended("late");
    let past = Duration::from_secs(160 * 86_400);
    attended.began = attended.began.checked_sub(past).expect("the system counts from long before");
    assert!(Span::from_millis(u32::MAX.into()).picos().checked_add(attended.now().picos()).is_some());
    for _ in 0..2 * TURNS_PER_POLL {
        attended.turn(Duration::ZERO).expect("the system lets it poll");
    }
    assert!(attended.ending.is_some() && attended.ended.outlived);
}

/// The drive behind it never answers.
#[test]
fn a_drive_that_does_not_answer_is_given_up_after_ten_minutes_and_not_before() {
    let (mut attended, _monitor) = attended("stuck");
    attended.server.ties.stop.stop();
    let mut waited = |seconds| {
        let now = Instant::now();
        attended.began = now.checked_sub(Duration::from_secs(seconds)).expect("the system counts from long before");
        attended.turn(Duration::ZERO)
    };
    for seconds in [0, 1, 30, 595] {
        assert!(matches!(waited(seconds), Ok(Progress::Idle)), "after {seconds} s");
    }
    assert!(matches!(waited(601), Err(ServeError::Stuck)));
}

/// What it ended may have been found by the look at the drive just before the sleep.
#[test]
fn nobody_sleeps_over_the_answer_to_a_command_that_was_held() {
    let (mut attended, _monitor) = attended("owed");
    let (mut machine, now) = (Machine::new(), attended.now());
    let mut world = World { subsystem: &mut attended.subsystem, port: &mut attended.port, now };
    machine.start(&mut world);
    machine.submit(&mut world, 0, Submission::asynchronous_event_request());
    machine.function.work(&mut world);
    std::mem::swap(&mut attended.function, &mut machine.function);
    attended.watch(now);
    assert!(!attended.patience(now).is_zero(), "its request is held");
    let live = attended.subsystem.controllers.get_mut(&1).expect("it is plugged");
    live.controller.raise(AsynchronousEvent::InvalidDoorbellValue);
    attended.watch(now);
    assert!(attended.patience(now).is_zero(), "it is to be answered");
    attended.turn(Duration::ZERO).expect("the system lets it poll");
    assert!(!attended.patience(now).is_zero(), "it was answered");
}

/// A function is in one machine: all others are closed, a few in each turn, whether or not another comes after them.
#[test]
fn of_many_monitors_a_few_are_looked_at_in_a_turn() {
    let (mut attended, _monitor) = attended("crowd");
    let path = attended.server.path.clone();
    let _crowd: Vec<_> = (0..40).map(|_| std::os::unix::net::UnixStream::connect(&path).expect("it listens")).collect();
    attended.poll(Duration::ZERO).expect("the system lets it poll");
    assert_eq!(attended.ended.connections, ACCEPTED_MAX as u64);
    let began = Instant::now();
    while attended.ended.connections < 41 {
        assert!(began.elapsed() < Duration::from_secs(20), "those who wait are forgotten");
        attended.turn(Duration::from_secs(30)).expect("the system lets it poll");
    }
}
