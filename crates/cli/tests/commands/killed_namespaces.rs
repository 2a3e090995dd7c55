//! A served drive that is killed while a host makes, formats and deletes namespaces, and served again from its file.
//!
//! `FLASHLOOM_ROUNDS=200` makes it as many rounds, and `--nocapture` shows what they came to.

use crate::initiator::{Host, Payload};
use crate::killed::{Drive, NOWHERE, Scratch};
use nvme::spec::identify::{self, IdentifyNamespace};
use nvme::spec::{Status, Submission};
use rand::{RngExt, SeedableRng};
use rand_xoshiro::Xoshiro256PlusPlus;
use std::collections::BTreeMap;
use std::time::Duration;

const IDS: u32 = 5;
const BYTES: usize = 4096;
/// Steps that are answered in each life before the kill is due.
const STEPS_MIN: u64 = 4;

/// What a host knows of a namespace.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Space {
    /// In 4 KiB.
    size: u64,
    /// Format: blocks of 512 B or of 4 KiB.
    format: u8,
    attached: bool,
    /// What the first and the last 4 KiB hold, where that was written through.
    ends: [u8; 2],
}

impl Space {
    fn block(&self) -> u64 {
        if self.format == 0 { 512 } else { 4096 }
    }

    /// First block and count of one of its ends.
    fn end(&self, end: usize) -> (u64, u32) {
        let per_page = BYTES as u64 / self.block();
        (if end == 0 { 0 } else { (self.size - 1) * per_page }, per_page as u32)
    }
}

type Spaces = BTreeMap<u32, Space>;

#[derive(Clone, Copy, Debug)]
enum Step {
    Create { size: u64, format: u8 },
    Attach(u32, bool),
    Format(u32, u8),
    Delete(u32),
    Write(u32, usize, u8),
}

/// The next step that the drive has to carry out; none if what was drawn does not suit.
fn draw(spaces: &Spaces, draw: &mut Xoshiro256PlusPlus) -> Option<Step> {
    let id = draw.random_range(1..=IDS);
    let format = draw.random_range(0..2);
    let Some(space) = spaces.get(&id) else {
        return Some(Step::Create { size: draw.random_range(2..600), format });
    };
    match draw.random_range(0..10) {
        0..5 if space.attached => Some(Step::Write(id, draw.random_range(0..2), draw.random_range(1..=255))),
        5..7 => Some(Step::Attach(id, !space.attached)),
        7 if space.attached => Some(Step::Format(id, format)),
        8 => Some(Step::Delete(id)),
        _ => None,
    }
}

/// What the namespaces are after a step.
fn after(spaces: &Spaces, step: Step) -> Spaces {
    let mut spaces = spaces.clone();
    let mut with = |id: u32, change: &dyn Fn(&mut Space)| change(spaces.get_mut(&id).expect("it is there"));
    match step {
        Step::Attach(id, attached) => with(id, &|space| space.attached = attached),
        Step::Format(id, format) => with(id, &|space| (space.format, space.ends) = (format, [0; 2])),
        Step::Write(id, end, fill) => with(id, &|space| space.ends[end] = fill),
        Step::Delete(id) => drop(spaces.remove(&id)),
        Step::Create { size, format } => {
            let free = (1..).find(|id| !spaces.contains_key(id)).expect("there are fewer");
            spaces.insert(free, Space { size, format, attached: false, ends: [0; 2] });
        }
    }
    spaces
}

/// Has the drive carry a step out; whether it answered.
fn carry_out(host: &mut Host, spaces: &Spaces, step: Step) -> bool {
    let finished = match step {
        Step::Create { size, format } => {
            let blocks = size * if format == 0 { 8 } else { 1 };
            let mut asked = IdentifyNamespace::default();
            asked.set_size(blocks).set_capacity(blocks).set_format(format);
            host.admin.send(Submission::create_namespace(NOWHERE), &Payload::Send(asked.as_bytes()));
            host.admin.finish()
        }
        Step::Attach(id, attaches) => {
            let mut data = vec![0; BYTES];
            data[..4].copy_from_slice(&(1 | u32::from(host.controller) << 16).to_le_bytes());
            host.admin.send(Submission::attach_namespace(id, attaches, NOWHERE), &Payload::Send(&data));
            host.admin.finish()
        }
        Step::Format(id, format) => {
            host.admin.send(Submission::format_nvm(id, format.into(), 0), &Payload::None);
            host.admin.finish()
        }
        Step::Delete(id) => {
            host.admin.send(Submission::delete_namespace(id), &Payload::None);
            host.admin.finish()
        }
        Step::Write(id, end, fill) => {
            let (slba, blocks) = spaces[&id].end(end);
            let write = Submission::write(id, slba, blocks, NOWHERE).with_fua();
            host.queues[0].send(write, &Payload::Send(&[fill; BYTES]));
            host.queues[0].finish()
        }
    };
    let Ok((completion, _)) = finished else { return false };
    assert_eq!(completion.status(), Status::SUCCESS, "{step:?} of {spaces:?}");
    true
}

fn ids(host: &mut Host, cns: u8) -> Vec<u32> {
    let (_, data) = host.admin.done(Submission::identify(cns, 0, NOWHERE), Payload::Receive(4096));
    let ids = data.chunks_exact(4).map(|id| u32::from_le_bytes(id.try_into().expect("four bytes")));
    ids.take_while(|id| *id != 0).collect()
}

/// What the drive has; what those hold that are not attached is looked at with them attached for that long.
fn found(host: &mut Host) -> Spaces {
    let (all, active) = (ids(host, identify::ALLOCATED_NAMESPACES), ids(host, identify::ACTIVE_NAMESPACES));
    let mut spaces = Spaces::new();
    for id in all {
        let asked = Submission::identify(identify::ALLOCATED_NAMESPACE, id, NOWHERE);
        let (_, data) = host.admin.done(asked, Payload::Receive(4096));
        let page = IdentifyNamespace::from_bytes(&data);
        let (block, attached) = (page.block_bytes().expect("it has a format"), active.contains(&id));
        let size = page.size() * u64::from(block) / BYTES as u64;
        let mut space = Space { size, format: page.format(), attached, ends: [0; 2] };
        if !attached {
            assert!(carry_out(host, &spaces, Step::Attach(id, true)), "it lives");
        }
        for end in 0..2 {
            let (slba, blocks) = space.end(end);
            let data = host.queues[0].done(Submission::read(id, slba, blocks, NOWHERE), Payload::Receive(BYTES)).1;
            assert!(data.iter().all(|byte| *byte == data[0]), "namespace {id}: a mix");
            space.ends[end] = data[0];
        }
        if !attached {
            assert!(carry_out(host, &spaces, Step::Attach(id, false)), "it lives");
        }
        spaces.insert(id, space);
    }
    spaces
}

/// Without the ends of a namespace whose contents were going: any of them may be gone.
fn without_ends(spaces: &Spaces, id: u32) -> Spaces {
    let mut spaces = spaces.clone();
    spaces.entry(id).and_modify(|space| space.ends = [0; 2]);
    spaces
}

fn judge(found: &Spaces, known: &Spaces, under_way: Option<Step>) {
    let is_it = match under_way {
        None => found == known,
        Some(step @ (Step::Format(id, _) | Step::Delete(id))) => {
            let gone = |space: &Space| {
                space.ends.iter().zip(known[&id].ends).all(|(found, known)| *found == 0 || *found == known)
            };
            found == &after(known, step)
                || without_ends(found, id) == without_ends(known, id) && found.get(&id).is_some_and(gone)
        }
        Some(step) => found == known || *found == after(known, step),
    };
    assert!(is_it, "{found:?}, and {under_way:?} was under way of {known:?}");
}

#[test]
#[expect(clippy::print_stdout, reason = "what many rounds came to is for who asked for them")]
fn namespaces_are_as_they_were_before_or_after_the_command_that_a_kill_cut_off() {
    let each = std::env::var("FLASHLOOM_ROUNDS").ok().and_then(|rounds| rounds.parse::<u64>().ok());
    let architectures = ["deepflash", "naive", "pipessd", "tradition"];
    for (architecture, seed) in architectures.into_iter().zip(1..) {
        let count = each.map_or(3, |all| all.div_ceil(architectures.len() as u64));
        let name = format!("flashloom-spaces-{architecture}-{}.media", std::process::id());
        let file = Scratch(std::env::temp_dir().join(name));
        let mut random = Xoshiro256PlusPlus::seed_from_u64(seed);
        let (mut known, mut under_way, mut answered, mut taken) = (Spaces::new(), None, 0u64, 0u64);
        for round in 0..count {
            let flags = ["--architecture", architecture, "--timing", "off", "--set", "cache.size_bytes=1MiB"];
            let drive = Drive::serve(&file.0, &flags, None);
            let mut host = drive.attach().expect("it listens");
            if round == 0 {
                host.admin.done(Submission::delete_namespace(1), Payload::None);
            }
            let found = found(&mut host);
            judge(&found, &known, under_way);
            taken += u64::from(under_way.is_some() && found != known);
            known = found;
            let life = Duration::from_micros(random.random_range(0..60_000));
            let (mut killer, promised) = (None, answered + STEPS_MIN);
            loop {
                if answered == promised {
                    killer = Some(drive.kill_after(life));
                }
                let Some(step) = draw(&known, &mut random) else { continue };
                under_way = Some(step);
                if !carry_out(&mut host, &known, step) {
                    break;
                }
                (known, answered) = (after(&known, step), answered + 1);
            }
            killer.expect("it lives until it is killed").join().expect("it was alive");
        }
        println!("{architecture}: {count} rounds, {answered} steps answered, {taken} that were not had done something");
    }
}
