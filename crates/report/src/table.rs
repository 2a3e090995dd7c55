//! What a person reads after a run: what was reached, where the time went, what limits it, and how each part fared.

use crate::human::{bandwidth, bar, count, joules, nanos, number, of, percent};
use crate::limits::{is_of_processor, pages_at_once, sentence};
use crate::machine::machine_threads;
use crate::page::{bar_cell, bar_cells, cells, put};
use crate::time_spent::breakdown;
use crate::{Bound, Cache, Group, Latency, Named, Page, SteadyState, Summary, Workers};
use std::cmp::Reverse;

/// How many of the bounds are shown.
const BOUNDS_SHOWN: usize = 6;

/// The summary as text for the terminal that standard output is, or for a file.
pub fn render(summary: &Summary) -> String {
    render_on(Page::of_terminal(), summary)
}

/// The summary as text on `page`.
pub fn render_on(page: Page, summary: &Summary) -> String {
    let mut out = String::new();
    let sections = [headline, latencies, breakdown, limits, firmware, hardware, machine_threads, parts];
    for (index, section) in sections.iter().enumerate() {
        let before = out.len();
        section(page, summary, &mut out);
        if out.len() > before && index + 1 < sections.len() {
            out.push('\n');
        }
    }
    out
}

fn headline(page: Page, summary: &Summary, out: &mut String) {
    let cores =
        summary.cores.as_ref().map(|cores| format!(" on {}", of(cores.count.into(), "core"))).unwrap_or_default();
    let mut title = format!("{}{cores} · {} · {}", summary.architecture, summary.device, summary.processor);
    if let Some(workload) = &summary.workload {
        title = format!("{title} · {workload}");
    }
    let mean = summary.latency_mean().map(|mean| format!("   mean latency {}", nanos(mean))).unwrap_or_default();
    let reached = format!("{} IOPS   {}{mean}", count(summary.iops), bandwidth(summary.bandwidth));
    *out += &format!("{}\n\n  {}\n", page.strong(page.wrap("", &title).trim_end()), page.strong(&reached));

    let clock = if summary.world == "sim" { "of virtual time" } else { "of real time" };
    let (ios, lasted, took) =
        (count(summary.ios as f64), nanos(summary.simulated_ns as f64), nanos(summary.wall_ns as f64));
    let requests = if summary.ios == 1 { "request" } else { "requests" };
    let depth = number(summary.queue_depth_mean);
    let mut how = format!("{ios} {requests} in {lasted} {clock} (took {took}), {depth} in flight on average");
    if let Some(steady) = &summary.steady_state {
        let state = if steady.reached { "steady" } else { "NOT steady" };
        how += &format!("; {state} after {}", of(steady.rounds, "round"));
    }
    *out += &page.wrap("  ", &how);
    let failed = summary.media.as_ref().map_or(0, |media| media.failed_commands);
    if failed > 0 {
        // They are answered at once, so that what is printed above may be of them more than of flash.
        let (failed, noun) = (count(failed as f64), if failed == 1 { "command" } else { "commands" });
        let note = format!("{failed} {noun} failed with a media error; they count as requests, and their bytes not");
        *out += &page.wrap("  ", &note);
    }
    for (what, requests) in [
        ("requests not of whole blocks of the drive, sent as the blocks they touch", summary.rounded),
        ("requests not sent (empty, beyond the end, or less than a block to deallocate)", summary.unsent),
    ] {
        if requests > 0 {
            *out += &page.wrap("  ", &format!("{what}: {requests} since the run began"));
        }
    }
    if let Some(steady) = &summary.steady_state {
        *out += &page.wrap("  ", &rounds(steady));
        if summary.write.ios > 0 && summary.gc.as_ref().is_some_and(|gc| gc.blocks == 0) {
            *out += &page.wrap("  ", NOTHING_RECLAIMED);
        }
    }
    let digest = summary.digest.as_ref().map(|digest| format!(", digest {digest}")).unwrap_or_default();
    *out += &page.wrap("  ", &format!("world {}, seed {}{digest}", summary.world, summary.seed));
    if let Some(trace) = &summary.trace {
        // Lines of a text, records of a binary trace.
        let skipped =
            if trace.skipped > 0 { format!(", {} more skipped as unusable", trace.skipped) } else { String::new() };
        let requests = count(trace.requests as f64);
        let replayed = format!(
            "replayed from {} ({}, {}), which has {requests} requests{skipped}",
            trace.name, trace.format, trace.mode
        );
        *out += &page.wrap("  ", &replayed);
    }
}

/// What figures that have settled do not say of themselves.
const NOTHING_RECLAIMED: &str =
    "no block was reclaimed meanwhile: writes will be slower once the free groups are used up";

/// IOPS round by round, and how the last of them spread and drift.
fn rounds(steady: &SteadyState) -> String {
    let each: Vec<String> = steady.iops.iter().map(|iops| count(*iops)).collect();
    let spread = match (steady.excursion, steady.rise) {
        (Some(excursion), Some(rise)) => {
            format!(
                "the last five spread over {:.1} % (20 at most) and drift by {:+.1} % (10)",
                excursion * 100.0,
                rise * 100.0
            )
        }
        _ => "too few for the rule, which looks at five".to_owned(),
    };
    format!("rounds: {} IOPS; {spread}", each.join(", "))
}

/// Pages at least this wide show every percentile.
const ALL_PERCENTILES: usize = 96;
/// The same where there are rows of classes, or of namespaces, whose names are longer.
const ALL_WITH_CLASSES: usize = 104;
const ALL_WITH_NAMESPACES: usize = 108;
/// So many namespaces have rows: those with the most commands.
const NAMESPACES_SHOWN: usize = 4;

fn latencies(page: Page, summary: &Summary, out: &mut String) {
    let wide = page.width
        >= match (summary.namespaces.is_empty(), summary.classes.is_empty()) {
            (false, _) => ALL_WITH_NAMESPACES,
            (true, false) => ALL_WITH_CLASSES,
            (true, true) => ALL_PERCENTILES,
        };
    let header = ["", "IOPS", "bandwidth", "mean", "p50", "p90", "p99", "p99.9", "p99.99", "max"];
    let shown = |column: &usize| wide || !["p90", "p99.9"].contains(&header[*column]);
    let mut table = page.table(&(0..header.len()).filter(shown).map(|column| header[column]).collect::<Vec<_>>());
    let parts =
        summary.directions().into_iter().chain(summary.classes.iter()).map(|(name, part)| (name.to_owned(), part));
    let mut namespaces: Vec<_> = summary.namespaces.iter().collect();
    namespaces.sort_by_key(|(_, parts)| Reverse(parts.ios()));
    let of_namespaces = namespaces
        .into_iter()
        .take(NAMESPACES_SHOWN)
        .flat_map(|(namespace, parts)| parts.directions().map(|(name, part)| (format!("ns {namespace} {name}"), part)));
    for (name, direction) in parts.chain(of_namespaces) {
        let Some(latency) = &direction.latency else { continue };
        let Latency { mean, p50, p90, p99, p999, p9999, max } = *latency;
        let mut row = vec![name, count(direction.iops), bandwidth(direction.bandwidth)];
        row.extend([mean, p50, p90, p99, p999, p9999, max].map(nanos));
        table.add_row(cells(&(0..row.len()).filter(shown).map(|column| &row[column]).collect::<Vec<_>>()));
    }
    if !table.is_empty() {
        put(out, &table);
    }
    if summary.namespaces.len() > NAMESPACES_SHOWN {
        let more = summary.namespaces.len() - NAMESPACES_SHOWN;
        *out += &page.wrap("  ", &format!("The busiest namespaces; --json has {more} more."));
    }
}

/// What the bounds of the firmware's processor are worth.
const AT_THE_WORK_NOW: &str =
    "Threads, cores and issue slots at the work that each request takes now, which may be less under more load.";

fn limits(page: Page, summary: &Summary, out: &mut String) {
    let Some(sentence) = sentence(summary) else { return };
    *out += &format!("{}\n{}", page.strong("What limits this run"), page.wrap("  ", &sentence));
    let mut table = page.table(&["resource", "busy", "IOPS it alone would allow", ""]);
    for bound in summary.bounds().iter().take(BOUNDS_SHOWN) {
        let mut row = cells(&[&bound.resource, &percent(bound.utilisation), &count(bound.iops_bound)]);
        row.push(bar_cell(&bar(bound.utilisation, bar_cells(page) / 2)));
        table.add_row(row);
    }
    put(out, &table);
    if summary.bounds().iter().take(BOUNDS_SHOWN).any(|bound| is_of_processor(&bound.resource)) {
        *out += &page.wrap("  ", AT_THE_WORK_NOW);
    }
    let of_dies = |bound: &Bound| pages_at_once(&bound.resource, summary);
    if let Some(pages) = summary.bounds().iter().take(BOUNDS_SHOWN).find_map(of_dies) {
        let now = format!("Flash dies at {pages:.2} pages an operation, as now, which may be more under more load.");
        *out += &page.wrap("  ", &now);
    }
}

fn firmware(page: Page, summary: &Summary, out: &mut String) {
    groups(page, "Firmware threads", "threads", &summary.groups, out);
}

fn hardware(page: Page, summary: &Summary, out: &mut String) {
    groups(page, "Hardware, played by stages", "stages", &summary.hardware, out);
}

fn groups(page: Page, title: &str, members: &str, groups: &Named<Group>, out: &mut String) {
    if groups.is_empty() {
        return;
    }
    *out += &format!("{}\n", page.strong(title));
    let energy = groups.iter().any(|(_, group)| group.energy_j.is_some());
    let header = ["group", members, "messages", "energy", "busy", ""];
    let mut table = page.table(&header.iter().copied().filter(|name| energy || *name != "energy").collect::<Vec<_>>());
    for (name, group) in groups.iter() {
        let mut texts = vec![name.to_owned(), group.threads.to_string(), count(group.messages as f64)];
        if energy {
            texts.push(group.energy_j.map(joules).unwrap_or_default());
        }
        texts.push(percent(group.utilisation));
        let mut row = cells(&texts);
        row.push(bar_cell(&bar(group.utilisation, bar_cells(page) / 2)));
        table.add_row(row);
    }
    put(out, &table);
}

/// One line for each part that the device has.
fn parts(page: Page, summary: &Summary, out: &mut String) {
    let mut lines: Vec<(&str, String)> = Vec::new();
    processor_lines(summary, &mut lines);
    flash_lines(summary, &mut lines);
    if let Some(data) = &summary.data {
        let verdict = match data.mismatches {
            0 => page.good("none wrong"),
            wrong => page.bad(&format!("{wrong} WRONG")),
        };
        lines.push(("data check", format!("{} sectors compared, {verdict}", count(data.checked as f64))));
    }
    if !lines.is_empty() {
        *out += &format!("{}\n", page.strong("Parts"));
    }
    for (name, line) in lines {
        *out += &page.wrap(&format!("   {name:<12}"), &line);
    }
}

fn processor_lines(summary: &Summary, lines: &mut Vec<(&'static str, String)>) {
    if let Some(cores) = &summary.cores {
        let spread =
            spread(&cores.utilisation).map(|spread| format!("; each {spread} of its time")).unwrap_or_default();
        lines.push(("cores", format!("{} of {} busy on average{spread}", number(cores.active_mean), cores.count)));
    }
    if let Some(workers) = &summary.workers {
        let &Workers { work, lock_wait, room_wait, flash_wait, link_wait, idle } = workers;
        let [work, lock, room, flash, link, idle] =
            [work, lock_wait, room_wait, flash_wait, link_wait, idle].map(percent);
        let line = format!(
            "{work} of their time working, waiting {lock} for locks, {room} for room, {flash} for flash, \
             {link} for the host link; {idle} idle"
        );
        lines.push(("workers", line));
    }
    if let Some(power) = summary.power_w {
        let each = (summary.iops > 0.0).then(|| format!(", {} a request", joules(power / summary.iops)));
        let polling = summary.polling_w.filter(|&polling| polling > 0.0);
        let polling = polling.map(|polling| format!(", of which {} W poll for messages", number(polling)));
        lines
            .push(("power", format!("{} W{}{}", number(power), each.unwrap_or_default(), polling.unwrap_or_default())));
    }
    if let Some(cache) = &summary.cache {
        let ratio = cache.hit_ratio.map_or_else(|| "no".to_owned(), percent);
        let (hits, looked) = (cache.hits as f64, (cache.hits + cache.misses) as f64);
        let (bypasses, evictions) = (count(cache.bypasses as f64), count(cache.evictions as f64));
        let line =
            format!("{ratio} hits ({} of {}), {bypasses} bypasses, {evictions} evictions", count(hits), count(looked));
        lines.push(("cache", line));
        if let Some(share) = filling(summary, cache) {
            // Hosts from outside ask for what they want.
            let advice = if summary.workload.is_some() { "; workload.warm_up_ios fills it first" } else { "" };
            let line = format!(
                "the buffer was still filling: for {} of the writes it had nothing to put out, and rates fall when it is full{advice}",
                percent(share)
            );
            lines.push(("", line));
        }
    }
    if let Some(locks) = &summary.locks {
        let share = locks.waits as f64 / locks.acquires.max(1) as f64;
        let waited = locks.wait_mean.filter(|_| locks.waits > 0);
        let wait = waited.map(|mean| format!(" ({} on average)", nanos(mean))).unwrap_or_default();
        let mut inquiry =
            locks.inquiry_mean.map(|mean| format!("; an inquiry takes {}", nanos(mean))).unwrap_or_default();
        if let (Some(line), Some(turn)) = (locks.line_mean, locks.turn_mean) {
            inquiry +=
                &format!(", {} of it in line and {} at the thread that holds the lock", nanos(line), nanos(turn));
        }
        if let Some(threads) = locks.stalled_mean {
            inquiry += &format!("; {} threads stood still for one on average", number(threads));
        }
        let taken = count(locks.acquires as f64);
        lines.push(("locks", format!("{taken} taken, {} of them after a wait{wait}{inquiry}", percent(share))));
    }
}

/// The share of the writes that were not in the buffer for which no page left it, where it is more than a few. Fewer writes than these say
/// nothing. Pages leave it when they are put out; what is written through or flushed is in it as before, but on flash as well, so that its
/// place is free for the next without a word. So what was programmed for the host counts, if that is more.
fn filling(summary: &Summary, cache: &Cache) -> Option<f64> {
    const WRITES_MIN: u64 = 1_000;
    const SHARE_MIN: f64 = 0.05;
    let missed = cache.writes.misses;
    let programs = summary.flash.as_ref().map_or(0, |flash| flash.programs);
    let moved = summary.gc.as_ref().map_or(0, |gc| gc.pages_moved);
    let journal = summary.journal.as_ref().map_or(0, |journal| journal.pages);
    let left = (cache.evictions + cache.bypasses).max(programs.saturating_sub(moved + journal));
    let share = 1.0 - left as f64 / missed.max(1) as f64;
    Some(share).filter(|share| missed >= WRITES_MIN && *share > SHARE_MIN)
}

fn flash_lines(summary: &Summary, lines: &mut Vec<(&'static str, String)>) {
    if let Some(flash) = &summary.flash {
        let [reads, programs, erases] = [flash.reads, flash.programs, flash.erases].map(|number| count(number as f64));
        let channels =
            spread(&flash.channel_utilisation).map(|spread| format!(", channels carry {spread}")).unwrap_or_default();
        let dies =
            flash.die_utilisation_mean.map(|dies| format!("; dies work {} of their time{channels}", percent(dies)));
        let busy = dies.unwrap_or_default();
        let ways: String = [
            (flash.multi_plane_operations, "operations on several planes"),
            (flash.cached_operations, "operations by cache command"),
            (flash.suspensions, "suspensions"),
        ]
        .into_iter()
        .filter_map(|(number, of)| Some(format!("; {of}: {}", count(number? as f64))))
        .collect();
        lines.push(("flash", format!("{reads} pages read, {programs} programmed, {erases} blocks erased{busy}{ways}")));
    }
    if let Some(amplification) = summary.write_amplification {
        lines.push(("writes", format!("{} bytes programmed for each byte written", number(amplification))));
    }
    if let Some(gc) = &summary.gc {
        let (blocks, moved) = (count(gc.blocks as f64), count(gc.pages_moved as f64));
        let stalled = nanos(gc.foreground_ns as f64);
        lines.push((
            "collection",
            format!("{blocks} blocks reclaimed, {moved} pages moved; groups on demand took {stalled} in sum"),
        ));
    }
    if let Some(journal) = &summary.journal {
        let (checkpoints, pages) = (count(journal.checkpoints as f64), count(journal.pages as f64));
        let worn = erased(journal.erase_count_min, journal.erase_count_max);
        lines.push(("journal", format!("{checkpoints} checkpoints, {pages} pages; its blocks erased {worn}")));
    }
    if let Some(wear) = &summary.wear {
        let worn = erased(wear.erase_count_min, wear.erase_count_max);
        let (mean, deviation) = (number(wear.erase_count_mean), number(wear.erase_count_stddev));
        let spread = format!(", {mean} on average (standard deviation {deviation})");
        let spread = if wear.erase_count_min == wear.erase_count_max { String::new() } else { spread };
        lines.push(("wear", format!("blocks erased {worn}{spread}")));
    }
    if let Some(media) = &summary.media {
        let [bits, corrected, retries] =
            [media.bit_errors, media.corrected, media.retries].map(|number| count(number as f64));
        let again = if media.retries == 1 { "retry" } else { "retries" };
        let (lost, bad) = (of(media.uncorrectable, "read"), of(media.bad_blocks, "bad block"));
        let mut line =
            format!("{bits} bits corrected in {corrected} code words, {retries} {again}; {lost} given up, {bad}");
        if media.damaged_sectors > 0 {
            line += &format!("; {}", of(media.damaged_sectors, "damaged sector"));
        }
        if media.failed_operations > 0 {
            line += &format!("; programs and erases that failed: {}", media.failed_operations);
        }
        lines.push(("media", line));
    }
}

/// How often each block was erased: `never`, `once each`, `3 times each`, `2 to 14 times`.
fn erased(least: u64, most: u64) -> String {
    match (least, most) {
        (0, 0) => "never".into(),
        (1, 1) => "once each".into(),
        _ if least == most => format!("{most} times each"),
        _ => format!("{least} to {most} times"),
    }
}

/// `41 % to 92 %`; nothing for no shares.
fn spread(shares: &[f64]) -> Option<String> {
    let least = shares.iter().copied().reduce(f64::min)?;
    let most = shares.iter().copied().reduce(f64::max)?;
    let (least, most) = (percent(least), percent(most));
    Some(if least == most { most } else { format!("{least} to {most}") })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sample::sample;
    use crate::{Direction, Flash, Lookups, Namespace, Wear};

    #[test]
    fn how_often_blocks_were_erased_is_said_in_words_that_fit() {
        let said = [(0, 0), (1, 1), (3, 3), (0, 1), (0, 14)].map(|(least, most)| erased(least, most));
        assert_eq!(said, ["never", "once each", "3 times each", "0 to 1 times", "0 to 14 times"]);
        let mut even = sample();
        let wear = |summary: &Summary| {
            let table = render_on(Page::PLAIN, summary);
            table.lines().find(|line| line.trim_start().starts_with("wear")).expect("a line").trim().to_owned()
        };
        assert_eq!(wear(&even), "wear        blocks erased 0 to 14 times, 3.20 on average (standard deviation 1.30)");
        even.wear =
            Some(Wear { erase_count_min: 0, erase_count_mean: 0.0, erase_count_max: 0, erase_count_stddev: 0.0 });
        assert_eq!(wear(&even), "wear        blocks erased never");
    }

    #[test]
    fn what_dies_do_at_once_or_again_is_told_where_they_do() {
        let mut cached = sample();
        let flash = cached.flash.as_mut().expect("it has flash");
        (flash.cached_operations, flash.suspensions) = (Some(1_234), Some(5));
        let text = render_on(Page::PLAIN, &cached);
        let words = text.split_whitespace().collect::<Vec<_>>().join(" ");
        assert!(words.contains("; operations by cache command: 1.23 k; suspensions: 5 writes"), "{text}");
    }

    #[test]
    fn commands_that_failed_are_not_passed_over() {
        let mut failing = sample();
        assert!(!render_on(Page::PLAIN, &failing).contains("media error"));
        failing.media.as_mut().expect("it has media").failed_commands = 39_571;
        let text = render_on(Page::PLAIN, &failing);
        assert!(text.contains("39.6 k commands failed with a media error; they count as requests"), "{text}");
    }

    #[test]
    fn settled_writes_that_nothing_was_reclaimed_for_are_told_so() {
        let says = |summary: &Summary| {
            let text = render_on(Page::PLAIN, summary);
            text.split_whitespace().collect::<Vec<_>>().join(" ").contains(NOTHING_RECLAIMED)
        };
        let mut fresh = sample();
        assert!(fresh.steady_state.is_some() && !says(&fresh));
        fresh.gc.as_mut().expect("it reclaims").blocks = 0;
        assert!(says(&fresh));
        fresh.write.ios = 0;
        assert!(!says(&fresh));
    }

    #[test]
    fn the_sample_looks_as_it_should() {
        let text = render_on(Page::PLAIN, &sample());
        let golden = include_str!("../golden/sample.txt");
        assert!(
            text == golden,
            "the summary looks different; if that is meant, put this in golden/sample.txt:\n{text}"
        );
    }

    #[test]
    fn nothing_is_wider_than_the_page() {
        let several = Summary { namespaces: [("1000", with_reads(7))].into_iter().collect(), ..sample() };
        for (width, summary) in
            [80, 100, 107, 108, 140].into_iter().flat_map(|at| [(at, sample()), (at, several.clone())])
        {
            let text = render_on(Page { width, ..Page::PLAIN }, &summary);
            let widest = text.lines().max_by_key(|line| line.chars().count()).unwrap();
            assert!(widest.chars().count() <= width, "wider than {width}: {widest}");
        }
    }

    /// A namespace with so many reads, which take as long as those of the sample.
    fn with_reads(ios: u64) -> Namespace {
        Namespace { read: Direction { ios, ..sample().read }, ..Namespace::default() }
    }

    #[test]
    fn of_many_namespaces_the_busiest_are_shown() {
        let of = |ios: &[u64]| {
            let namespaces = ios.iter().zip(1..).map(|(&ios, at)| (at.to_string(), with_reads(ios))).collect();
            render_on(Page::PLAIN, &Summary { namespaces, ..sample() })
        };
        let rows = |text: &str| {
            let first =
                |line: &str| line.trim().strip_prefix("ns ").map(|rest| rest.chars().take(6).collect::<String>());
            text.lines().filter_map(first).collect::<Vec<_>>()
        };
        assert_eq!(rows(&of(&[2, 9])), ["2 read", "1 read"]);
        let six = of(&[2, 9, 4, 3, 9, 1]);
        assert_eq!(rows(&six), ["2 read", "5 read", "3 read", "4 read"]);
        assert!(
            six.contains("The busiest namespaces; --json has 2 more.") && !of(&[2, 9]).contains("busiest"),
            "{six}"
        );
    }

    #[test]
    fn workers_show_what_they_do_and_wait_for() {
        assert!(!render_on(Page::PLAIN, &sample()).contains("workers"));
        let waits =
            Workers { lock_wait: 0.005, room_wait: 0.2, flash_wait: 0.726, link_wait: 0.004, ..Workers::default() };
        let workers = Workers { work: 0.025, idle: 0.04, ..waits };
        let text = render_on(Page::PLAIN, &Summary { workers: Some(workers), ..sample() });
        let words = text.split_whitespace().collect::<Vec<_>>().join(" ");
        let line = "workers 2.5 % of their time working, waiting 0.5 % for locks, 20 % for room, 73 % for flash, \
                    0.4 % for the host link; 4.0 % idle";
        assert!(words.contains(line), "{text}");
    }

    #[test]
    fn colours_come_only_when_asked_for() {
        let coloured = render_on(Page { colour: true, ..Page::PLAIN }, &sample());
        assert!(coloured.contains("\x1b[1m") && coloured.contains("\x1b[32mnone wrong"));
        assert!(!render_on(Page::PLAIN, &sample()).contains('\x1b'));
    }

    #[test]
    fn a_run_that_fills_the_buffer_says_so() {
        let run = |evictions, bypasses, programs| {
            let writes = Lookups { hits: 0, misses: 10_000 };
            let cache = Cache { evictions, bypasses, ..Cache::of(Lookups::default(), writes) };
            let flash = Some(Flash { programs, ..Flash::default() });
            let summary = Summary { cache: Some(cache), flash, ..sample() };
            let of_hosts = Summary { workload: None, ..summary.clone() };
            assert!(!render_on(Page::PLAIN, &of_hosts).contains("warm_up"), "hosts outside are nobody's workload");
            render_on(Page::PLAIN, &summary)
        };
        assert!(run(4_000, 900, 0).contains("the buffer was still filling: for 51 % of the writes"));
        assert!(run(8_000, 1_400, 0).contains("still filling") && !run(8_000, 1_600, 0).contains("still filling"));
        // 41,000 pages are moved and 4,800 are of the journal: of the others a flush or the write itself brought most to flash.
        assert!(
            run(4_000, 900, 54_000).contains("for 18 % of the writes") && !run(0, 0, 55_800).contains("still filling")
        );
    }

    #[test]
    fn all_percentiles_are_shown_where_there_is_room_for_them() {
        let shows = |summary: &Summary, width| {
            let text = render_on(Page { width, ..Page::PLAIN }, summary);
            ["p90 ", "p99.9 "].map(|column| text.contains(column))
        };
        let plain = Summary { classes: Named::default(), namespaces: Named::default(), ..sample() };
        let classes = Summary { classes: [("high", sample().read)].into_iter().collect(), ..plain.clone() };
        let namespaces = Summary { namespaces: [("1", with_reads(7))].into_iter().collect(), ..classes.clone() };
        for (summary, width) in [(plain, 96), (classes, 104), (namespaces, 108)] {
            assert_eq!((shows(&summary, width - 1), shows(&summary, width)), ([false; 2], [true; 2]), "{width}");
        }
        assert_eq!([30, 40, 80, 100, 140].map(|width| bar_cells(Page { width, ..Page::PLAIN })), [20, 20, 40, 50, 50]);
    }

    #[test]
    fn six_bounds_are_shown_and_what_is_said_of_them_is_of_these() {
        for [sixth, seventh] in [["seen cores", "hidden"], ["seen", "hidden cores"]] {
            let resources = ["a", "b", "c", "d", "e", sixth, seventh].map(str::to_owned).into_iter();
            let bounds = crate::bounds(1e6, &resources.zip([0.7, 0.6, 0.5, 0.4, 0.3, 0.2, 0.1]).collect::<Vec<_>>());
            let text = render_on(Page::PLAIN, &Summary { bounds: Some(bounds), ..sample() });
            assert!(text.contains("seen") && !text.contains("hidden"), "{text}");
            assert_eq!(text.contains("Threads, cores and issue slots"), sixth == "seen cores");
        }
    }

    #[test]
    fn a_buffer_that_fills_is_told_of_where_enough_was_written() {
        let fills = |misses, left| {
            let cache = Cache { evictions: left, ..Cache::of(Lookups::default(), Lookups { hits: 0, misses }) };
            filling(&Summary::default(), &cache).is_some()
        };
        assert!(fills(1_000, 949) && !fills(1_000, 951) && !fills(1_000, 2_000) && !fills(999, 0));
    }

    #[test]
    fn one_is_told_as_one() {
        let mut one = Summary { ios: 1, rounded: 1, unsent: 0, ..sample() };
        let media = one.media.as_mut().expect("it has media");
        (media.failed_commands, media.retries, media.damaged_sectors) = (1, 1, 1);
        let text = render_on(Page { width: 200, ..Page::PLAIN }, &one);
        for said in ["1 request in ", "1 command failed with", "they touch: 1 since", "1 retry;", "; 1 damaged sector"]
        {
            assert!(text.contains(said), "{said}: {text}");
        }
        assert!(!text.contains("requests not sent") && spread(&[0.5, 0.5]).as_deref() == Some("50 %"));
    }

    #[test]
    fn an_empty_run_still_renders() {
        let text = render_on(Page::PLAIN, &Summary::default());
        assert!(text.contains("0 IOPS") && !text.contains("NaN") && !text.contains("limits"), "{text}");
    }
}
