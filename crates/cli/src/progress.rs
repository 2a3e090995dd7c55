//! A line on a terminal that says how far a run has come. Where nobody watches there is none.

use indicatif::{ProgressBar, ProgressStyle};
use rig::Session;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread::{Builder, JoinHandle};
use std::time::Duration;

/// How often the line is drawn.
const EVERY: Duration = Duration::from_millis(100);

/// A line that follows a run until it is dropped.
pub(crate) struct Progress {
    bar: ProgressBar,
    drawer: Drawer,
}

impl Progress {
    /// Something that takes a while and cannot say how long.
    pub(crate) fn wait(watched: bool, what: &str) -> Progress {
        Progress::draw(watched, ProgressBar::new_spinner().with_message(what.to_owned()), None)
    }

    /// Says something else from now on.
    pub(crate) fn say(&self, what: String) {
        self.bar.set_message(what);
    }

    /// Follows the requests that a session has completed. `total` is zero where the end is not known.
    pub(crate) fn follow(watched: bool, session: &Session, total: u64) -> Progress {
        let completed = session.completed();
        let bar = ProgressBar::new(total);
        let style = match total {
            0 => "{spinner} {human_pos} simulated requests",
            _ => "{bar:32} {human_pos} of {human_len} simulated requests, {eta} left",
        };
        bar.set_style(ProgressStyle::with_template(style).expect("a template of ours"));
        Progress::draw(watched, bar, Some(completed))
    }

    fn draw(watched: bool, bar: ProgressBar, completed: Option<Arc<AtomicU64>>) -> Progress {
        let drawn = bar.clone();
        let draw = move || match &completed {
            Some(completed) => {
                // A few more are on their way when the last one that counts is answered.
                let most = drawn.length().filter(|&length| length > 0).unwrap_or(u64::MAX);
                drawn.set_position(completed.load(Ordering::Relaxed).min(most));
            }
            None => drawn.tick(),
        };
        Progress { bar, drawer: Drawer::start(watched, draw) }
    }

    /// Writes something else where the line stands.
    pub(crate) fn beside<R>(&self, write: impl FnOnce() -> R) -> R {
        if self.drawer.draws() { self.bar.suspend(write) } else { write() }
    }
}

impl Drop for Progress {
    fn drop(&mut self) {
        if self.drawer.draws() {
            self.drawer.end();
            self.bar.finish_and_clear();
        }
    }
}

/// A thread that draws a line now and then until it is ended. Where nobody watches, or the system starts none, there is none.
struct Drawer {
    over: Arc<AtomicBool>,
    thread: Option<JoinHandle<()>>,
}

impl Drawer {
    fn start(watched: bool, draw: impl Fn() + Send + 'static) -> Drawer {
        let over = Arc::new(AtomicBool::new(false));
        let seen = over.clone();
        let go_on = move || {
            while !seen.load(Ordering::Relaxed) {
                draw();
                std::thread::park_timeout(EVERY);
            }
        };
        Drawer { over, thread: if watched { Builder::new().spawn(go_on).ok() } else { None } }
    }

    fn draws(&self) -> bool {
        self.thread.is_some()
    }

    fn end(&mut self) {
        self.over.store(true, Ordering::Relaxed);
        if let Some(thread) = self.thread.take() {
            thread.thread().unpark();
            // A line that could not be drawn is no reason to fail.
            let _ = thread.join();
        }
    }
}

/// A line that counts the runs of an experiment.
pub(crate) struct Runs {
    bar: ProgressBar,
    drawer: Drawer,
}

impl Runs {
    /// How many runs there are is known when all combinations are checked.
    pub(crate) fn new(watched: bool, name: &str) -> Runs {
        let bar = if watched { ProgressBar::new(0) } else { ProgressBar::hidden() };
        bar.set_style(ProgressStyle::with_template("{prefix} {spinner} {elapsed}").expect("a template of ours"));
        bar.set_prefix(name.to_owned());
        let drawn = bar.clone();
        Runs { bar, drawer: Drawer::start(watched, move || drawn.tick()) }
    }

    /// Counts the placements that a search has judged: how many there will be, it cannot say.
    pub(crate) fn searching(watched: bool, name: &str) -> Runs {
        let runs = Runs::new(watched, name);
        let style = "{prefix} {spinner} {msg}, {elapsed}";
        runs.bar.set_style(ProgressStyle::with_template(style).expect("a template of ours"));
        runs
    }

    /// A placement was judged.
    pub(crate) fn tried(&self, tried: &lab::Tried) {
        let lab::Tried { cores, judged, least } = tried;
        let cores = report::of((*cores).into(), "core");
        self.bar.set_message(format!("{cores}, {judged} placements judged, the last with {least:.0} IOPS"));
    }

    /// Writes something else where the line stands.
    pub(crate) fn beside<R>(&self, write: impl FnOnce() -> R) -> R {
        self.bar.suspend(write)
    }

    /// A combination is checked, or a run is over.
    pub(crate) fn show(&self, progress: &lab::Progress<'_>) {
        let (done, total, style) = match *progress {
            lab::Progress::Checked { done, total } => {
                (done, total, "{prefix} {bar:24} checking {pos} of {len} combinations, {eta} left")
            }
            lab::Progress::Ran { done, total, point } => {
                self.bar.set_message(point.to_owned());
                (done, total, "{prefix} {bar:24} {pos} of {len} runs, {eta} left ({msg})")
            }
        };
        self.bar.set_length(total as u64);
        self.bar.set_position(done as u64);
        // Only now: the line is drawn at any time, and would say that there is nothing to do.
        self.bar.set_style(ProgressStyle::with_template(style).expect("a template of ours"));
    }
}

impl Drop for Runs {
    fn drop(&mut self) {
        self.drawer.end();
        self.bar.finish_and_clear();
    }
}
