//! A drive that was served as long as a drive can be ends by itself, in good order.

use crate::Serving;
use crate::conversations::write;
use crate::initiator::Payload;
use rig::{DoorbellPath, Patience};
use units::Span;

fn short_lived() -> Serving {
    let patience = Patience { to_live: Span::from_secs(2), ..Patience::default() };
    Serving { patience, ..Serving::default() }
}

#[test]
fn a_drive_ends_in_good_order_before_its_time_is_over() {
    let running = short_lived().start();
    let mut attachment = running.host("host");
    // The longest that a host can ask for.
    attachment.keep_alive_ms = u32::MAX;
    let mut host = attachment.attach();
    host.queues[0].done(write(0, 8), Payload::Send(&[1; 4096]));
    let ended = running.thread.join().expect("it does not panic").expect("it ends well");
    (running.end_metrics)();
    assert!(ended.outlived && ended.durable, "{ended:?}");
    assert_eq!((ended.connections, ended.violations, ended.expired), (3, 0, 0));

    let plugged = short_lived().plug(DoorbellPath::Sent);
    let ended = plugged.thread.join().expect("it does not panic").expect("it ends well");
    assert!(ended.outlived && ended.durable, "{ended:?}");

    let running = Serving::default().start();
    assert!(!running.end().outlived, "it was stopped");
}
