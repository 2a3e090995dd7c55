//! The oracle after a power cut: pages whose content is uncertain until a read has found it.

use super::copied::Held;
use super::power::Found;
use super::race::PAGE_SECTORS;
use super::{Access, Content, MIXED, Mismatch, Oracle, Page, Ticket, index_of};
use units::Lba;

impl Oracle {
    /// A Flush goes to the device: its stamp.
    pub fn flush_submitted(&mut self) -> u64 {
        let now = self.now();
        // It takes a number, so that what is answered later is told from what was answered before.
        self.done.push_back(true);
        now
    }

    /// A Flush was answered: what had been answered when it was submitted, at the stamp `since`, lasts from now on.
    pub fn flushed(&mut self, since: u64) {
        if let Some(power) = &mut self.power {
            power.flushed(since);
        }
    }

    /// A read was answered: if with force unit access, what it must have found, or what came after that, lasts from now on.
    pub(super) fn read_through(&mut self, ticket: &Ticket) {
        if let Some(power) = self.power.as_mut().filter(|_| ticket.through) {
            super::pages(ticket.first, ticket.sectors).for_each(|(page, mask)| power.read(page, ticket.claim, mask));
        }
    }

    /// Power was cut. Commands under way are never answered, and may have taken effect; so may what was answered and need not
    /// last. From now on the first read of a whole page says what it holds.
    ///
    /// # Panics
    /// Where [`Oracle::with_power_cuts`] was not asked for.
    pub fn power_cut(&mut self) {
        let now = self.now();
        self.settle_all_copied();
        let power = self.power.as_mut().expect("power cuts were announced");
        let certain = power.cut();
        self.done.clear();
        self.oldest = now + 1;
        self.expiring.clear();
        self.races_free = (0..self.races.len() as u32).rev().collect();
        for (page, contents) in certain {
            self.put(page, contents);
        }
        // What they held was told by a history that is over.
        let uncertain: Vec<u64> = self.power.iter().flat_map(|power| power.uncertain()).collect();
        for page in uncertain {
            self.put(page, [Content::INITIAL; PAGE_SECTORS]);
        }
    }

    /// Pages of which no read has said yet what they hold since the power was cut.
    pub fn uncertain(&self) -> usize {
        self.power.as_ref().map_or(0, |power| power.uncertain().count())
    }

    /// The uncertain pages of which `is_lost` is true cannot be read. From now on a read of what is not written anew may fail, or find
    /// what there might have been.
    pub fn give_up(&mut self, is_lost: impl Fn(u64) -> bool) {
        let now = self.now();
        let Some(power) = &mut self.power else { return };
        let lost: Vec<u64> = power.uncertain().filter(|&page| is_lost(page)).collect();
        lost.iter().for_each(|&page| power.give_up(page, now));
        for page in lost {
            self.put(page, [Content::GIVEN_UP; PAGE_SECTORS]);
        }
    }

    /// What a sector holds that is to hold `due` and was found to begin with `found`: where there might be several things, the one that
    /// begins so; nothing where that cannot be read.
    #[inline]
    pub(super) fn known(&self, due: Content, lba: Lba, found: u64) -> Option<Held> {
        if due == Content::GIVEN_UP || due == Content::SPOILED || due.is_copied() {
            return self.one_of(due, lba, found);
        }
        Some(Held { content: due, at: lba })
    }

    /// The contents of a page, of which no history is left.
    pub(super) fn put(&mut self, page: u64, contents: [Content; PAGE_SECTORS]) {
        if let Page::Mixed(index) = Page::decode(self.pages.get(page)) {
            self.mixed_free.push(index as u32);
        }
        let entry = if contents.iter().all(|content| *content == contents[0]) {
            contents[0].0
        } else if let Some(index) = self.mixed_free.pop() {
            self.mixed[index as usize] = contents;
            MIXED + index
        } else {
            self.mixed.push(contents);
            MIXED + index_of(self.mixed.len() - 1)
        };
        self.pages.set(page, entry);
    }

    /// Whoever drives the host reads everything before it writes anything again.
    pub(super) fn settle_uncertain(&self, access: Access, first: Lba, sectors: u32) {
        let Some(power) = &self.power else { return };
        let touched = super::pages(first, sectors).any(|(page, _)| power.is_uncertain(page));
        assert!(access == Access::Read || !touched, "a page is written before it was read after a power cut");
    }

    /// Sectors of an uncertain page, all within it, and so many words of each that was read; nothing where they cannot be.
    pub(super) fn judge_uncertain(
        &mut self,
        ticket: &Ticket,
        page: u64,
        mask: u8,
        read: Option<(&[u64], usize)>,
    ) -> Result<(), Mismatch> {
        let mut found = Found::default();
        let sectors = (0..PAGE_SECTORS).filter(|sector| mask & 1 << sector != 0);
        for (nth, position) in sectors.enumerate() {
            let sector = read.map(|(found, words)| &found[nth * words..(nth + 1) * words]);
            found[position] = self.judge_sector(ticket, page, position, sector)?;
        }
        let last = self.sectors - (page * PAGE_SECTORS as u64).min(self.sectors);
        let existing = if last >= PAGE_SECTORS as u64 { u8::MAX } else { (1 << last) - 1 };
        let power = self.power.as_mut().expect("it is uncertain");
        let alone = |alike: &Vec<Content>| if let [content] = alike[..] { Some(content) } else { None };
        let known = found.each_ref().map(alone);
        let known = match power.found(page, found, existing) {
            Ok(Some(contents)) => {
                self.put(page, contents);
                contents.map(Some)
            }
            Ok(None) => known,
            Err(broken) => {
                let (position, lba) = (broken.sector, Lba(page * PAGE_SECTORS as u64 + broken.sector as u64));
                let due: Vec<Held> = broken.due.iter().flat_map(|due| self.all(*due, lba)).collect();
                let nth = (mask & ((1 << position) - 1)).count_ones() as usize;
                let is_here = mask & 1 << position != 0;
                let word = read.filter(|_| is_here).map_or(0, |(found, words)| found[nth * words]);
                return Err(self.mismatch(ticket, lba, 0, word, read.map_or(1, |(_, words)| words), &due));
            }
        };
        // What nothing but a Copy can have left says what that had read.
        let here = known.into_iter().enumerate().filter(|(position, _)| mask & 1 << position != 0);
        for (nth, (_, content)) in here.enumerate() {
            if let (Some(content), Some((found, words))) = (content, read) {
                self.learn(content, found[nth * words]);
            }
        }
        Ok(())
    }

    /// What a sector of an uncertain page may be that was found so, or could not be read.
    fn judge_sector(
        &self,
        ticket: &Ticket,
        page: u64,
        position: usize,
        found: Option<&[u64]>,
    ) -> Result<Vec<Content>, Mismatch> {
        let lba = Lba(page * PAGE_SECTORS as u64 + position as u64);
        let due = self.power.as_ref().expect("it is uncertain").candidates(page, position);
        let words = found.map_or(1, <[u64]>::len);
        let begins =
            |content: Content, word: u64| self.known(content, lba, word).filter(|held| self.word(*held, 0) == word);
        let alike: Vec<Content> = match found {
            Some(found) => due.iter().copied().filter(|&content| begins(content, found[0]).is_some()).collect(),
            None => due.iter().copied().filter(|content| *content == Content::SPOILED).collect(),
        };
        let Some(&first) = alike.first() else {
            let due: Vec<Held> = due.iter().flat_map(|content| self.all(*content, lba)).collect();
            return Err(self.mismatch(ticket, lba, 0, found.map_or(0, |found| found[0]), words, &due));
        };
        if let Some(found) = found {
            let held = begins(first, found[0]).expect("it begins so");
            if let Some(word) = (1..words).find(|&word| found[word] != self.word(held, word)) {
                return Err(self.mismatch(ticket, lba, word, found[word], words, &[held]));
            }
        }
        Ok(alike)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Initial;
    use units::{QueueId, pattern};

    const Q: QueueId = QueueId(1);

    fn oracle(volatile: bool) -> Oracle {
        Oracle::new(64, Lba(0), Initial::Fresh).with_power_cuts(volatile, 8)
    }

    fn write(oracle: &mut Oracle, first: u64, sectors: u32) -> Ticket {
        oracle.submitted(Q, Access::Write, Lba(first), sectors)
    }

    /// The words that sectors hold after these writes, the last of which goes last; zeros where there is none.
    fn words(first: u64, sectors: u64, writes: &[&Ticket]) -> Vec<u64> {
        let of = |lba: u64| {
            let covers =
                |ticket: &&&Ticket| (ticket.first.0..ticket.first.0 + u64::from(ticket.sectors)).contains(&lba);
            writes.iter().rev().find(covers).map_or(0, |ticket| pattern(Lba(lba), ticket.write_number(), 0))
        };
        (first..first + sectors).map(of).collect()
    }

    fn read(oracle: &mut Oracle, first: u64, sectors: u32, found: &[u64]) -> Result<(), Mismatch> {
        let ticket = oracle.submitted(Q, Access::Read, Lba(first), sectors);
        oracle.completed(&ticket, found)
    }

    fn read_through(oracle: &mut Oracle, first: u64, found: &[u64]) {
        let mut ticket = oracle.submitted(Q, Access::Read, Lba(first), found.len() as u32);
        ticket.through = true;
        oracle.completed(&ticket, found).unwrap();
    }

    #[test]
    fn without_a_volatile_cache_an_answered_write_lasts() {
        let mut oracle = oracle(false);
        let one = write(&mut oracle, 0, 8);
        oracle.completed(&one, &[]).unwrap();
        oracle.power_cut();
        read(&mut oracle, 0, 8, &[0; 8]).unwrap_err();
        read(&mut oracle, 0, 8, &words(0, 8, &[&one])).unwrap();
    }

    #[test]
    fn a_write_shows_in_all_of_the_sectors_that_are_written_together_or_in_none() {
        let mut oracle = Oracle::new(64, Lba(0), Initial::Fresh).with_power_cuts(true, 2);
        let one = write(&mut oracle, 0, 8);
        oracle.power_cut();
        let written = words(0, 8, &[&one]);
        let torn = |at: usize| [&written[..at], &[0; 8][at..]].concat();
        read(&mut oracle, 0, 8, &torn(3)).unwrap_err();
        read(&mut oracle, 0, 8, &torn(4)).unwrap();
        let two = write(&mut oracle, 8, 8);
        oracle.power_cut();
        let whole = words(8, 8, &[&two]);
        read(&mut oracle, 8, 8, &[&[0; 6], &whole[6..]].concat()).unwrap();
    }

    /// They may be more than eight, read one by one and in any order.
    #[test]
    fn a_long_write_shows_in_all_of_a_long_page_or_in_none() {
        for shown in [[true; 4], [false; 4], [true, true, false, true], [false, false, false, true]] {
            let mut oracle = Oracle::new(128, Lba(0), Initial::Fresh).with_power_cuts(true, 32);
            // It goes on in the next page, which is another matter.
            let one = write(&mut oracle, 32, 40);
            oracle.power_cut();
            let holds = |at: usize| if shown[at] { words(32 + at as u64 * 8, 8, &[&one]) } else { vec![0; 8] };
            read(&mut oracle, 64, 8, &words(64, 8, &[&one])).unwrap();
            let judged = [3, 0, 2, 1].map(|at| read(&mut oracle, 32 + at as u64 * 8, 8, &holds(at)).is_ok());
            let is_whole = shown.iter().all(|here| *here == shown[0]);
            assert_eq!(judged.iter().all(|good| *good), is_whole, "{shown:?}");
        }
    }

    #[test]
    fn a_page_that_was_given_up_holds_what_it_might_have_held_until_it_is_written() {
        let mut oracle = oracle(true);
        let one = write(&mut oracle, 0, 8);
        oracle.completed(&one, &[]).unwrap();
        let since = oracle.flush_submitted();
        oracle.flushed(since);
        let two = write(&mut oracle, 0, 8);
        oracle.completed(&two, &[]).unwrap();
        oracle.power_cut();
        oracle.give_up(|page| page == 1);
        assert_eq!(oracle.uncertain(), 1, "another page was given up");
        oracle.give_up(|page| page == 0);
        assert_eq!(oracle.uncertain(), 0);
        read(&mut oracle, 0, 8, &[0; 8]).unwrap_err();
        read(&mut oracle, 0, 8, &words(0, 8, &[&one])).unwrap();
        read(&mut oracle, 0, 8, &words(0, 8, &[&two])).unwrap();
        let three = write(&mut oracle, 0, 4);
        oracle.completed(&three, &[]).unwrap();
        read(&mut oracle, 0, 8, &words(0, 8, &[&one])).unwrap_err();
        read(&mut oracle, 0, 8, &words(0, 8, &[&one, &three])).unwrap();
        oracle.power_cut();
        read(&mut oracle, 0, 8, &[0; 8]).unwrap_err();
        read(&mut oracle, 0, 8, &words(0, 8, &[&two, &three])).unwrap();
    }

    #[test]
    fn a_read_that_came_before_a_write_that_lasts_may_find_what_was_given_up() {
        let mut oracle = oracle(true);
        let one = write(&mut oracle, 0, 8);
        oracle.completed(&one, &[]).unwrap();
        oracle.power_cut();
        oracle.give_up(|page| page == 0);
        let early = oracle.submitted(QueueId(2), Access::Read, Lba(0), 8);
        let mut two = write(&mut oracle, 0, 8);
        two.through = true;
        oracle.completed(&two, &[]).unwrap();
        let late = oracle.submitted(QueueId(2), Access::Read, Lba(0), 8);
        oracle.completed(&late, &words(0, 8, &[&one])).unwrap_err();
        oracle.completed(&early, &words(0, 8, &[&one])).unwrap();
    }

    /// The write may never have reached the drive: what is read once the page can be read again may be older.
    #[test]
    fn a_flush_does_not_promise_what_was_given_up_before() {
        let mut oracle = oracle(true);
        let one = write(&mut oracle, 0, 8);
        oracle.power_cut();
        oracle.give_up(|page| page == 0);
        let since = oracle.flush_submitted();
        oracle.flushed(since);
        oracle.power_cut();
        assert_eq!(oracle.uncertain(), 1);
        read(&mut oracle, 0, 8, &words(0, 8, &[&one])).unwrap();
        oracle.power_cut();
        let two = write(&mut oracle, 8, 8);
        oracle.power_cut();
        oracle.give_up(|page| page == 1);
        let since = oracle.flush_submitted();
        oracle.flushed(since);
        oracle.power_cut();
        read(&mut oracle, 8, 8, &[0; 8]).unwrap();
        read(&mut oracle, 8, 8, &words(8, 8, &[&two])).unwrap_err();
    }

    #[test]
    fn with_one_it_lasts_once_flushed_or_written_through() {
        let mut oracle = oracle(true);
        let one = write(&mut oracle, 0, 8);
        oracle.completed(&one, &[]).unwrap();
        let two = write(&mut oracle, 8, 8);
        let since = oracle.flush_submitted();
        oracle.completed(&two, &[]).unwrap();
        oracle.flushed(since);
        let mut three = write(&mut oracle, 16, 8);
        three.through = true;
        oracle.completed(&three, &[]).unwrap();
        oracle.power_cut();
        assert_eq!(oracle.uncertain(), 1, "what was answered after the Flush went out");
        read(&mut oracle, 0, 8, &[0; 8]).unwrap_err();
        read(&mut oracle, 16, 8, &[0; 8]).unwrap_err();
        read(&mut oracle, 8, 8, &[0; 8]).unwrap();
        read(&mut oracle, 8, 8, &words(8, 8, &[&two])).unwrap_err();
    }

    #[test]
    fn what_a_read_with_force_unit_access_must_have_found_lasts() {
        let mut oracle = Oracle::new(64, Lba(0), Initial::Fresh).with_power_cuts(true, 4);
        let one = write(&mut oracle, 0, 16);
        oracle.completed(&one, &[]).unwrap();
        let late = write(&mut oracle, 16, 8);
        read_through(&mut oracle, 1, &words(1, 2, &[&one]));
        read_through(&mut oracle, 16, &words(16, 8, &[&late]));
        oracle.completed(&late, &[]).unwrap();
        oracle.power_cut();
        let holds = |from: usize| [&[0; 8][..from], &words(from as u64, 8 - from as u64, &[&one])].concat();
        read(&mut oracle, 0, 8, &holds(4)).unwrap_err();
        read(&mut oracle, 0, 8, &[&words(0, 4, &[&one])[..], &[0; 4]].concat()).unwrap();
        read(&mut oracle, 8, 8, &[0; 8]).unwrap();
        // It had not been answered when the read was.
        read(&mut oracle, 16, 8, &[0; 8]).unwrap();
    }

    #[test]
    fn a_read_with_force_unit_access_promises_nothing_of_what_came_before_a_cut() {
        let mut oracle = oracle(true);
        let one = write(&mut oracle, 0, 8);
        oracle.completed(&one, &[]).unwrap();
        oracle.power_cut();
        read_through(&mut oracle, 0, &words(0, 4, &[&one]));
        oracle.power_cut();
        read(&mut oracle, 0, 8, &[0; 8]).unwrap();
    }

    #[test]
    fn a_write_shows_in_all_its_sectors_of_a_page_or_in_none() {
        let mut oracle = oracle(true);
        let one = write(&mut oracle, 2, 4);
        let two = write(&mut oracle, 4, 4);
        oracle.power_cut();
        let mut torn = words(0, 8, &[&one]);
        torn[3] = 0;
        read(&mut oracle, 0, 8, &torn).unwrap_err();
        let mut lost = words(0, 8, &[&one, &two]);
        lost[5] = pattern(Lba(5), one.write_number(), 0);
        read(&mut oracle, 0, 8, &lost).unwrap_err();
        read(&mut oracle, 0, 8, &words(0, 8, &[&one, &two])).unwrap();
        // What a read has found is what there is.
        read(&mut oracle, 0, 8, &words(0, 8, &[&one])).unwrap_err();
    }

    #[test]
    fn of_two_answered_writes_an_older_one_cannot_come_back_behind_one_that_lasts() {
        let mut oracle = oracle(true);
        let one = write(&mut oracle, 0, 8);
        oracle.completed(&one, &[]).unwrap();
        let mut two = write(&mut oracle, 0, 4);
        two.through = true;
        oracle.completed(&two, &[]).unwrap();
        let three = write(&mut oracle, 4, 4);
        oracle.power_cut();
        read(&mut oracle, 0, 8, &words(0, 8, &[&one])).unwrap_err();
        read(&mut oracle, 0, 8, &words(0, 8, &[&one, &two, &three])).unwrap();
    }

    #[test]
    fn a_sector_that_was_torn_by_a_cut_shows_in_its_second_word() {
        let mut oracle = oracle(true);
        let one = write(&mut oracle, 0, 8);
        oracle.power_cut();
        let word = |at: u64| pattern(Lba(at / 2), one.write_number(), (at % 2) as u32);
        let whole: Vec<u64> = (0..16).map(word).collect();
        let mut torn = whole.clone();
        torn[9] = pattern(Lba(4), 0, 1);
        let wrong = read(&mut oracle, 0, 8, &torn).unwrap_err();
        assert_eq!((wrong.lba, wrong.word), (Lba(4), 1));
        read(&mut oracle, 0, 8, &whole).unwrap();
    }

    /// Block after block, each of which lasts by itself.
    #[test]
    fn what_a_read_of_a_part_has_found_is_what_there_is() {
        let mut oracle = Oracle::new(64, Lba(0), Initial::Fresh).with_power_cuts(true, 1);
        let one = write(&mut oracle, 0, 8);
        let two = write(&mut oracle, 0, 8);
        oracle.power_cut();
        read(&mut oracle, 0, 2, &words(0, 2, &[&one])).unwrap();
        read(&mut oracle, 1, 1, &words(1, 1, &[&two])).unwrap_err();
        read(&mut oracle, 1, 7, &words(1, 7, &[&one])).unwrap();
        read(&mut oracle, 0, 8, &words(0, 8, &[&one])).unwrap();
    }

    #[test]
    fn what_is_left_of_the_last_page_is_known_when_all_of_it_was_read() {
        let mut oracle = Oracle::new(11, Lba(0), Initial::Fresh).with_power_cuts(true, 8);
        let one = write(&mut oracle, 8, 3);
        oracle.power_cut();
        read(&mut oracle, 8, 2, &words(8, 2, &[&one])).unwrap();
        assert_eq!(oracle.uncertain(), 1, "one sector has not been read");
        read(&mut oracle, 10, 1, &words(10, 1, &[&one])).unwrap();
        assert_eq!(oracle.uncertain(), 0);
        read(&mut oracle, 8, 3, &[0; 3]).unwrap_err();
    }

    #[test]
    fn a_write_that_never_began_is_not_found_after_a_cut() {
        let mut oracle = oracle(true);
        let [one, two] = [(0, 8), (0, 4)].map(|(first, sectors)| write(&mut oracle, first, sectors));
        oracle.never_began(&one);
        oracle.power_cut();
        read(&mut oracle, 0, 8, &words(0, 8, &[&one])).unwrap_err();
        read(&mut oracle, 0, 8, &words(0, 8, &[&two])).unwrap();
    }

    #[test]
    fn a_certain_page_is_judged_as_before() {
        let mut oracle = oracle(false);
        let one = write(&mut oracle, 0, 3);
        oracle.completed(&one, &[]).unwrap();
        oracle.power_cut();
        assert_eq!(oracle.uncertain(), 0);
        read(&mut oracle, 0, 8, &words(0, 8, &[&one])).unwrap();
        oracle.power_cut();
        read(&mut oracle, 0, 8, &words(0, 8, &[&one])).unwrap();
    }
}
