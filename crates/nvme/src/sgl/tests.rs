//! Lists against a reader that was written apart from the walk, and lists that no host makes.

use super::*;
use crate::HostMemory;
use crate::memory::tests::SmallMemory;
use proptest::prelude::*;

const WORDS: usize = 4096;

/// All that the walk finds.
fn gather(memory: &SmallMemory, first: [u64; 2], bytes: u64, to_host: bool) -> Result<Vec<(Option<u64>, u64)>, Status> {
    let mut pieces = Vec::new();
    let mut walk = SglWalk::begin(first, Bytes(bytes), to_host, &mut pieces)?;
    let mut fetched = 0;
    while let Some(run) = walk.run() {
        let mut words = vec![0; run.words];
        memory.read_words(run.at, &mut words);
        walk.take(&words, &mut pieces)?;
        fetched += run.words / 2;
        assert!(fetched <= DESCRIPTORS_MAX + 64);
    }
    walk.end()?;
    Ok(pieces.into_iter().map(|piece| (piece.at.map(|at| at.0), piece.bytes.0)).collect())
}

/// The place of each byte of a transfer, by a list that is right: recursion over bytes as they lie in memory.
fn places(memory: &SmallMemory, descriptor: &[u8], to_host: bool, found: &mut Vec<Option<u64>>) {
    let at = u64::from_le_bytes(descriptor[..8].try_into().unwrap());
    let length = u32::from_le_bytes(descriptor[8..12].try_into().unwrap());
    match descriptor[15] >> 4 {
        0 => found.extend((0..u64::from(length)).map(|byte| Some(at + byte))),
        1 if to_host => found.extend((0..length).map(|_| None)),
        1 => {}
        _ => {
            let mut segment = vec![0; length as usize];
            memory.read_bytes(HostAddress(at), &mut segment);
            segment.chunks(16).for_each(|descriptor| places(memory, descriptor, to_host, found));
        }
    }
}

/// Puts descriptors into segments of these lengths, one after the other with gaps; the first descriptor of the list.
fn lay_out(memory: &SmallMemory, mut rest: &[[u64; 2]], lengths: &[usize]) -> [u64; 2] {
    if let ([one], []) = (rest, lengths) {
        return *one;
    }
    let (mut first, mut before, mut at) = ([0; 2], None::<u64>, 8);
    for index in 0.. {
        // All but the last segment end with a descriptor of the next.
        let room = lengths.get(index).map_or(usize::MAX, |length| *length);
        let is_last = rest.len() <= room;
        let (here, after) = rest.split_at(rest.len().min(room));
        let count = here.len() + usize::from(!is_last);
        let named = segment(HostAddress(at), count as u32, is_last);
        match before {
            None => first = named,
            Some(place) => memory.write_words(HostAddress(place), &named),
        }
        for (place, descriptor) in here.iter().enumerate() {
            memory.write_words(HostAddress(at + 16 * place as u64), descriptor);
        }
        if is_last {
            break;
        }
        before = Some(at + 16 * here.len() as u64);
        at += 16 * count as u64 + 8 * (index as u64 % 3);
        rest = after;
    }
    first
}

fn descriptor() -> impl Strategy<Value = [u64; 2]> {
    prop_oneof![
        6 => (0u64..1 << 40, 0u32..300).prop_map(|(at, bytes)| piece(HostAddress(at), bytes)),
        1 => (0u32..300).prop_map(bucket),
    ]
}

proptest! {
    #[test]
    fn every_byte_has_the_place_that_the_list_gives_it(
        list in prop::collection::vec(descriptor(), 1..120), lengths in prop::collection::vec(0usize..90, 0..6),
        to_host: bool, cut in 0.0f64..1.0,
    ) {
        let memory = SmallMemory::with_words(WORDS);
        let first = lay_out(&memory, &list, &lengths);
        let mut found = Vec::new();
        let bytes: Vec<u8> = first.iter().flat_map(|word| word.to_le_bytes()).collect();
        places(&memory, &bytes, to_host, &mut found);
        // Shorter than its list, as long as it, and longer.
        let wanted = ((found.len() as f64 * cut) as u64).max(1);
        for wanted in [wanted, found.len() as u64] {
            if wanted == 0 || wanted > found.len() as u64 {
                continue;
            }
            let pieces = gather(&memory, first, wanted, to_host).unwrap();
            prop_assert!(pieces.iter().all(|(_, bytes)| *bytes > 0));
            let each = pieces.iter().flat_map(|(at, bytes)| (0..*bytes).map(move |byte| at.map(|at| at + byte)));
            prop_assert!(each.eq(found[..wanted as usize].iter().copied()));
        }
        prop_assert_eq!(gather(&memory, first, found.len() as u64 + 1, to_host), Err(Status::SGL_LENGTH_INVALID));
    }

    #[test]
    fn garbage_gets_a_status_or_pieces_but_never_a_panic(
        words in prop::collection::vec(any::<u64>(), 64), kinds in prop::collection::vec(0u64..5, 32),
        first: [u64; 2], kind in 0u64..5, to_host: bool, bytes in 1u64..1 << 22,
    ) {
        let memory = SmallMemory::with_words(64);
        // Mostly types that there are, in a memory that they reach.
        let typed = |words: [u64; 2], kind: u64| [words[0] & 0x1f8, words[1] & 0x7f_ffff_fff0 | kind << 60];
        for (place, (words, kind)) in words.chunks_exact(2).zip(&kinds).enumerate() {
            memory.write_words(HostAddress(16 * place as u64), &typed([words[0], words[1]], *kind));
        }
        if let Ok(pieces) = gather(&memory, typed(first, kind), bytes, to_host) {
            prop_assert_eq!(pieces.iter().map(|(_, bytes)| bytes).sum::<u64>(), bytes);
        }
    }
}

#[test]
fn what_no_list_may_have_is_refused_with_its_status() {
    let memory = SmallMemory::with_words(WORDS);
    let put = |at: u64, list: &[[u64; 2]]| memory.write_words(HostAddress(at), list.as_flattened());
    let whole = piece(HostAddress(0x1000), 512);
    let gathered = |first| gather(&memory, first, 512, true).map(|_| ());
    assert_eq!(gathered(whole), Ok(()));
    assert_eq!(gathered(bucket(512)), Ok(()));
    for [kind, low] in [[0x01, 0], [0x40, 0], [0x5a, 0], [0xf0, 0], [0x21, 16]] {
        assert_eq!(gathered([0x1000, kind << 56 | 512 | low]), Err(Status::SGL_TYPE_INVALID), "{kind:#x}");
    }
    put(0x100, &[whole]);
    let named = |at, bytes: u64, kind: u64| [at, bytes | kind << 56];
    assert_eq!(gathered(named(0x100, 16, 0x20)), Ok(()), "a segment may end without another");
    for (at, bytes) in [(0x104, 16), (0x100, 0), (0x100, 15), (0x100, 24)] {
        for kind in [0x20, 0x30] {
            assert_eq!(gathered(named(at, bytes, kind)), Err(Status::SGL_SEGMENT_INVALID));
        }
    }
    put(0x200, &[segment(HostAddress(0x100), 1, true)]);
    assert_eq!(gathered(segment(HostAddress(0x200), 1, true)), Err(Status::SGL_SEGMENT_INVALID), "after the last");
    assert_eq!(gathered(segment(HostAddress(0x200), 1, false)), Ok(()));
    put(0x200, &[segment(HostAddress(0x100), 1, true), whole]);
    assert_eq!(gathered(segment(HostAddress(0x200), 2, false)), Err(Status::SGL_COUNT_INVALID), "not at the end");
    // A circle of segments, and a segment of nothing without end.
    put(0x300, &[piece(HostAddress(0), 0), segment(HostAddress(0x300), 2, false)]);
    assert_eq!(gathered(segment(HostAddress(0x300), 2, false)), Err(Status::SGL_COUNT_INVALID));
    assert_eq!(gathered(segment(HostAddress(0x400), 1 << 20, true)), Err(Status::SGL_COUNT_INVALID));
    assert_eq!(gathered(piece(HostAddress(0x1000), 511)), Err(Status::SGL_LENGTH_INVALID));
    // To the drive a bucket is of no length.
    assert_eq!(gather(&memory, bucket(512), 512, false), Err(Status::SGL_LENGTH_INVALID));
}
