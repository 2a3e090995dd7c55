//! What a correct device may answer: told of every command and every completion, it judges what reads find.

mod after_cut;
mod copied;
mod entries;
mod mismatch;
mod power;
mod race;
#[cfg(test)]
mod tests;

use std::collections::VecDeque;

use units::{Lba, QueueId, pattern};

use copied::{COPIED, Copied, Held};
use entries::Entries;
pub use mismatch::{Meaning, Mismatch};
use power::Power;
use race::{Claim, PAGE_SECTORS, Race};

/// What a sector holds: the number of a write, what a Copy brought, or one of three specials. 30 bits, so that a page's entry has room
/// for a tag; numbers are used again after 2^29 writes, which could hide only a write lost exactly that long ago.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Content(u32);

impl Content {
    /// As the drive was at the start.
    const INITIAL: Content = Content(0);
    /// Zeros.
    const ZEROED: Content = Content((1 << 30) - 1);
    /// What a page that could not be read after a power cut might have held: its history knows.
    const GIVEN_UP: Content = Content((1 << 30) - 2);
    /// Nothing that can be read, for a host has said so.
    const SPOILED: Content = Content((1 << 30) - 3);
}

/// What a page's entry says.
enum Page {
    /// All eight sectors hold the same, and no write is under way or lately was.
    Uniform(Content),
    /// An index into `mixed`: settled, but not all alike.
    Mixed(usize),
    /// An index into `races`.
    Racing(usize),
}

const MIXED: u32 = 1 << 30;
const RACING: u32 = 1 << 31;

impl Page {
    fn decode(entry: u32) -> Page {
        match entry {
            uniform if uniform < MIXED => Page::Uniform(Content(uniform)),
            mixed if mixed < RACING => Page::Mixed((mixed - MIXED) as usize),
            racing => Page::Racing((racing - RACING) as usize),
        }
    }
}

/// What the drive holds before the first write.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Initial {
    /// Zeros everywhere: nothing has been written since a format.
    Fresh,
    /// The pattern of write 0 everywhere.
    Preconditioned,
}

/// What a command does to its sectors.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Access {
    /// Reads them.
    Read,
    /// Writes the pattern that the ticket numbers.
    Write,
    /// Leaves zeros: Deallocate and Write Zeroes.
    Zero,
    /// Leaves nothing that can be read: Write Uncorrectable.
    Spoil,
    /// Writes what other sectors hold ([`Oracle::copies`]).
    Copy,
}

/// Names a submitted command to the oracle.
#[derive(Clone, Copy, Debug)]
pub struct Ticket {
    /// First sector.
    pub first: Lba,
    /// How many.
    pub sectors: u32,
    /// What for.
    pub access: Access,
    /// Whether it is to be on the media when it is answered: force unit access.
    pub through: bool,
    claim: Claim,
    content: Content,
}

impl Ticket {
    /// The number whose pattern a write has to put into its sectors.
    pub fn write_number(&self) -> u64 {
        u64::from(self.content.0)
    }
}

/// The judge of one namespace.
///
/// - Commands of one queue take effect in the order of their submission where they overlap.
/// - A command takes effect at one instant for each sector, between its submission and its completion. So a read finds
///   the last completed write, or one that was under way while the read was; of two writes under way together either
///   may last, until a read finds one of them.
/// - A command answered with an error has taken effect by then or never will.
///
/// Memory is about 20 bytes for each page written, until 4 bytes for every page are less; 32 more for a page
/// written in parts, and a history for each page
/// with writes under way. Nothing is allocated in steady state.
pub struct Oracle {
    /// Whether commands of a queue that touch the same sectors take effect in their order.
    in_order: bool,
    sectors: u64,
    start: Lba,
    initial: Initial,
    pages: Entries,
    mixed: Vec<[Content; PAGE_SECTORS]>,
    mixed_free: Vec<u32>,
    races: Vec<Race>,
    races_free: Vec<u32>,
    /// Races to look at once no command older than the stamp is under way.
    expiring: VecDeque<(u64, u64)>,
    /// For the commands from number `oldest` on, whether they have completed.
    done: VecDeque<bool>,
    oldest: u64,
    next_write: u32,
    /// Whether commands may be answered with an error.
    may_fail: bool,
    /// What power cuts may leave, where there are any.
    power: Option<Power>,
    /// What Copies wrote, sector by sector.
    copied: Vec<Copied>,
    /// Whether any sector was made unreadable.
    spoils: bool,
    writes: u64,
    checked: u64,
    mismatches: u64,
}

impl Oracle {
    /// Knows a namespace of so many sectors, the first of which is the drive's sector `start`: patterns name sectors of the
    /// drive, so that those of one namespace are wrong in another.
    pub fn new(sectors: u64, start: Lba, initial: Initial) -> Oracle {
        Oracle {
            in_order: true,
            sectors,
            start,
            initial,
            pages: Entries::new(sectors.div_ceil(PAGE_SECTORS as u64)),
            mixed: Vec::new(),
            mixed_free: Vec::new(),
            races: Vec::new(),
            races_free: Vec::new(),
            expiring: VecDeque::new(),
            done: VecDeque::new(),
            oldest: 0,
            next_write: 1,
            may_fail: false,
            power: None,
            copied: Vec::new(),
            spoils: false,
            writes: 0,
            checked: 0,
            mismatches: 0,
        }
    }

    /// Sectors of the namespace.
    pub fn sectors(&self) -> u64 {
        self.sectors
    }

    /// Sectors judged so far.
    pub fn checked(&self) -> u64 {
        self.checked
    }

    /// Reads found wrong so far.
    pub fn mismatches(&self) -> u64 {
        self.mismatches
    }

    /// Judges a device that may change the order of commands of one queue, as NVMe allows (Base §3.4.1).
    pub fn without_order(mut self) -> Oracle {
        self.in_order = false;
        self
    }

    /// Judges a device that answers commands with errors now and then: a read may find that a write ahead of it failed before the host is
    /// told so.
    pub fn with_failures(mut self) -> Oracle {
        self.may_fail = true;
        self
    }

    /// Judges a device whose power is cut now and then; `volatile` if it may lose what it has answered until a Flush. A write changes
    /// `whole` sectors together, a power of two, from a multiple of as many on. It takes a history for every page that was ever written.
    pub fn with_power_cuts(mut self, volatile: bool, whole: u32) -> Oracle {
        self.power = Some(Power::new(volatile, whole));
        self
    }

    /// A command goes to the device. Calls come in the order of the submission queue; the range must lie in the
    /// namespace.
    pub fn submitted(&mut self, queue: QueueId, access: Access, first: Lba, sectors: u32) -> Ticket {
        let claim = self.claim(queue);
        let content = match access {
            Access::Read => Content::INITIAL,
            // On a fresh drive these are the same, and two names for zeros would only look like a race.
            Access::Zero if self.initial == Initial::Fresh => Content::INITIAL,
            Access::Zero => Content::ZEROED,
            Access::Write => self.number(),
            Access::Spoil => Content::SPOILED,
            Access::Copy => unreachable!("a Copy has sources"),
        };
        self.spoils |= access == Access::Spoil;
        self.begin(claim, access, first, sectors, content)
    }

    /// What the next command is known by in histories.
    fn claim(&self, queue: QueueId) -> Claim {
        // Counted down from the top, so that it is no queue's.
        let own = u64::MAX - self.now();
        let order = if self.in_order { queue.0.into() } else { own };
        Claim { submitted: self.now(), queue: queue.0, order }
    }

    fn begin(&mut self, claim: Claim, access: Access, first: Lba, sectors: u32, content: Content) -> Ticket {
        self.settle_uncertain(access, first, sectors);
        let end = first.0.checked_add(u64::from(sectors));
        assert!(end.is_some_and(|end| end <= self.sectors), "{sectors} sectors from {first} leave the namespace");
        self.done.push_back(false);
        let ticket = Ticket { first, sectors, access, through: false, claim, content };
        if access != Access::Read {
            for ((page, mask), nth) in pages(first, sectors).zip(0..) {
                let content = content.in_page(nth);
                let race = self.race(page);
                self.races[race].submitted(claim, content, mask);
                if let Some(power) = &mut self.power {
                    power.submitted(page, claim, content, mask);
                }
            }
        }
        ticket
    }

    /// The command was answered with success; a read found `found`, so many words of each sector as the host keeps.
    pub fn completed(&mut self, ticket: &Ticket, found: &[u64]) -> Result<(), Mismatch> {
        let now = self.now();
        let verdict = match ticket.access {
            Access::Read => self.judge(ticket, found, now).inspect(|()| self.read_through(ticket)),
            Access::Write | Access::Zero | Access::Spoil => self.written(ticket, now, false).map_or(Ok(()), Err),
            Access::Copy => {
                let verdict = self.copied(ticket);
                self.mismatches += u64::from(verdict.is_err());
                verdict.and(self.written(ticket, now, false).map_or(Ok(()), Err))
            }
        };
        self.finished(ticket);
        verdict
    }

    /// The command was answered with an error, or lost in a power cut: it may or may not have taken effect.
    pub fn failed(&mut self, ticket: &Ticket) {
        if ticket.access != Access::Read {
            if ticket.access == Access::Copy {
                // What it could not read it has not written.
                self.copied(ticket).ok();
            }
            self.written(ticket, self.now(), true);
        }
        self.finished(ticket);
    }

    /// The write was answered as one that was never begun: nobody may find it.
    pub fn never_began(&mut self, ticket: &Ticket) {
        let (now, submitted) = (self.now(), ticket.claim.submitted);
        for (page, _) in pages(ticket.first, ticket.sectors).filter(|_| ticket.access != Access::Read) {
            if let Some(power) = &mut self.power {
                power.never_began(page, submitted);
            }
            let race = self.race(page);
            self.races[race].never_began(submitted);
            self.expiring.push_back((now, page));
        }
        self.finished(ticket);
    }

    /// Whether nothing but this write, which is not over yet, has changed its pages since it was submitted.
    pub fn is_alone(&self, ticket: &Ticket) -> bool {
        pages(ticket.first, ticket.sectors).all(|(page, _)| match Page::decode(self.pages.get(page)) {
            Page::Racing(race) => self.races[race].is_alone(ticket.claim.submitted),
            _ => false,
        })
    }

    /// What the sectors of a command hold if the command last submitted is the last to take effect: what a Compare
    /// should find. As many words of each sector as `words` has room for.
    pub fn likely(&self, ticket: &Ticket, words: &mut [u64]) {
        let count = words.len() / ticket.sectors.max(1) as usize;
        for (at, sector) in words.chunks_exact_mut(count.max(1)).enumerate() {
            let lba = ticket.first + at as u64;
            let (page, position) = (lba.0 / PAGE_SECTORS as u64, (lba.0 % PAGE_SECTORS as u64) as usize);
            let content = match Page::decode(self.pages.get(page)) {
                Page::Uniform(content) => content,
                Page::Mixed(index) => self.mixed[index][position],
                Page::Racing(race) => self.races[race].latest(position),
            };
            let copied = if content.is_copied() { self.all(content, lba).first().copied() } else { None };
            let likely = copied.unwrap_or(Held { content, at: lba });
            for (word, held) in sector.iter_mut().enumerate() {
                *held = self.word(likely, word);
            }
        }
    }

    /// Whether a command that is not over yet can have found nothing but what [`Oracle::likely`] says: none of its pages was being changed
    /// since it was submitted, for that would be remembered until it is over.
    pub fn is_certain(&self, ticket: &Ticket) -> bool {
        let is_known =
            |content: Content| !content.is_copied() && content != Content::SPOILED && content != Content::GIVEN_UP;
        pages(ticket.first, ticket.sectors).all(|(page, mask)| {
            let is_uncertain = self.power.as_ref().is_some_and(|power| power.is_uncertain(page));
            let is_certain = match Page::decode(self.pages.get(page)) {
                Page::Uniform(content) => is_known(content),
                Page::Mixed(index) => {
                    (0..PAGE_SECTORS).all(|sector| mask & 1 << sector == 0 || is_known(self.mixed[index][sector]))
                }
                Page::Racing(_) => false,
            };
            is_certain && !is_uncertain
        })
    }

    /// The number of the next submission, which is the stamp of all that happens before it.
    fn now(&self) -> u64 {
        self.oldest + self.done.len() as u64
    }

    fn number(&mut self) -> Content {
        let content = Content(self.next_write);
        self.writes += 1;
        self.next_write = if self.next_write + 1 == COPIED { 1 } else { self.next_write + 1 };
        content
    }

    /// A write was answered; an earlier read that this shows to have been wrong.
    fn written(&mut self, ticket: &Ticket, now: u64, failed: bool) -> Option<Mismatch> {
        let mut accused = None;
        for (page, _) in pages(ticket.first, ticket.sectors) {
            if let Some(power) = &mut self.power {
                power.answered(page, ticket.claim.submitted, now, ticket.through, failed);
            }
            let race = self.race(page);
            let wrong = self.races[race].completed(ticket.claim.submitted, now, failed);
            accused = accused.or(wrong);
            self.expiring.push_back((now, page));
        }
        self.mismatches += u64::from(accused.is_some());
        accused
    }

    /// Retires the command, and then every history that only older commands could still see.
    fn finished(&mut self, ticket: &Ticket) {
        self.done[(ticket.claim.submitted - self.oldest) as usize] = true;
        while self.done.front() == Some(&true) {
            self.done.pop_front();
            self.oldest += 1;
        }
        while let Some(&(stamp, page)) = self.expiring.front()
            && stamp <= self.oldest
        {
            self.expiring.pop_front();
            self.settle(page);
        }
    }

    fn settle(&mut self, page: u64) {
        let Page::Racing(race) = Page::decode(self.pages.get(page)) else { return };
        let Some(contents) = self.races[race].settle(self.oldest) else { return };
        self.races_free.push(race as u32);
        self.put(page, contents);
    }

    /// The history of a page, begun now unless it has one.
    fn race(&mut self, page: u64) -> usize {
        let before = match Page::decode(self.pages.get(page)) {
            Page::Racing(race) => return race,
            Page::Uniform(content) => [content; PAGE_SECTORS],
            Page::Mixed(index) => {
                self.mixed_free.push(index as u32);
                self.mixed[index]
            }
        };
        let race = self.races_free.pop().map_or(self.races.len(), |race| race as usize);
        if race == self.races.len() {
            self.races.push(Race::default());
        }
        self.races[race].restart(page, before);
        self.pages.set(page, RACING + index_of(race));
        race
    }

    fn word(&self, Held { content, at }: Held, word: usize) -> u64 {
        match content {
            Content::ZEROED => 0,
            Content::INITIAL if self.initial == Initial::Fresh => 0,
            written => pattern(self.start + at.0, u64::from(written.0), word as u32),
        }
    }

    fn judge(&mut self, ticket: &Ticket, found: &[u64], now: u64) -> Result<(), Mismatch> {
        let words = found.len() / ticket.sectors.max(1) as usize;
        assert!(words * ticket.sectors as usize == found.len(), "{} words for {ticket:?}", found.len());
        if words == 0 {
            return self.judge_readable(ticket).inspect_err(|_| self.mismatches += 1);
        }
        self.checked += u64::from(ticket.sectors);
        let mut rest = found;
        for (page, mask) in pages(ticket.first, ticket.sectors) {
            let (here, after) = rest.split_at(mask.count_ones() as usize * words);
            rest = after;
            let first = page * PAGE_SECTORS as u64 + u64::from(mask.trailing_zeros());
            if self.power.as_ref().is_some_and(|power| power.is_uncertain(page)) {
                if let Err(mismatch) = self.judge_uncertain(ticket, page, mask, Some((here, words))) {
                    self.mismatches += 1;
                    return Err(mismatch);
                }
                continue;
            }
            let verdict = match Page::decode(self.pages.get(page)) {
                Page::Uniform(content) => self.compare(ticket, Lba(first), here, words, |_| content),
                Page::Mixed(index) => {
                    let held = self.mixed[index];
                    let verdict = self.compare(ticket, Lba(first), here, words, |sector| held[sector]);
                    let from = mask.trailing_zeros() as usize;
                    let known = held[from..].iter().zip(here.chunks_exact(words));
                    known.filter(|_| verdict.is_ok()).for_each(|(content, sector)| self.learn(*content, sector[0]));
                    verdict
                }
                Page::Racing(race) => self.judge_race(ticket, race, Lba(first), here, words, now),
            };
            if let Err(mismatch) = verdict {
                self.mismatches += 1;
                return Err(mismatch);
            }
        }
        Ok(())
    }

    /// Sectors from `first` on, within one page, each with one possible content.
    fn compare(
        &self,
        ticket: &Ticket,
        first: Lba,
        found: &[u64],
        words: usize,
        content: impl Fn(usize) -> Content,
    ) -> Result<(), Mismatch> {
        for (at, sector) in found.chunks_exact(words).enumerate() {
            let lba = first + at as u64;
            let due = content((lba.0 % PAGE_SECTORS as u64) as usize);
            let Some(due) = self.known(due, lba, sector[0]) else {
                return Err(self.mismatch(ticket, lba, 0, sector[0], words, &self.all(due, lba)));
            };
            for (word, found) in sector.iter().enumerate() {
                if *found != self.word(due, word) {
                    return Err(self.mismatch(ticket, lba, word, *found, words, &[due]));
                }
            }
        }
        Ok(())
    }

    fn judge_race(
        &mut self,
        ticket: &Ticket,
        race: usize,
        first: Lba,
        found: &[u64],
        words: usize,
        now: u64,
    ) -> Result<(), Mismatch> {
        let mut settled = false;
        for (at, sector) in found.chunks_exact(words).enumerate() {
            let lba = first + at as u64;
            let position = (lba.0 % PAGE_SECTORS as u64) as usize;
            let history = &self.races[race];
            let is_alike = |due| self.known(due, lba, sector[0]).is_some_and(|due| self.word(due, 0) == sector[0]);
            let mut matching = history.candidates(ticket.claim, position, false, is_alike);
            let mut first = matching.next();
            let ambiguous = matching.next().is_some();
            drop(matching);
            if first.is_none() {
                let due = history.candidates(ticket.claim, position, false, |_| true);
                let due = due.flat_map(|(due, _)| self.all(due, lba)).collect::<Vec<_>>();
                let mismatch = self.mismatch(ticket, lba, 0, sector[0], words, &due);
                first = history.candidates(ticket.claim, position, true, is_alike).next().filter(|_| self.may_fail);
                let Some((_, write)) = first else { return Err(mismatch) };
                self.races[race].accuse(ticket.claim, position, write, &mismatch);
            }
            let (content, write) = first.expect("there is one by now");
            let held = self.known(content, lba, sector[0]).expect("it matched");
            if let Some(word) = (1..words).find(|word| sector[*word] != self.word(held, *word)) {
                return Err(self.mismatch(ticket, lba, word, sector[word], words, &[held]));
            }
            settled |= if ambiguous {
                let alike = self.alike(ticket.claim, race, lba, content, sector[0]);
                self.races[race].found_alike(ticket.claim, position, &alike, now)
            } else {
                self.learn(content, sector[0]);
                self.races[race].found(ticket.claim, position, write, now)
            };
        }
        if settled {
            self.expiring.push_back((now, self.races[race].page));
        }
        Ok(())
    }

    /// Contents that a sector may have and that begin as `content` does, which is one of them.
    fn alike(&self, claim: Claim, race: usize, lba: Lba, content: Content, found: u64) -> Vec<Content> {
        if self.copied.is_empty() {
            return vec![content];
        }
        let position = (lba.0 % PAGE_SECTORS as u64) as usize;
        let is_alike = |due| self.known(due, lba, found).is_some_and(|due| self.word(due, 0) == found);
        self.races[race].candidates(claim, position, false, is_alike).map(|(content, _)| content).collect()
    }

    #[cold]
    fn mismatch(&self, ticket: &Ticket, lba: Lba, word: usize, found: u64, words: usize, due: &[Held]) -> Mismatch {
        let writes = (self.writes + 1).min(u64::from(Content::ZEROED.0));
        let (at, end) = (self.start + lba.0, self.start.0 + self.sectors);
        let meaning = |content| Meaning::of(content, at, word as u32, end, writes, words as u32);
        let mut expected: Vec<Meaning> = Vec::new();
        for due in due.iter().map(|due| meaning(self.word(*due, word))) {
            if !expected.contains(&due) {
                expected.push(due);
            }
        }
        Mismatch {
            lba: at,
            queue: QueueId(ticket.claim.queue),
            word: word as u32,
            expected,
            found,
            meaning: meaning(found),
        }
    }
}

/// An index with room for its tag.
fn index_of(index: usize) -> u32 {
    assert!(index < MIXED as usize, "more histories than a page's entry can name");
    index as u32
}

/// The pages that a range of sectors touches, each with a bit for every sector of it.
fn pages(first: Lba, sectors: u32) -> impl Iterator<Item = (u64, u8)> {
    let (start, end, grain) = (first.0, first.0 + u64::from(sectors), PAGE_SECTORS as u64);
    (start / grain..end.div_ceil(grain)).map(move |page| {
        let from = start.max(page * grain) - page * grain;
        let to = end.min((page + 1) * grain) - page * grain;
        (page, ((1u16 << to) - (1u16 << from)) as u8)
    })
}
