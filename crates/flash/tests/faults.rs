//! Flash that fails: errors grow with stress, are corrected up to what the code can and told beyond that, and come back alike.

use flash::*;
use units::*;

const BLOCK: BlockId = BlockId(0);

fn geometry() -> Geometry {
    let shape = Shape {
        channels: 1,
        packages_per_channel: 1,
        dies_per_package: 1,
        planes_per_die: 2,
        blocks_per_plane: 8,
        pages_per_block: 16,
        page: Bytes(1024),
        oob: Bytes(224),
        kind: CellKind::Mlc,
    };
    Geometry::new(shape).unwrap()
}

/// Errors by reads alone: `disturb` times the reads so far.
fn settings() -> FaultSettings {
    FaultSettings {
        errors: ErrorModel { base: 1e-3, disturb: 1e-3, disturb_exponent: 1.0, ..ErrorModel::default() },
        code_data: Bytes(512),
        correctable: 24,
        retry: ReadRetry { levels: 3, factor: 0.5 },
        weak: 0.5,
        ..FaultSettings::sound()
    }
}

fn media(settings: FaultSettings, sector_words: u32, seed: u64) -> FaultyMedia {
    let geometry = geometry();
    settings.validate(&geometry, Bytes(0)).unwrap();
    let contents = Contents::for_channel(&geometry, ChannelId(0), sector_words, 1000);
    FaultyMedia::failing(contents, settings, seed, BlockId(geometry.block_count()))
}

fn fill(media: &mut FaultyMedia, payload: &[u64]) {
    for page in 0..16 {
        let oob = Oob { lpn: Lpn(page), owner: 1, sequence: u64::from(page) };
        media.program(geometry().page(BLOCK, page), Time::ZERO, oob, payload).unwrap();
    }
}

const FIRST: Reading = Reading { now: Time::ZERO, level: 0 };

/// Reads a block's pages again and again until none can be read; the verdicts.
fn wear_out(media: &mut FaultyMedia, payload: &[u64]) -> Vec<Verdict> {
    let mut verdicts = Vec::new();
    for round in 0..40 {
        let page = geometry().page(BLOCK, round % 16);
        let mut read = vec![0; payload.len()];
        let found = media.read(page, FIRST, &mut read).unwrap();
        assert_eq!(found.oob.map(|oob| oob.lpn), Some(Lpn(round % 16)), "the entry is always told");
        if matches!(found.verdict, Verdict::Good { .. }) {
            assert!(read == payload, "what is not given up is right");
        }
        verdicts.push(found.verdict);
    }
    verdicts
}

#[test]
fn full_pages_are_decoded_and_agree_with_the_count() {
    let payload: Vec<u64> = (0..128).map(|word| pattern(Lba(9), 4, word)).collect();
    let (mut full, mut counted) = (media(settings(), 64, 3), media(settings(), 1, 3));
    fill(&mut full, &payload);
    fill(&mut counted, &[5, 6]);
    let verdicts = wear_out(&mut full, &payload);
    assert_eq!(verdicts, wear_out(&mut counted, &[5, 6]), "the decoder corrects what the code can");
    let corrected =
        verdicts.iter().filter(|verdict| matches!(verdict, Verdict::Good { bits, .. } if *bits > 0)).count();
    let weak = verdicts.iter().filter(|verdict| matches!(verdict, Verdict::Good { weak: true, .. })).count();
    assert!(corrected > 3 && weak > 0 && weak < corrected, "{verdicts:?}");
    assert_eq!(verdicts.last(), Some(&Verdict::Uncorrectable { worsened: true }));
}

#[test]
fn retry_levels_bring_pages_back_and_another_seed_fails_otherwise() {
    let mut worn = media(settings(), 1, 3);
    fill(&mut worn, &[5, 6]);
    let page = geometry().page(BLOCK, 0);
    let read = |media: &mut FaultyMedia, level| {
        media.read(page, Reading { now: Time::ZERO, level }, &mut [0; 2]).unwrap().verdict
    };
    // From then on some 70 bits of each word are wrong, and 9 at the last level; 24 are corrected.
    for _ in 0..16 {
        read(&mut worn, 0);
    }
    assert_eq!(read(&mut worn, 0), Verdict::Uncorrectable { worsened: true });
    assert_eq!(read(&mut worn, 0), Verdict::Uncorrectable { worsened: true }, "an error does not go away");
    assert!(matches!(read(&mut worn, 3), Verdict::Good { .. }), "an eighth of the rate");
    let run = |seed| {
        let mut media = media(settings(), 1, seed);
        fill(&mut media, &[5, 6]);
        wear_out(&mut media, &[5, 6])
    };
    assert_eq!(run(3), run(3));
    assert_ne!(run(3), run(4));
}

/// To rewrite a block helps what got worse in it, and not what was never better.
#[test]
fn only_what_got_worse_asks_for_its_block_to_be_rewritten() {
    let lost = |base, weak| {
        let errors = ErrorModel { base, ..settings().errors };
        let mut worn = media(FaultSettings { errors, weak, ..settings() }, 1, 3);
        fill(&mut worn, &[5, 6]);
        let mut verdicts = wear_out(&mut worn, &[5, 6]);
        verdicts.retain(|verdict| !matches!(verdict, Verdict::Good { weak: false, .. }));
        verdicts
    };
    let of = |worsened| Verdict::Uncorrectable { worsened };
    assert_eq!(lost(0.3, 0.5), [of(false); 40], "it came back so at once");
    assert!(lost(1e-3, 0.5).contains(&of(true)));
    let never = lost(1e-3, 0.0);
    assert!(never.contains(&of(false)) && !never.contains(&of(true)), "{never:?}");
}

#[test]
fn an_erase_makes_a_block_fresh_and_blocks_kept_sound_never_fail() {
    let mut worn = media(settings(), 1, 3);
    fill(&mut worn, &[5, 6]);
    wear_out(&mut worn, &[5, 6]);
    worn.erase(BLOCK).unwrap();
    fill(&mut worn, &[5, 6]);
    let read = worn.read(geometry().page(BLOCK, 0), FIRST, &mut [0; 2]).unwrap();
    assert!(matches!(read.verdict, Verdict::Good { .. }));
    let contents = Contents::for_channel(&geometry(), ChannelId(0), 1, 1000);
    let always = FaultSettings { program_failures: 1.0, erase_failures: 1.0, factory_bad: 1.0, ..settings() };
    let mut sound = FaultyMedia::failing(contents, always, 3, BLOCK);
    fill(&mut sound, &[5, 6]);
    let clean = Verdict::Good { bits: 0, worst: 0, words: 0, weak: false };
    assert!(wear_out(&mut sound, &[5, 6]).iter().all(|verdict| *verdict == clean));
    assert_eq!((sound.erase(BLOCK), sound.is_bad(BLOCK)), (Ok(()), false));
}

#[test]
fn data_decay_with_days() {
    let errors = ErrorModel { retention: 1e-3, retention_exponent: 1.0, ..ErrorModel::default() };
    let aged = FaultSettings { errors, days_per_second: 1.0, ..settings() };
    let mut media = media(aged, 1, 3);
    fill(&mut media, &[5, 6]);
    let bits_after = |seconds| {
        let now = Time::ZERO + Span::from_secs(seconds);
        match media.read(geometry().page(BLOCK, 4), Reading { now, level: 0 }, &mut [0; 2]).unwrap().verdict {
            Verdict::Good { bits, .. } => bits,
            Verdict::Uncorrectable { .. } => u32::MAX,
        }
    };
    let bits = [0, 1, 2, 100].map(bits_after);
    assert!(bits[0] == 0 && bits[1] < bits[2] && bits[3] == u32::MAX && bits.is_sorted(), "{bits:?}");
}

/// Every page of a channel holds the page of its number.
#[derive(Debug)]
struct Same;

impl Labels for Same {
    fn label(&self, ppn: Ppn) -> Lpn {
        Lpn(ppn.0)
    }
}

/// A block may be filled over a long time: its last pages are as good as those of a block that was begun when they were written.
#[test]
fn a_page_is_as_old_as_its_own_program() {
    let errors = ErrorModel { base: 2e-4, retention: 5e-4, retention_exponent: 1.0, ..ErrorModel::default() };
    let settings = FaultSettings { errors, days_per_second: 1.0, correctable: 64, ..settings() };
    let day = |day| Time::ZERO + Span::from_secs(day);
    // Two pages that were there before, then one a day from the tenth on; page 4 is left out.
    let programmed = [(2, 10), (3, 11), (5, 12), (6, 13)];
    let contents = || {
        let mut contents = Contents::for_channel(&geometry(), ChannelId(0), 1, 1000);
        contents.follow(std::sync::Arc::new(Same));
        contents.precondition(BLOCK, 2).unwrap();
        contents
    };
    let bits = |media: &mut FaultyMedia, page, now| {
        let read = media.read(geometry().page(BLOCK, page), Reading { now, level: 0 }, &mut [0; 2]).unwrap();
        let Verdict::Good { bits, weak, .. } = read.verdict else { panic!("page {page}: {read:?}") };
        (bits, weak)
    };
    let program = |media: &mut FaultyMedia, page, now| {
        let oob = Oob { lpn: Lpn(page), owner: 1, sequence: 1 };
        media.program(geometry().page(BLOCK, page), now, oob, &[5, 6]).unwrap();
    };
    let mut media = FaultyMedia::failing(contents(), settings, 3, BlockId(16));
    programmed.iter().for_each(|&(page, on)| program(&mut media, page, day(on)));
    for (page, on) in programmed {
        // The same page of a block that was begun with it.
        let mut alone = FaultyMedia::failing(contents(), settings, 3, BlockId(16));
        program(&mut alone, page, Time::ZERO);
        assert_eq!(bits(&mut media, page, day(14)), bits(&mut alone, page, day(14 - on)), "page {page}");
    }
    // What was there before has lain there since the power came on.
    let (old, young) = (bits(&mut media, 1, day(14)), bits(&mut media, 6, day(14)));
    assert!(old.0 > 4 * young.0 && !young.1, "{old:?} {young:?}");
    media.erase(BLOCK).unwrap();
    program(&mut media, 0, day(20));
    assert!(bits(&mut media, 0, day(20)).0 <= young.0, "an erase makes all of it new");
}

#[test]
fn programs_and_erases_fail_and_leave_nothing_to_be_read() {
    let mut media = media(FaultSettings { program_failures: 0.1, erase_failures: 0.2, ..settings() }, 1, 5);
    let (mut failed, mut erases) = (0, 0);
    for block in (0..16).map(BlockId) {
        let mut bad = false;
        for page in (0..16).map(|page| geometry().page(block, page)) {
            let oob = Oob { lpn: Lpn(1), owner: 0, sequence: 0 };
            match media.program(page, Time::ZERO, oob, &[1, 2]) {
                Ok(()) => assert!(media.read(page, FIRST, &mut [0; 2]).unwrap().oob.is_some()),
                Err(fault) => {
                    assert_eq!(fault, MediaFault::ProgramFailed { ppn: page });
                    assert!(media.is_natural(fault));
                    assert_eq!(media.read(page, FIRST, &mut [0; 2]), Err(MediaFault::Unreadable { ppn: page }));
                    (failed, bad) = (failed + 1, true);
                }
            }
        }
        assert_eq!(media.is_bad(block), bad);
        if let Err(fault) = media.erase(block) {
            assert_eq!(fault, MediaFault::EraseFailed { block });
            assert!(media.is_bad(block));
            assert!(media.read(geometry().page(block, 0), FIRST, &mut [0; 2]).is_err());
            erases += 1;
        }
    }
    // Of 256 programs and 16 erases.
    assert!((10..45).contains(&failed) && (1..9).contains(&erases), "{failed} programs, {erases} erases");
}

/// Another seed draws anew, and not what the first one drew at other places: of many seeds the numbers of failures are spread as
/// those of independent draws are.
#[test]
fn failures_of_many_seeds_are_spread_as_independent_draws_are() {
    const SEEDS: u64 = 64;
    const BLOCKS: u32 = 16_384;
    let chance = 0.2;
    let spread = |count: &dyn Fn(u64) -> u32, draws: f64| {
        let counts: Vec<f64> = (0..SEEDS).map(|seed| f64::from(count(seed))).collect();
        let mean = counts.iter().sum::<f64>() / SEEDS as f64;
        let variance = counts.iter().map(|count| (count - mean) * (count - mean)).sum::<f64>() / (SEEDS - 1) as f64;
        let expected = draws * chance * (1.0 - chance);
        // The mean of 64 is known to an eighth of a standard deviation, the variance to a sixth.
        assert!((mean - draws * chance).abs() < expected.sqrt() / 2.0, "{mean} of {draws}");
        assert!((0.5..2.0).contains(&(variance / expected)), "variance {variance}, expected {expected}: {counts:?}");
    };
    let failing = FaultSettings { program_failures: chance, factory_bad: chance, ..settings() };
    let programs = |seed| {
        let contents = Contents::for_channel(&geometry(), ChannelId(0), 1, 1000);
        let settings = FaultSettings { factory_bad: 0.0, ..failing };
        let mut media = FaultyMedia::failing(contents, settings, seed, BlockId(16));
        let pages = (0..16).flat_map(|block| (0..16).map(move |page| geometry().page(BlockId(block), page)));
        let oob = Oob { lpn: Lpn(1), owner: 0, sequence: 0 };
        pages.filter(|&page| media.program(page, Time::ZERO, oob, &[1, 2]).is_err()).count() as u32
    };
    spread(&programs, 256.0);
    let bad = |seed| (0..BLOCKS).filter(|&block| failing.is_bad_from_factory(seed, BlockId(block))).count() as u32;
    spread(&bad, f64::from(BLOCKS));
}

#[test]
fn a_block_that_was_bad_when_the_power_was_switched_on_is_refused() {
    let mut contents = Contents::for_channel(&geometry(), ChannelId(0), 1, 1000);
    contents.mark_bad(BlockId(3)).unwrap();
    let mut media = FaultyMedia::failing(contents, settings(), 1, BlockId(16));
    let (oob, fault) = (Oob { lpn: Lpn(1), owner: 0, sequence: 0 }, MediaFault::BadBlock { block: BlockId(3) });
    assert_eq!(media.program(geometry().page(BlockId(3), 0), Time::ZERO, oob, &[1, 2]), Err(fault));
    assert_eq!(media.erase(BlockId(3)), Err(fault));
    assert!(!media.is_natural(fault), "firmware has no reason to use it");
    media.program(geometry().page(BlockId(2), 0), Time::ZERO, oob, &[1, 2]).unwrap();
}

/// As one whose erase fails: that it is used no more outlasts the power, and what it holds can be read.
#[test]
fn a_block_that_is_to_be_retired_for_it_stands_no_more_erases_is_marked_as_bad() {
    let contents = || Contents::for_channel(&geometry(), ChannelId(0), 1, 2);
    let sound = FaultyMedia::sound(contents());
    let failing = FaultyMedia::failing(contents(), settings(), 1, BlockId(16));
    for (mut media, retires) in
        [(sound.retiring_worn(), true), (failing, true), (FaultyMedia::sound(contents()), false)]
    {
        let (page, oob) = (geometry().page(BlockId(3), 0), Oob { lpn: Lpn(1), owner: 0, sequence: 0 });
        for _ in 0..2 {
            media.program(page, Time::ZERO, oob, &[1, 2]).unwrap();
            media.erase(BlockId(3)).unwrap();
        }
        media.program(page, Time::ZERO, oob, &[1, 2]).unwrap();
        assert!(!media.is_bad(BlockId(3)), "it has not been asked for another");
        let fault = MediaFault::WornOut { block: BlockId(3), limit: 2 };
        assert_eq!((media.erase(BlockId(3)), media.is_natural(fault)), (Err(fault), retires));
        assert_eq!(media.is_bad(BlockId(3)), retires);
        assert_eq!(media.read(page, FIRST, &mut [0; 2]).unwrap().oob, Some(oob));
    }
}

#[test]
fn settings_that_cannot_be_name_their_field() {
    let field = |settings: FaultSettings| settings.validate(&geometry(), Bytes(0)).unwrap_err().field;
    assert_eq!(field(FaultSettings { code_data: Bytes(384), ..settings() }), "code_data_bytes");
    assert_eq!(field(FaultSettings { correctable: 0, ..settings() }), "code_correctable");
    assert_eq!(field(FaultSettings { correctable: 80, ..settings() }), "code_correctable");
    assert_eq!(field(FaultSettings { program_failures: 1.5, ..settings() }), "program_failures");
    assert_eq!(field(FaultSettings { days: f64::NAN, ..settings() }), "days");
    assert_eq!(field(FaultSettings { retry: ReadRetry { levels: 1, factor: 0.0 }, ..settings() }), "retry_factor");
    assert_eq!(field(FaultSettings { retry: ReadRetry { levels: 65, factor: 1.0 }, ..settings() }), "retry_levels");
    // The ends of a range are in it, as its message says.
    let errors = ErrorModel { base: 0.5, ..ErrorModel::default() };
    let retry = ReadRetry { levels: 64, factor: 1.0 };
    let most = FaultSettings { errors, days: 1e5, block_sigma: 10.0, retry, weak: 1.0, factory_bad: 1.0, ..settings() };
    assert_eq!(most.validate(&geometry(), Bytes(0)), Ok(()));
}

/// What a store was told, by page and block, as a file would keep it.
#[derive(Debug, Default)]
struct Kept {
    pages: std::collections::BTreeMap<u32, (StoredPage, Vec<u64>)>,
    blocks: std::collections::BTreeMap<u32, StoredBlock>,
}

#[derive(Clone, Debug)]
#[expect(clippy::disallowed_types, reason = "the test looks into the store that it gave away")]
struct Keeping(std::sync::Arc<std::sync::Mutex<Kept>>);

impl PageStore for Keeping {
    fn write(&mut self, ppn: Ppn, page: StoredPage, payload: &[u64]) -> Result<(), StoreFailed> {
        self.0.lock().unwrap().pages.insert(ppn.0, (page, payload.to_vec()));
        Ok(())
    }
    fn read(&mut self, ppn: Ppn, payload: &mut [u64]) -> Result<(), StoreFailed> {
        let kept = self.0.lock().unwrap();
        let (_, stored) = kept.pages.get(&ppn.0).ok_or(StoreFailed)?;
        payload.copy_from_slice(stored);
        Ok(())
    }
    fn set_block(&mut self, block: BlockId, state: StoredBlock) -> Result<(), StoreFailed> {
        self.0.lock().unwrap().blocks.insert(block.0, state);
        Ok(())
    }
}

#[test]
fn what_a_store_was_told_is_the_same_channel_again() {
    let kept = Keeping(Default::default());
    let fresh = || Contents::for_channel(&geometry(), ChannelId(0), 1, 1000).kept_in(Box::new(kept.clone()));
    let failing = FaultSettings { program_failures: 0.1, erase_failures: 0.3, ..settings() };
    let mut media = FaultyMedia::failing(fresh(), failing, 5, BlockId(16));
    for round in 0..3u64 {
        for block in (0..16).map(BlockId) {
            for page in (0..12).map(|page| geometry().page(block, page)) {
                let oob = Oob { lpn: Lpn(page.0), owner: 2, sequence: round };
                let _ = media.program(page, Time::ZERO, oob, &[round, u64::from(page.0)]);
            }
            if round < 2 {
                let _ = media.erase(block);
            }
        }
    }
    let mut restored = fresh();
    let kept = kept.0.lock().unwrap();
    for block in 0..16 {
        let state = kept.blocks.get(&block).copied().unwrap_or_default();
        restored.restore_block(BlockId(block), state).unwrap();
        for (page, (stored, _)) in kept.pages.range(block * 16..(block + 1) * 16) {
            if stored.erases == state.erases && !state.torn {
                restored.restore_page(Ppn(*page), *stored).unwrap();
            }
        }
    }
    let damaged = StoredPage { check: 1, mark: 5, ..StoredPage::default() };
    let unwritten = geometry().page(BlockId(15), 15);
    assert_eq!(fresh().restore_page(unwritten, damaged), Err(MediaFault::Unreadable { ppn: unwritten }));
    drop(kept);
    let mut before = media.into_contents();
    for block in (0..16).map(BlockId) {
        assert_eq!(before.is_bad(block), restored.is_bad(block), "{block}");
        assert_eq!(before.erase_count(block), restored.erase_count(block), "{block}");
        assert_eq!(before.written_pages(block), restored.written_pages(block), "{block}");
        for page in (0..16).map(|page| geometry().page(block, page)) {
            let (mut one, mut other) = ([0; 2], [0; 2]);
            assert_eq!(before.read(page, &mut one), restored.read(page, &mut other), "{page}");
            assert_eq!(one, other);
        }
    }
}

/// Share of ones in stored words.
fn ones(words: &[u64]) -> f64 {
    words.iter().map(|word| f64::from(word.count_ones())).sum::<f64>() / (words.len() * 64) as f64
}

#[test]
fn cells_hold_scrambled_data_and_reads_return_what_was_written() {
    let words = geometry().shape().page.0 as usize / 8;
    let patterns = [0, u64::MAX, 0x0101_0101_0101_0101, 0x6161_6161_6161_6161];
    for errors in [false, true] {
        let kept = Keeping(Default::default());
        let contents = Contents::for_channel(&geometry(), ChannelId(0), 64, 1000).scrambling();
        let contents = contents.kept_in(Box::new(kept.clone()));
        let mut media = match errors {
            true => FaultyMedia::failing(contents, settings(), 5, BlockId(16)),
            false => FaultyMedia::sound(contents),
        };
        for (page, pattern) in (0..).zip(patterns) {
            let ppn = geometry().page(BlockId(3), page);
            let (oob, written) = (Oob { lpn: Lpn(page), owner: 0, sequence: 1 }, vec![pattern; words]);
            media.program(ppn, Time::ZERO, oob, &written).unwrap();
            let stored = kept.0.lock().unwrap().pages[&ppn.0].1.clone();
            let same = stored.iter().filter(|word| **word == pattern).count();
            assert!(same <= words / 128, "{same} of {words} words are as the host wrote them");
            assert!((ones(&stored) - 0.5).abs() < 0.01, "{} ones of {pattern:#x}", ones(&stored));
            let mut read = vec![7; words];
            let reading = Reading { now: Time::ZERO, level: 0 };
            let verdict = media.read(ppn, reading, &mut read).unwrap().verdict;
            assert!(read == written && matches!(verdict, Verdict::Good { .. }), "{verdict:?}");
        }
    }
}

#[test]
fn without_every_byte_there_is_nothing_to_scramble() {
    let mut contents = Contents::for_channel(&geometry(), ChannelId(0), 1, 1000).scrambling();
    let (ppn, oob) = (geometry().page(BlockId(0), 0), Oob { lpn: Lpn(1), owner: 0, sequence: 1 });
    contents.program(ppn, oob, &[5, 6]).unwrap();
    let mut read = [0; 2];
    contents.read(ppn, &mut read).unwrap();
    assert_eq!(read, [5, 6]);
}
