//! Every interleaving of a few stages on one lock, by the model checker:
//! `RUSTFLAGS="--cfg loom" cargo test -p stage --release --test lock_model --target-dir target/loom`.
#![cfg(loom)]

use loom::sync::Arc;
use loom::sync::atomic::{AtomicU32, Ordering::Relaxed};
use loom::sync::mpsc::{Receiver, Sender, channel};
use loom::thread;
use stage::{Acquired, Lock, SharedMemory, Waiters};
use units::StageId;

/// A lock, what it protects, and a way to tell each stage that the lock is its own.
struct Device {
    lock: Lock,
    /// Read and written back with no order of their own: a second stage inside, or one that does not see what the one
    /// before it wrote, loses a count.
    visits: AtomicU32,
    granted: Vec<Sender<()>>,
}

impl Device {
    fn new(stages: usize) -> (Arc<Self>, Vec<Receiver<()>>) {
        let mut memory = SharedMemory::default();
        let waiters = Waiters::new(&mut memory, stages);
        let (granted, grants) = (0..stages).map(|_| channel()).unzip();
        (Arc::new(Device { lock: memory.lock(&waiters), visits: AtomicU32::new(0), granted }), grants)
    }

    /// So many visits of a stage that has a thread of its own.
    fn visit(&self, stage: usize, times: usize, grants: &Receiver<()>) {
        for _ in 0..times {
            if self.lock.acquire(StageId(stage as u16)) == Acquired::Later {
                grants.recv().unwrap();
            }
            self.visits.store(self.visits.load(Relaxed) + 1, Relaxed);
            if let Some(next) = self.lock.release() {
                self.granted[next.index()].send(()).unwrap();
            }
        }
    }

    /// Gives the lock back for its holder, then for each stage that it goes to; who that was, in order.
    fn serve_line(&self) -> Vec<u16> {
        std::iter::from_fn(|| self.lock.release()).map(|stage| stage.0).collect()
    }
}

/// Known faults of such code show within two; each more multiplies the time.
const PREEMPTIONS: usize = 3;

/// Every interleaving with at most so many switches away from a thread that could go on.
fn explore(model: impl Fn() + Sync + Send + 'static) {
    let mut builder = loom::model::Builder::new();
    builder.preemption_bound = Some(PREEMPTIONS);
    builder.check(model);
}

/// Mutual exclusion, and nobody lost: a stage that is never told waits forever, which the checker reports as a
/// deadlock.
fn visits_are_counted(times: &'static [usize]) {
    explore(move || {
        let (device, mut grants) = Device::new(times.len());
        let first = grants.remove(0);
        let others: Vec<_> = std::iter::zip(1.., grants)
            .map(|(stage, grants)| {
                let device = device.clone();
                thread::spawn(move || device.visit(stage, times[stage], &grants))
            })
            .collect();
        device.visit(0, times[0], &first);
        others.into_iter().for_each(|other| other.join().unwrap());
        assert_eq!(device.visits.load(Relaxed) as usize, times.iter().sum::<usize>());
        assert_eq!(device.lock.acquire(StageId(0)), Acquired::Now, "the lock is free when all have left");
    });
}

#[test]
fn three_stages_exclude_each_other() {
    visits_are_counted(&[1, 1, 1]);
}

#[test]
fn stages_that_come_again_exclude_each_other() {
    visits_are_counted(&[2, 2]);
}

/// Stage 0 holds the lock and gives it back while 1 then 2, and by itself 3, ask for it.
#[test]
fn stages_in_line_are_served_in_the_order_they_joined() {
    explore(|| {
        let (device, _grants) = Device::new(4);
        assert_eq!(device.lock.acquire(StageId(0)), Acquired::Now);
        let asking = [vec![1, 2], vec![3]].map(|stages| {
            let device = device.clone();
            thread::spawn(move || {
                stages.into_iter().map(|stage| (stage, device.lock.acquire(StageId(stage)))).collect()
            })
        });
        let mut served = device.serve_line();
        for (stage, acquired) in asking.into_iter().flat_map(|thread| -> Vec<_> { thread.join().unwrap() }) {
            if acquired == Acquired::Now {
                served.push(stage);
                served.extend(device.serve_line());
            }
        }
        let place = |stage: u16| served.iter().position(|&other| other == stage);
        assert!(place(1).unwrap() < place(2).unwrap(), "{served:?}");
        assert!(place(3).is_some() && served.len() == 3, "{served:?}");
    });
}
