//! The pages of a channel with their failures.

use super::draw::{Lot, bits, normal, share, wrong_bits};
use super::errors::Stress;
use super::settings::FaultSettings;
use crate::{Bch, Contents, Media, MediaFault, Oob};
use std::collections::BTreeSet;
use units::{BlockId, Ppn, SECTOR_BYTES, Span, Time};

/// Words of a sector's data.
const SECTOR_WORDS: usize = SECTOR_BYTES as usize / 8;

/// When and how a page is read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Reading {
    /// When.
    pub now: Time,
    /// 0 for the first try, then the level of the retry.
    pub level: u32,
}

/// What decoding a page came to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// All words are right, after so many corrections.
    Good {
        /// Bits corrected in the whole page.
        bits: u32,
        /// Bits corrected in the worst of its code words.
        worst: u32,
        /// Code words that had an error.
        words: u32,
        /// Whether the page is close to what the code corrects.
        weak: bool,
    },
    /// Some code word has more errors than the code corrects.
    Uncorrectable {
        /// Whether the page has got worse since it was programmed, so that others of its block are to be brought to safety.
        worsened: bool,
    },
}

/// A page that was read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PageRead {
    /// Its out-of-band entry, which is told even where the data cannot be; none for an erased page.
    pub oob: Option<Oob>,
    /// Whether the payload is what was written.
    pub verdict: Verdict,
}

impl PageRead {
    const CLEAN: Verdict = Verdict::Good { bits: 0, worst: 0, words: 0, weak: false };
}

/// How much oftener than right after it was programmed bits of a page come back wrong, at least, for its block to be rewritten: where they
/// always do, to write it anew would wear flash and help nothing, and lose other pages. Controllers know that of their flash by tables of
/// its wear.
const WORSENED: f64 = 1.25;

/// What is known of a block beyond its contents.
#[derive(Clone, Debug, Default)]
struct BlockState {
    reads: u32,
    /// When its pages were programmed, as far as they were since the power came on: those behind the last that was are not in it, and
    /// those that were before, or left out, have zero.
    programmed: Vec<Time>,
}

impl BlockState {
    fn program(&mut self, page: u32, now: Time) {
        self.programmed.resize(page as usize, Time::ZERO);
        self.programmed.push(now);
    }

    /// How long a page has lain there. One that was programmed before the power came on has since then.
    fn age(&self, page: u32, now: Time) -> Span {
        now.since(self.programmed.get(page as usize).copied().unwrap_or(Time::ZERO))
    }

    /// Makes it fresh, with the memory that it has.
    fn erase(&mut self) {
        self.reads = 0;
        self.programmed.clear();
    }
}

#[derive(Debug)]
struct Faults {
    settings: FaultSettings,
    seed: u64,
    /// Blocks from this one on do not fail: those of the journal.
    sound_from: BlockId,
    code: Bch,
    blocks: Vec<BlockState>,
    /// Blocks that were bad when the power was switched on. No firmware has a reason to use them.
    shunned: BTreeSet<BlockId>,
}

/// The pages of a channel, which may fail: bits come back wrong and are corrected as far as the code can, operations fail,
/// blocks are bad. What outlasts a power cut is the [`Contents`] inside: pages with their out-of-band entries, erase counts, and
/// the marks of bad blocks. How often blocks were read, and when pages were programmed, is counted anew after one.
///
/// With full payload the bits are really flipped in what was stored, and a BCH decoder puts them right; else the number of
/// errors is compared with what the code corrects. What is wrong with a page depends on the seed, the page, its cycle and
/// its stress alone: a page that cannot be read can still not be read at the next try.
///
/// A word with more errors than the code corrects can, once in t! times, decode to another word. Drives keep a checksum of a
/// page beside it for that; here what was stored is at hand and is compared.
#[derive(Debug)]
pub struct FaultyMedia {
    contents: Contents,
    faults: Option<Faults>,
    /// Whether firmware is expected to retire a block that stands no more erases.
    retires_worn: bool,
}

impl FaultyMedia {
    /// Pages that never fail.
    pub fn sound(contents: Contents) -> Self {
        FaultyMedia { contents, faults: None, retires_worn: false }
    }

    /// Pages that fail; the settings must have passed [`FaultSettings::validate`]. Blocks from `sound_from` on do not fail.
    pub fn failing(contents: Contents, settings: FaultSettings, seed: u64, sound_from: BlockId) -> Self {
        let code = Bch::new(settings.code_data, settings.correctable).expect("the settings were validated");
        let shape = contents.geometry().shape();
        let blocks = contents.geometry().block_count() / shape.channels;
        let blocks = vec![BlockState::default(); blocks as usize];
        let from_factory = |block: BlockId| block < sound_from && settings.is_bad_from_factory(seed, block);
        let own = (0..contents.geometry().block_count()).map(BlockId).filter(|&block| contents.has(block));
        let shunned = own.filter(|&block| contents.is_bad(block) || from_factory(block)).collect();
        let faults = Some(Faults { settings, seed, sound_from, code, blocks, shunned });
        FaultyMedia { contents, faults, retires_worn: true }
    }

    /// Where nothing fails, but blocks that stand no more erases are the firmware's to retire.
    pub fn retiring_worn(self) -> Self {
        FaultyMedia { retires_worn: true, ..self }
    }

    /// What the pages hold, without errors.
    #[inline]
    pub fn contents(&self) -> &Contents {
        &self.contents
    }

    /// Takes the contents out.
    pub fn into_contents(self) -> Contents {
        self.contents
    }

    /// How pages fail; none if they do not.
    #[inline]
    pub fn settings(&self) -> Option<&FaultSettings> {
        self.faults.as_ref().map(|faults| &faults.settings)
    }

    /// Whether a block was found bad: at the factory, or because an operation failed.
    pub fn is_bad(&self, block: BlockId) -> bool {
        let Some(faults) = &self.faults else { return self.contents.is_bad(block) };
        self.contents.is_bad(block)
            || block < faults.sound_from && faults.settings.is_bad_from_factory(faults.seed, block)
    }

    /// Whether a refusal is one that flash comes to by itself, and not a fault of who asked.
    pub fn is_natural(&self, fault: MediaFault) -> bool {
        match fault {
            MediaFault::ProgramFailed { .. } | MediaFault::EraseFailed { .. } => true,
            MediaFault::WornOut { .. } => self.retires_worn,
            MediaFault::Unreadable { .. } => self.faults.is_some(),
            _ => false,
        }
    }

    /// Reads a page.
    ///
    /// # Errors
    /// A page that holds nothing that could be corrected: torn by a program or an erase that failed.
    pub fn read(&mut self, ppn: Ppn, reading: Reading, payload: &mut [u64]) -> Result<PageRead, MediaFault> {
        let oob = match self.contents.read(ppn, payload) {
            // Its store does not hold what it wrote: the entry is known, the data are lost.
            Err(MediaFault::Unreadable { .. }) if self.contents.entry(ppn).is_some() => {
                let verdict = Verdict::Uncorrectable { worsened: true };
                return Ok(PageRead { oob: self.contents.entry(ppn), verdict });
            }
            other => other,
        };
        let Some(faults) = self.faults.as_mut() else {
            return Ok(PageRead { oob: oob?, verdict: PageRead::CLEAN });
        };
        let block = self.contents.geometry().block_of(ppn);
        if block >= faults.sound_from {
            return Ok(PageRead { oob: oob?, verdict: PageRead::CLEAN });
        }
        let (_, index) = self.contents.geometry().block_in_channel(block);
        faults.blocks[index].reads = faults.blocks[index].reads.saturating_add(1);
        let Some(oob) = oob? else { return Ok(PageRead { oob: None, verdict: PageRead::CLEAN }) };
        let cycle = self.contents.erase_count(block)?;
        let page = self.contents.geometry().shape().page;
        let words = (page.0 / faults.settings.code_data.0) as u32;
        let age = faults.blocks[index].age(self.contents.geometry().page_in_block(ppn), reading.now);
        let stress = faults.stress(index, cycle, age, self.contents.is_preconditioned(ppn));
        let rate = faults.rate(block, stress, reading.level);
        let fresh = Stress { days: 0.0, reads: 0.0, ..stress };
        let has_worsened = || faults.settings.weak > 0.0 && rate >= WORSENED * faults.rate(block, fresh, reading.level);
        let draws = Draws { seed: faults.seed, ppn, cycle };
        let (mut total, mut worst, mut touched) = (0, 0, 0);
        let full = self.contents.keeps_every_byte(ppn);
        let is_plain = payload.len() as u64 * 8 == page.0;
        let apart = if is_plain { SECTOR_WORDS } else { self.contents.words_from_sector_to_sector() };
        for word in 0..words {
            let wrong = wrong_bits(faults.code.word_bits(), rate, draws.quality(word));
            let corrected = if full && wrong > 0 {
                faults.decode(payload, apart, word, wrong, draws)
            } else {
                (wrong <= faults.code.correctable()).then_some(wrong)
            };
            let Some(corrected) = corrected else {
                return Ok(PageRead { oob: Some(oob), verdict: Verdict::Uncorrectable { worsened: has_worsened() } });
            };
            total += corrected;
            worst = worst.max(corrected);
            touched += u32::from(corrected > 0);
        }
        let limit = faults.settings.weak * f64::from(faults.code.correctable());
        let weak = f64::from(worst) >= limit && has_worsened();
        Ok(PageRead { oob: Some(oob), verdict: Verdict::Good { bits: total, worst, words: touched, weak } })
    }

    /// Programs a page.
    ///
    /// # Errors
    /// As [`Contents`]; a block that was bad when the power was switched on; and a program that fails, after which the page cannot be
    /// read.
    pub fn program(&mut self, ppn: Ppn, now: Time, oob: Oob, payload: &[u64]) -> Result<(), MediaFault> {
        let geometry = self.contents.geometry();
        let failing = self.faults.as_mut().map(|faults| (geometry.block_of(ppn), faults));
        if let Some((block, faults)) = failing.filter(|(block, faults)| *block < faults.sound_from) {
            let ((_, index), page) = (geometry.block_in_channel(block), geometry.page_in_block(ppn));
            faults.admit(block)?;
            let cycle = self.contents.erase_count(block)?;
            if faults.fails(faults.settings.program_failures, ppn.0, cycle, Lot::Program) {
                self.contents.tear_program(ppn)?;
                self.contents.mark_bad(block)?;
                return Err(MediaFault::ProgramFailed { ppn });
            }
            faults.blocks[index].program(page, now);
        }
        self.contents.program(ppn, oob, payload)
    }

    /// Erases a block.
    ///
    /// # Errors
    /// As [`Contents`]; a block that was bad when the power was switched on; and an erase that fails, after which nothing of the block
    /// can be read or programmed. A block that fails, or stands no more erases, is marked as bad.
    pub fn erase(&mut self, block: BlockId) -> Result<(), MediaFault> {
        if let Some(faults) = self.faults.as_mut().filter(|faults| block < faults.sound_from) {
            let (_, index) = self.contents.geometry().block_in_channel(block);
            faults.admit(block)?;
            let cycle = self.contents.erase_count(block)?;
            if faults.fails(faults.settings.erase_failures, block.0, cycle, Lot::Erase) {
                self.contents.tear_erase(block)?;
                self.contents.mark_bad(block)?;
                return Err(MediaFault::EraseFailed { block });
            }
            faults.blocks[index].erase();
        }
        let erased = self.contents.erase(block);
        if self.retires_worn && matches!(erased, Err(MediaFault::WornOut { .. })) {
            // Its pages are as they were; what retires it must be known when the power comes back.
            self.contents.mark_bad(block)?;
        }
        erased
    }
}

/// What the draws of a page depend on.
#[derive(Clone, Copy, Debug)]
struct Draws {
    seed: u64,
    ppn: Ppn,
    cycle: u32,
}

impl Draws {
    fn quality(self, word: u32) -> f64 {
        share(self.seed, self.ppn.0, self.cycle, Lot::CodeWord(word))
    }

    /// Which bits of a code word are wrong. Of more errors the first are those of fewer.
    fn wrong(self, word: u32, count: u32, of: u32) -> BTreeSet<u32> {
        let mut wrong = BTreeSet::new();
        for nth in 0.. {
            if wrong.len() == count.min(of) as usize {
                break;
            }
            wrong.insert((bits(self.seed, self.ppn.0, self.cycle, Lot::Bit(word, nth)) >> 8) as u32 % of);
        }
        wrong
    }
}

impl Faults {
    fn fails(&self, chance: f64, place: u32, cycle: u32, lot: Lot) -> bool {
        chance > 0.0 && share(self.seed, place, cycle, lot) < chance
    }

    fn admit(&self, block: BlockId) -> Result<(), MediaFault> {
        if self.shunned.contains(&block) { Err(MediaFault::BadBlock { block }) } else { Ok(()) }
    }

    /// What a page of a block has been through. `days` are those of pages that preconditioning left: what was programmed since, by an
    /// earlier power cycle of this drive at the longest, has lain there since the power came on.
    fn stress(&self, index: usize, cycle: u32, age: Span, is_preconditioned: bool) -> Stress {
        let settings = &self.settings;
        let before = if is_preconditioned { settings.days } else { 0.0 };
        Stress {
            cycles: f64::from(settings.cycles) + f64::from(cycle),
            days: before + age.secs_f64() * settings.days_per_second,
            // The read under way disturbs those after it.
            reads: f64::from(self.blocks[index].reads.saturating_sub(1)),
        }
    }

    /// The chance that a bit of a page of a block comes back wrong at a level of the retry table.
    fn rate(&self, block: BlockId, stress: Stress, level: u32) -> f64 {
        let settings = &self.settings;
        let of_block = if settings.block_sigma > 0.0 {
            let (one, other) = (share(self.seed, block.0, 0, Lot::Block), share(self.seed, block.0, 1, Lot::Block));
            libm::exp(settings.block_sigma * normal(one, other))
        } else {
            1.0
        };
        (settings.errors.rate(stress) * of_block * libm::pow(settings.retry.factor, f64::from(level))).min(0.5)
    }

    /// Flips the wrong bits of a code word in the payload and decodes it; the bits corrected, or none if it cannot be.
    /// From one sector to the next it is `apart` words; what lies between their data is no part of any code word.
    fn decode(&self, payload: &mut [u64], apart: usize, word: u32, wrong: u32, draws: Draws) -> Option<u32> {
        let bytes = self.code.data_bytes();
        let first = word as usize * bytes;
        let place = |at: usize| at / 8 / SECTOR_WORDS * apart + at / 8 % SECTOR_WORDS;
        let stored: Vec<u8> = (first..first + bytes).map(|at| payload[place(at)].to_le_bytes()[at % 8]).collect();
        let mut parity = vec![0; self.code.parity_bytes()];
        self.code.encode(&stored, &mut parity);
        let mut read = stored.clone();
        for bit in draws.wrong(word, wrong, self.code.word_bits()) {
            self.code.flip(&mut read, &mut parity, bit);
        }
        let corrected = self.code.decode(&mut read, &mut parity);
        for (at, byte) in (first..).zip(&read) {
            let shift = at % 8 * 8;
            let kept = &mut payload[place(at)];
            *kept = *kept & !(0xff << shift) | u64::from(*byte) << shift;
        }
        corrected.ok().filter(|_| read == stored)
    }
}
