//! The loop in turns that a test gives it.

use super::*;
use crate::rehearsal::tests::settings;
use crate::rehearsal::{Plain, SHAPE, open_to_all};

/// A loop at a socket of its own, with a monitor that says nothing.
fn attended(name: &str) -> (Loop, std::os::unix::net::UnixStream) {
    let path = std::env::temp_dir().join(format!("flashloom-{name}-{}", std::process::id()));
    let server = VfioUser::listen(&path, DoorbellPath::Sent, Trust::Seals, SHAPE.pairs).expect("a free path");
    let stream = std::os::unix::net::UnixStream::connect(&path).expect("it listens");
    (Loop::new(server, open_to_all(settings()), Arc::new(Plain::new()), SHAPE).expect("memory to share"), stream)
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
