//! What limits a run, in words: a resource that is full, workers that are all taken, dies and buses that wait for each other, or what
//! requests wait for while nothing is full.

use crate::human::{count, nanos, percent};
use crate::{BUSIEST_CORE, Bound, BusiestCore, Named, Room, Summary, WORKERS_HELD, Workers};

/// From here on a resource counts as the limit: arrivals are not evenly spaced, so waiting grows steeply before it is full.
pub const NEAR_FULL: f64 = 0.8;
/// From here on a wait is what a request's time goes into.
const MOST: f64 = 0.5;
/// From here on it is doubtful that more requests bring more.
const SOME: f64 = 0.2;
/// From here on what a die loses of its time because its next command comes late is worth a word.
const LATE: f64 = 0.05;
/// A host that is later than this share of the measured part is behind the arrivals, and not only behind a burst of them.
const BEHIND: f64 = 0.05;
/// From here on what was not served when the last request came is more than the usual number in flight: of a number that grows evenly from
/// none it is two times the mean.
const STANDING: f64 = 1.5;
/// Parts of a latency that say nothing of waiting: at a die or the link a request is served as well; queueing is told line by line;
/// what waits in the host waits for requests before it.
const UNTOLD: [&str; 5] = ["flash", "dma", "queueing", "completion", "host"];

/// What the tightest bound means; nothing where there are no bounds.
pub(crate) fn sentence(summary: &Summary) -> Option<String> {
    let tightest = summary.bounds().first()?;
    let held = summary.workers.filter(|_| tightest.resource == WORKERS_HELD);
    let late = match (summary.behind_ns, summary.arrivals_per_s) {
        (Some(behind), _) if behind as f64 > BEHIND * summary.simulated_ns as f64 => format!(
            "Requests arrive faster than they are served: at the end they were sent {} late. ",
            nanos(behind as f64)
        ),
        (Some(_), Some(rate)) if is_served(rate, summary) => return Some(served(tightest, rate, summary)),
        (Some(_), Some(rate)) => {
            let (rate, in_flight) = (count(rate), count(summary.queue_depth_mean));
            format!("Requests arrive at {rate}/s, faster than they are served; {in_flight} in flight on average. ")
        }
        (Some(_), None) => "All requests arrive at one moment. ".into(),
        (None, _) => String::new(),
    };
    let limit = match (tightest.utilisation >= NEAR_FULL, held) {
        (true, Some(workers)) => taken(tightest, &workers),
        (true, None) => full(tightest, summary),
        (false, _) => each_other(summary).unwrap_or_else(|| match wait(summary, MOST) {
            Some((what, share)) => waiting(tightest, &what, share, summary),
            None => nothing(tightest, summary),
        }),
    };
    Some(late + &limit)
}

/// Whether what arrives is served as well, and does not only go into queues. A replay begins with none in flight, so that as many as are
/// usual are no backlog at its end.
fn is_served(rate: f64, summary: &Summary) -> bool {
    let seconds = summary.simulated_ns as f64 / 1e9;
    let unserved = (rate - summary.iops) * seconds;
    let in_flight = rate * summary.latency_mean().unwrap_or(0.0) / 1e9;
    let usual = if summary.trace.is_some() { STANDING * in_flight } else { 0.0 };
    unserved <= usual.max(BEHIND * summary.ios as f64)
}

/// A name that ends in a single `s` is a plural: `flash buses`, but `bus` and `class`; what is held is what the name begins with.
fn is_plural(resource: &str) -> bool {
    let resource = resource.trim_end_matches(" held");
    resource.ends_with('s') && !resource.ends_with("ss") && !resource.ends_with("us")
}

/// Whether it is of the firmware's processor. What a request takes of that shrinks with load, for a turn finds more to do and a thread
/// looks less often for nothing, so that what it would allow is no bound.
pub(crate) fn is_of_processor(resource: &str) -> bool {
    ["thread", "core"].iter().any(|of| resource.contains(of))
}

/// The pages that a die works on at once now, where they may be more under more load and the resource is dies.
pub(crate) fn pages_at_once(resource: &str, summary: &Summary) -> Option<f64> {
    summary.flash.as_ref()?.pages_per_operation.filter(|_| resource.contains("flash die"))
}

/// What would allow so much only as it is now, and not whatever the load.
fn as_now(resource: &str, summary: &Summary) -> Option<String> {
    let pages = pages_at_once(resource, summary).map(|pages| format!("at {pages:.2} pages an operation, as now,"));
    pages.or_else(|| is_of_processor(resource).then(|| "at the work that each request takes now".into()))
}

fn full(Bound { resource, utilisation, iops_bound }: &Bound, summary: &Summary) -> String {
    let (limit, pronoun) = if is_plural(resource) { ("limit", "they") } else { ("limits", "it") };
    let (busy, allowed) = (percent(*utilisation), count(*iops_bound));
    let how = as_now(resource, summary).unwrap_or_else(|| "alone".into());
    let core = core_of(resource, summary).map_or(String::new(), |core| format!(" {core}"));
    format!("The {resource} {limit} this run: {how} {pronoun} would allow {allowed} IOPS ({busy} busy).{core}")
}

/// Which core is the busiest, where it is the resource, and who shares it. It stands out, so that the others have room.
fn core_of(resource: &str, summary: &Summary) -> Option<String> {
    let BusiestCore { core, groups } = summary.cores.as_ref()?.busiest.as_ref().filter(|_| resource == BUSIEST_CORE)?;
    let share = |(group, share): (&str, &f64)| format!("{} ({})", group.to_uppercase(), percent(*share));
    let shares: Vec<String> = groups.iter().map(share).collect();
    let shares = shares.join(", ");
    Some(format!(
        "It is core {core}, which threads of {shares} share; placement.GROUP moves threads to cores that are less busy."
    ))
}

/// Workers that all have a request. More of them bring more only where what they wait for serves several at a time.
fn taken(Bound { utilisation, iops_bound, .. }: &Bound, workers: &Workers) -> String {
    let &Workers { work, lock_wait, room_wait, flash_wait, link_wait, .. } = workers;
    let served = flash_wait + link_wait;
    let longest = [work, lock_wait, room_wait, served].into_iter().fold(0.0, f64::max);
    let (limit, further) = if room_wait >= MOST * utilisation {
        (
            "Reclaim by the WORKER threads limits this run",
            "More of them reclaim side by side up to reclaim.victims; more",
        )
    } else if served == longest {
        ("The WORKER threads limit this run", "More of them (--threads worker=N) may raise the rate; more")
    } else if lock_wait == longest {
        ("The WORKER threads limit this run", "More of them would wait for the same locks; more")
    } else {
        ("The WORKER threads limit this run", "More")
    };
    let [held, work, lock, room, flash, link] =
        [*utilisation, work, lock_wait, room_wait, flash_wait, link_wait].map(percent);
    format!(
        "{limit}: each carries one request at a time and is held {held} of its time ({work} working, waiting {lock} for \
         locks, {room} for room, {flash} for flash, {link} for the host link), which allows {} IOPS. {further} requests \
         in flight would wait for one.",
        count(*iops_bound)
    )
}

/// Dies that nearly always have an operation and yet are not full, and buses that are not either: dies stand still while another one's
/// data are on their bus, and it rests while they all work. That they have operations is measured, so that too few requests are no such
/// case; and what a die does with one is work, moving its data, or waiting for the bus.
fn each_other(summary: &Summary) -> Option<String> {
    let flash = summary.flash.as_ref()?;
    let taken = flash.die_taken_mean.filter(|&taken| taken >= NEAR_FULL)?;
    let busy = |name: &str| summary.bounds().iter().find(|bound| bound.resource == name).map(|bound| bound.utilisation);
    let (dies, buses) = (busy("flash dies")?, busy("flash buses")?);
    let late = flash.die_command_wait_mean.filter(|&late| late >= LATE).map_or(String::new(), |late| {
        format!(
            " Of its time a die waits {} for the bus to begin its next one: with flash.ahead that goes before data that wait.",
            percent(late)
        )
    });
    let [taken, dies, buses] = [taken, dies, buses].map(percent);
    Some(format!(
        "The flash dies and buses wait for each other: a die has an operation {taken} of its time, but is busy {dies}, and \
         the busiest bus {buses}. More requests in flight would mostly wait for a die.{late}"
    ))
}

fn waiting(tightest: &Bound, what: &str, share: f64, summary: &Summary) -> String {
    format!("Requests wait {what} {} of their time. Of the resources {}.", percent(share), busiest(tightest, summary))
}

/// Where all that arrives is served neither a resource nor a wait sets the rate, however near its limit the one, however long the other.
fn served(tightest: &Bound, rate: f64, summary: &Summary) -> String {
    let waits = wait(summary, MOST).map(|(what, share)| format!(" They wait {what} {} of their time.", percent(share)));
    let (rate, waits) = (count(rate), waits.unwrap_or_default());
    format!("Requests arrive at {rate}/s, and all are served.{waits} Of the resources {}.", busiest(tightest, summary))
}

fn nothing(tightest: &Bound, summary: &Summary) -> String {
    let more = wait(summary, SOME).map_or_else(
        || "More requests in flight may raise the rate.".into(),
        |(what, share)| {
            let little = if is_crowd(share, summary) { ", so that more in flight may bring little" } else { "" };
            format!("Requests wait {what} {} of their time{little}.", percent(share))
        },
    );
    format!("Nothing is near its limit: {}. {more}", busiest(tightest, summary))
}

/// Whether as many requests wait at a time, for so much of theirs, as any group has threads. Fewer need not wait for each other: one alone
/// waits for the room that it makes itself.
fn is_crowd(share: f64, summary: &Summary) -> bool {
    let threads = summary.groups.iter().map(|(_, group)| group.threads).max();
    share * summary.queue_depth_mean >= f64::from(threads.unwrap_or(1))
}

fn busiest(Bound { resource, utilisation, iops_bound }: &Bound, summary: &Summary) -> String {
    let are = if is_plural(resource) { "are" } else { "is" };
    let (busy, allowed) = (percent(*utilisation), count(*iops_bound));
    let how = as_now(resource, summary)
        .map_or_else(|| " alone".into(), |as_now| format!(", {},", as_now.trim_end_matches(',')));
    format!("the {resource} {are} the busiest ({busy}) and{how} would allow {allowed} IOPS")
}

/// What requests wait for so much of their time at least, and the share. Of a part that is what exceeds all that threads do for a request,
/// for whichever part they do it; a line before threads is nothing but waiting.
fn wait(summary: &Summary, least: f64) -> Option<(String, f64)> {
    let latency: f64 = summary.breakdown.iter().map(|(_, time)| time).sum();
    let busy: f64 = summary.groups.iter().map(|(_, group)| group.utilisation * f64::from(group.threads)).sum();
    let work = busy / summary.iops * 1e9;
    let parts = summary.breakdown.iter().filter(|(part, _)| !UNTOLD.contains(part));
    let parts = parts.map(|(part, time)| (waiting_in(part, summary), time - work));
    let lines = summary.breakdown_queueing.iter().map(|(part, time)| (format!("in line for {part}"), *time));
    let longest = parts.chain(lines).max_by(|(_, a), (_, b)| a.total_cmp(b));
    let ranges = || Some(("for ranges that other requests hold".to_owned(), ranges(summary)? - work));
    let room = reclaim(summary).map(|time| ("for a reclaim to make room".to_owned(), time - work));
    let is_so_much = |(_, time): &(String, f64)| *time >= least * latency;
    let found = room.filter(is_so_much).or_else(|| longest.filter(is_so_much));
    found.or_else(|| ranges().filter(is_so_much)).map(|(what, time)| (what, time / latency))
}

/// Time of a request in the parts between which its wait for room is split, where a reclaim that somebody needs is under way nearly always
/// for each owner of flash: it waits for an entry of the buffer whose page cannot leave, for its own page's place, and in line for
/// that.
fn reclaim(summary: &Summary) -> Option<f64> {
    let Room { owners, parts: waited_in } = &summary.room;
    let under_way = summary.gc.as_ref()?.foreground_ns as f64 / f64::from(*owners) / summary.simulated_ns as f64;
    let parts = [&summary.breakdown, &summary.breakdown_queueing].into_iter().flat_map(Named::iter);
    let spread = parts.filter(|(part, _)| waited_in.contains(part)).map(|(_, time)| time).sum();
    (under_way >= NEAR_FULL).then_some(spread)
}

/// Time of a request in the two parts between which its wait for a range is split, where most requests have one: ILOCK keeps it until the
/// range is free or has an owner, and the owner's thread until those before it there are done.
fn ranges(summary: &Summary) -> Option<f64> {
    let locks = summary.locks.as_ref()?;
    let is_rule = locks.waits as f64 >= MOST * locks.acquires as f64;
    Some(summary.breakdown.get("ilock")? + summary.breakdown.get("nvmq")?).filter(|_| is_rule && locks.acquires > 0)
}

/// Whether the threads that take commands stood still for locks most of the time. Those that no queue is given to take none.
fn stands_still(summary: &Summary) -> bool {
    let takers = summary.completions.iter().flat_map(|(_, threads)| threads).filter(|&&taken| taken > 0).count();
    let stalled = summary.locks.as_ref().and_then(|locks| locks.stalled_mean).unwrap_or(0.0);
    takers > 0 && stalled >= MOST * takers as f64
}

/// What requests wait for that wait in a part, as the object of a sentence.
fn waiting_in(part: &str, summary: &Summary) -> String {
    if part == "fetch" && stands_still(summary) {
        return "for threads that stand still for index locks".into();
    }
    summary.waits.get(part).map_or_else(|| format!("in {part}"), |wait| (*wait).into())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sample::sample;
    use crate::{Cores, Group, Locks, Named, bounds};

    /// The sample, but that requests are sent as soon as there is room.
    fn closed() -> Summary {
        Summary { behind_ns: None, ..sample() }
    }

    fn told(resource: &str, utilisation: f64) -> String {
        sentence(&Summary { bounds: Some(bounds(1e6, &[(resource.into(), utilisation)])), ..closed() })
            .expect("a bound")
    }

    #[test]
    fn arrivals_set_the_rate_where_all_are_served() {
        let run = |behind: u64, busy| {
            let bounds = Some(bounds(10_000.0, &[("flash dies".into(), busy)]));
            let run =
                Summary { iops: 10_000.0, bounds, behind_ns: Some(behind), simulated_ns: 100_000_000, ..closed() };
            let run = Summary { arrivals_per_s: Some(10_000.0), ios: 1_000, ..run };
            sentence(&run).expect("a bound")
        };
        let served = "Requests arrive at 10.0 k/s, and all are served. Of the resources the flash dies are the busiest";
        assert_eq!(run(5_000_000, 0.08), format!("{served} (8.0 %) and alone would allow 125 k IOPS."));
        assert!(run(0, 0.95).starts_with(served), "a resource is no limit of what arrives: {}", run(0, 0.95));
        let late = "Requests arrive faster than they are served: at the end they were sent 50.0 ms late. ";
        assert!(run(50_000_000, 0.95).starts_with(&format!("{late}The flash dies limit this run")));
        assert!(run(50_000_000, 0.4).contains("Nothing is near its limit"));
    }

    #[test]
    fn what_only_goes_into_queues_is_not_served() {
        let run = |rate, trace: Option<crate::Replay>, latency_ms: f64, ios: u64| {
            let bounds = Some(bounds(10_000.0, &[("flash dies".into(), 0.9)]));
            let mut run = Summary { bounds, behind_ns: Some(0), arrivals_per_s: rate, trace, ios, ..closed() };
            (run.iops, run.simulated_ns, run.queue_depth_mean) = (10_000.0, ios * 100_000, 1_234.0);
            for direction in [&mut run.read, &mut run.write] {
                direction.latency.as_mut().expect("the sample has some").mean = latency_ms * 1e6;
            }
            sentence(&run).expect("a bound")
        };
        let served = |said: String| said.contains("and all are served");
        let said = run(Some(20_000.0), None, 1.0, 1_000);
        let late = "Requests arrive at 20.0 k/s, faster than they are served; 1.23 k in flight on average. The flash dies limit";
        assert!(said.starts_with(late), "{said}");
        assert!(served(run(Some(10_400.0), None, 1.0, 1_000)) && !served(run(Some(10_600.0), None, 1.0, 1_000)));
        let trace = || Some(crate::Replay::default());
        // A hundred requests arrive in 5 ms and are served in 10: each takes 5 ms, or the last does and the mean is half of that.
        assert!(served(run(Some(20_000.0), trace(), 5.0, 100)) && !served(run(Some(20_000.0), trace(), 2.5, 100)));
        assert!(served(run(Some(9_000.0), trace(), 0.1, 10)), "one after another");
        assert!(run(None, trace(), 0.1, 1).starts_with("All requests arrive at one moment. The flash dies limit"));
    }

    #[test]
    fn the_sentence_fits_number_and_load() {
        let buses = "The flash buses limit this run: alone they would allow 1.16 M IOPS (86 % busy).";
        assert_eq!(told("flash buses", 0.86), buses);
        assert!(told("host link", 0.9).starts_with("The host link limits this run: alone it would"));
        let threads =
            "The NVMQ threads limit this run: at the work that each request takes now they would allow 1.11 M";
        assert!(told("NVMQ threads", 0.9).starts_with(threads));
        let threads = "the busiest (50 %) and, at the work that each request takes now, would allow 2.00 M IOPS";
        assert!(told("core issue slots", 0.5).contains(threads));
        assert!(told("bus", 0.9).starts_with("The bus limits"));
        assert!(told("dies", 0.4).starts_with("Nothing is near its limit: the dies are the busiest (40 %)"));
        assert!(sentence(&Summary::default()).is_none());
    }

    #[test]
    fn the_core_that_is_the_limit_is_named_with_whose_threads_share_it() {
        let groups = [("hil", 0.74), ("ftl", 0.26)].into_iter().collect();
        let cores = Cores { busiest: Some(BusiestCore { core: 3, groups }), ..Cores::default() };
        let resources = [("HIL threads".to_owned(), 0.74), (BUSIEST_CORE.to_owned(), 1.0)];
        let run = Summary { cores: Some(cores), bounds: Some(bounds(731e3, &resources)), ..closed() };
        let said = sentence(&run).expect("a bound");
        let core = "The busiest core limits this run: at the work that each request takes now it would allow 731 k IOPS \
                    (100 % busy). It is core 3, which threads of HIL (74 %), FTL (26 %) share; placement.GROUP moves threads";
        assert!(said.starts_with(core), "{said}");
        assert!(!told("HIL threads", 0.9).contains("core 3"));
    }

    #[test]
    fn workers_that_are_all_taken_are_the_limit_however_little_they_do() {
        let workers =
            Workers { work: 0.025, lock_wait: 0.005, flash_wait: 0.966, link_wait: 0.004, ..Workers::default() };
        let resources = [("flash dies".to_owned(), 0.21), (WORKERS_HELD.to_owned(), 1.0)];
        let run = Summary { workers: Some(workers), bounds: Some(bounds(10_600.0, &resources)), ..closed() };
        let said = sentence(&run).expect("a bound");
        assert!(said.starts_with("The WORKER threads limit this run: each carries one request"), "{said}");
        assert!(
            said.contains(
                "held 100 % of its time (2.5 % working, waiting 0.5 % for locks, 0 % for room, 97 % for flash"
            ),
            "{said}"
        );
        assert!(said.contains("allows 10.6 k IOPS") && said.contains("--threads worker=N"), "{said}");
        let idle = Summary { bounds: Some(bounds(10_600.0, &[(WORKERS_HELD.to_owned(), 0.3)])), ..run };
        let said = sentence(&idle).expect("a bound");
        assert!(
            said.starts_with("Nothing is near its limit: the WORKER threads held are the busiest (30 %)"),
            "{said}"
        );
    }

    #[test]
    fn more_workers_are_offered_only_where_what_they_wait_for_serves_several() {
        let told = |workers: Workers| {
            let bounds = Some(bounds(341.0, &[(WORKERS_HELD.to_owned(), 1.0)]));
            sentence(&Summary { workers: Some(workers), bounds, ..closed() }).expect("a bound")
        };
        let of = |work, lock_wait, room_wait, flash_wait| {
            told(Workers { work, lock_wait, room_wait, flash_wait, ..Workers::default() })
        };
        let (room, locks, flash) = (of(0.01, 0.0, 0.95, 0.04), of(0.01, 0.6, 0.0, 0.39), of(0.1, 0.2, 0.3, 0.4));
        assert!(room.starts_with("Reclaim by the WORKER threads limits this run: each carries one"), "{room}");
        assert!(room.contains("95 % for room") && room.contains("side by side up to reclaim.victims"), "{room}");
        assert!(locks.starts_with("The WORKER threads limit") && locks.contains("wait for the same locks"), "{locks}");
        assert!(flash.starts_with("The WORKER threads limit") && flash.contains("may raise the rate"), "{flash}");
        for none in [room, locks, of(0.9, 0.0, 0.0, 0.1)] {
            assert!(!none.contains("raise") && none.ends_with("ore requests in flight would wait for one."), "{none}");
        }
        assert!(with_share("room", None, 0.8).starts_with("Requests wait for a reclaim to make room 79 % of their"));
    }

    /// A run whose dies have operations for a share of their time, whose next ones come late for another.
    fn with_dies(taken: f64, late: f64, [dies, buses]: [f64; 2]) -> String {
        let flash =
            crate::Flash { die_taken_mean: Some(taken), die_command_wait_mean: Some(late), ..Default::default() };
        let bounds = bounds(59_200.0, &[("flash dies".into(), dies), ("flash buses".into(), buses)]);
        sentence(&Summary { flash: Some(flash), bounds: Some(bounds), ..closed() }).expect("a bound")
    }

    #[test]
    fn dies_and_buses_that_wait_for_each_other_are_no_want_of_requests() {
        let said = with_dies(0.96, 0.21, [0.68, 0.62]);
        let both = "The flash dies and buses wait for each other: a die has an operation 96 % of its time, but is busy 68 %, \
                    and the busiest bus 62 %. More requests in flight would mostly wait for a die.";
        assert!(
            said.starts_with(both) && said.contains("waits 21 %") && said.ends_with("before data that wait."),
            "{said}"
        );
        assert!(said.contains("flash.ahead") && !said.contains("raise"), "{said}");
        assert_eq!(with_dies(0.96, 0.01, [0.68, 0.62]), both, "commands that come in time need no help");
        // Few requests leave dies without any, however long those that come wait; and what is full is the limit alone.
        assert!(with_dies(0.7, 0.2, [0.5, 0.45]).starts_with("Nothing is near its limit"));
        assert!(with_dies(0.96, 0.2, [0.5, 0.9]).starts_with("The flash buses limit this run"));
        assert!(with_dies(0.96, 0.1, [0.85, 0.3]).starts_with("The flash dies limit this run"));
    }

    /// A run in which a part, or a line, has this share of the latency; threads work a hundredth of it.
    fn with_part(part: &str, line: Option<&str>, share: f64) -> Summary {
        let group = Group { threads: 4, utilisation: 0.0025, ..Group::default() };
        let waits = [
            ("fetch", "to be fetched"),
            ("ilock", "for index locks"),
            ("room", "for a reclaim to make room"),
            ("waitlist", "for those before them, on their cacheline or in their block,"),
        ];
        Summary {
            iops: 1e3,
            waits: waits.into_iter().collect(),
            breakdown: [(part, share * 1e6), ("flash", (1.0 - share) * 1e6)].into_iter().collect(),
            breakdown_queueing: line.map(|line| (line, share * 1e6)).into_iter().collect(),
            groups: [("nvmq", group)].into_iter().collect(),
            bounds: Some(bounds(1e3, &[("flash dies".into(), 0.02)])),
            ..closed()
        }
    }

    fn with_share(part: &str, line: Option<&str>, share: f64) -> String {
        sentence(&with_part(part, line, share)).expect("a bound")
    }

    #[test]
    fn a_wait_for_ranges_is_one_wherever_it_is_spent() {
        let run = |waits, nvmq| {
            let breakdown = [("nvmq", nvmq), ("ilock", 1.55e6), ("queueing", 3.38e6 - 1.55e6 - nvmq)];
            let (breakdown, breakdown_queueing) = (breakdown.into_iter().collect(), Named::default());
            let bounds = Some(bounds(76_200.0, &[("NVMQ threads".into(), 0.068)]));
            let groups =
                [("nvmq", Group { threads: 18, utilisation: 0.068, ..Group::default() })].into_iter().collect();
            let locks = Some(Locks { acquires: 2_930, waits, ..Locks::default() });
            let run = Summary { iops: 76_200.0, breakdown, breakdown_queueing, bounds, groups, locks, ..closed() };
            sentence(&run).expect("a bound")
        };
        let both = run(2_810, 1.5e6);
        assert!(both.starts_with("Requests wait for ranges that other requests hold 90 % of their time."), "{both}");
        assert!(!both.contains("More requests"), "{both}");
        for other in [run(293, 1.5e6), run(2_810, 1e5)] {
            assert!(other.starts_with("Nothing is near its limit"), "{other}");
        }
    }

    #[test]
    fn a_wait_for_room_is_one_wherever_it_is_spent() {
        let run = |under_way: f64, cache: f64| {
            let foreground_ns = (under_way * 4.0 * 5.5e9) as u64;
            let breakdown = [("cache", cache), ("trans", 1.9e6), ("flash", 4.4e6 - 1.9e6 - cache)];
            let group = Group { threads: 4, utilisation: 0.01, ..Group::default() };
            let run = Summary {
                iops: 3_585.0,
                simulated_ns: 5_500_000_000,
                breakdown: breakdown.into_iter().collect(),
                breakdown_queueing: Named::default(),
                groups: [("ftl", group)].into_iter().collect(),
                room: Room { owners: 4, parts: vec!["cache", "trans"] },
                gc: Some(crate::GarbageCollection { foreground_ns, ..Default::default() }),
                bounds: Some(bounds(3_585.0, &[("flash dies".into(), 0.45)])),
                ..closed()
            };
            sentence(&run).expect("a bound")
        };
        let both = run(0.96, 1.9e6);
        assert!(both.starts_with("Requests wait for a reclaim to make room 86 % of their time."), "{both}");
        assert!(!both.contains("More requests"), "{both}");
        for other in [run(0.5, 1.9e6), run(0.96, 1e5)] {
            assert!(other.starts_with("Nothing is near its limit"), "{other}");
        }
    }

    #[test]
    fn dies_that_work_on_fewer_pages_than_they_could_are_no_bound() {
        let run = |pages, utilisation| {
            let flash = crate::Flash { pages_per_operation: pages, ..Default::default() };
            let bounds = bounds(22_300.0, &[("flash dies".into(), utilisation), ("flash buses".into(), 0.1)]);
            sentence(&Summary { flash: Some(flash), bounds: Some(bounds), ..closed() }).expect("a bound")
        };
        let full = "The flash dies limit this run: at 1.20 pages an operation, as now, they would allow 24.5 k IOPS";
        assert!(run(Some(1.2), 0.91).starts_with(full), "{}", run(Some(1.2), 0.91));
        assert!(run(None, 0.91).starts_with("The flash dies limit this run: alone they would allow"));
        let busiest = "the busiest (45 %) and, at 1.20 pages an operation, as now, would allow 49.6 k IOPS";
        assert!(run(Some(1.2), 0.45).contains(busiest), "{}", run(Some(1.2), 0.45));
    }

    #[test]
    fn what_requests_wait_for_is_said_where_nothing_is_busy() {
        let ilock = "Requests wait for index locks 92 % of their time. Of the resources the flash dies are the busiest \
                     (2.0 %) and alone would allow 50.0 k IOPS.";
        assert_eq!(with_share("ilock", None, 0.93), ilock);
        assert!(with_share("nvmq", None, 0.8).starts_with("Requests wait in nvmq 79 % of their time"));
        assert!(with_share("fetch", None, 0.8).starts_with("Requests wait to be fetched 79 % of their time"));
        assert!(with_share("queueing", Some("trans"), 0.6).starts_with("Requests wait in line for trans 60 %"));
        for served in [with_share("ilock", None, 0.5), with_share("dma", None, 0.9), with_share("host", None, 0.9)] {
            assert!(served.starts_with("Nothing is near its limit"), "{served}");
        }
        let some = with_share("waitlist", None, 0.49);
        assert!(some.ends_with(
            "Requests wait for those before them, on their cacheline or in their block, 48 % of their time, so that more in \
             flight may bring little."
        ), "{some}");
        let lonely =
            sentence(&Summary { queue_depth_mean: 8.0, ..with_part("waitlist", None, 0.49) }).expect("a bound");
        assert!(lonely.ends_with("on their cacheline or in their block, 48 % of their time."), "{lonely}");
        let few = with_share("waitlist", None, 0.2);
        assert!(few.ends_with("More requests in flight may raise the rate."), "{few}");
    }

    /// A threshold belongs to what lies above it.
    #[test]
    fn what_is_at_a_threshold_is_above_it() {
        assert!(told("dies", 0.8).starts_with("The dies limit") && told("dies", 0.79).starts_with("Nothing"));
        let in_line = |share| with_share("queueing", Some("trans"), share);
        assert!(in_line(0.5).starts_with("Requests wait in line for trans 50 %"), "{}", in_line(0.5));
        assert!(in_line(0.49).contains("Requests wait in line for trans 49 %") && in_line(0.49).starts_with("Nothing"));
        assert!(in_line(0.2).contains("in line for trans 20 %") && in_line(0.19).ends_with("may raise the rate."));
        let crowd = |queue_depth_mean| {
            let run = Summary { queue_depth_mean, ..with_part("queueing", Some("trans"), 0.25) };
            sentence(&run).expect("a bound").contains("may bring little")
        };
        assert!(crowd(16.0) && !crowd(15.9), "four threads, and a quarter of these wait");
        let both = |taken, late| with_dies(taken, late, [0.5, 0.45]);
        assert!(both(0.8, 0.05).contains("wait for each other") && both(0.79, 0.05).starts_with("Nothing"));
        assert!(both(0.8, 0.05).contains("a die waits 5.0 %") && !both(0.8, 0.049).contains("a die waits"));
    }

    #[test]
    fn threads_that_stand_still_for_locks_are_why_commands_wait_to_be_fetched() {
        let run = |stalled, completions: Vec<u64>| {
            let locks = Some(Locks { stalled_mean: Some(stalled), ..Locks::default() });
            let completions = [("nvmq", completions)].into_iter().collect();
            sentence(&Summary { locks, completions, ..with_part("fetch", None, 0.8) }).expect("a bound")
        };
        // Of three threads two take commands.
        assert!(run(1.0, vec![5, 0, 3]).starts_with("Requests wait for threads that stand still for index locks 79 %"));
        for other in [run(0.99, vec![5, 0, 3]), run(1.0, vec![0, 0])] {
            assert!(other.starts_with("Requests wait to be fetched 79 %"), "{other}");
        }
    }

    #[test]
    fn a_replay_has_a_backlog_where_it_is_more_than_those_in_flight_can_be() {
        let run = |rate: f64, latency_ms: f64, trace: bool| {
            let trace = trace.then(crate::Replay::default);
            let (bounds, summary) = (bounds(10_000.0, &[("flash dies".into(), 0.9)]), closed());
            let mut run =
                Summary { bounds: Some(bounds), behind_ns: Some(0), arrivals_per_s: Some(rate), trace, ..summary };
            (run.iops, run.simulated_ns, run.ios) = (10_000.0, 100_000_000, 1_000);
            for part in [&mut run.read, &mut run.write] {
                part.latency.as_mut().expect("the sample has some").mean = latency_ms * 1e6;
            }
            sentence(&run).expect("a bound").contains("all are served")
        };
        // A tenth of a second: of 1,000 requests 50 are a twentieth.
        assert!(run(10_500.0, 0.0, false) && !run(10_501.0, 0.0, false));
        // At 12,000 a second 200 wait at the end; so many are in flight, once and a half, where each takes a ninth of a tenth.
        assert!(run(12_000.0, 11.2, true) && !run(12_000.0, 11.0, true) && !run(12_000.0, 11.2, false));
    }
}
