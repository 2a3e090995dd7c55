//! Lists that say where data lie: PRPs and SGLs of a host.

use crate::reader::Reader;
use nvme::prp;
use nvme::sgl::{DESCRIPTORS_MAX, SglWalk};
use nvme::spec::{Status, Submission};
use units::{Bytes, HostAddress};

/// The way along a list of pages that a host has made, and where every part of its transfer lies.
pub(crate) fn prp(bytes: &[u8]) {
    let mut input = Reader(bytes);
    let submission = Submission([0, 0, 0, input.long(), input.long(), 0, 0, 0]);
    let length = Bytes(1 + u64::from(input.word()) % (2 << 20));
    let Ok(plan) = prp::plan(submission.prp1(), submission.prp2(), length) else { return };
    let mut list = Vec::new();
    if let Some(mut walk) = plan.walk() {
        while let Some(run) = walk.run() {
            assert!((1..=512).contains(&run.words));
            // Mostly whole pages, or the walk is soon over.
            let words: Vec<u64> =
                (0..run.words).map(|_| input.long() << (12 * u64::from(input.0.len() % 8 > 0))).collect();
            let Ok(entries) = walk.take(&words) else { return };
            list.extend_from_slice(entries);
        }
    }
    assert_eq!(list.len(), plan.list_entries());
    // Frames of one page of the host's memory, and of several.
    let most = 4096 << (length.0 % 3);
    let mut done = 0;
    while done < length.0 {
        let pieces = plan.resolve(Bytes(done), Bytes((length.0 - done).min(most)), |at| list[at]);
        for piece in pieces.each(|at| list[at]) {
            assert!(piece.bytes.0 > 0 && piece.at.0 % 4096 + piece.bytes.0 <= 4096, "within a page");
            assert_ne!(piece.at, HostAddress(u64::MAX));
            done += piece.bytes.0;
        }
    }
    assert_eq!(done, length.0);
}

/// The way along an SGL that a host has made, in a memory that is what is left of the input.
pub(crate) fn sgl(bytes: &[u8]) {
    let mut input = Reader(bytes);
    let (first, to_host) = ([input.long(), input.long()], input.byte() & 1 != 0);
    let length = Bytes(1 + u64::from(input.word()) % (2 << 20));
    let memory: Vec<u64> = std::iter::from_fn(|| (!input.is_empty()).then(|| input.long())).collect();
    let mut pieces = Vec::new();
    let walked = SglWalk::begin(first, length, to_host, &mut pieces).and_then(|mut walk| {
        let mut read = 0;
        while let Some(run) = walk.run() {
            assert!(run.at.0.is_multiple_of(8) && run.words.is_multiple_of(2) && run.words > 0);
            read += run.words / 2;
            assert!(read <= DESCRIPTORS_MAX + 64, "a circle that is followed without end");
            // Addresses meet the memory, wherever they point.
            let place = |at: u64| memory.get((at / 8) as usize % memory.len().max(1)).copied().unwrap_or(0);
            let words: Vec<u64> = (0..run.words as u64).map(|at| place(run.at.0.wrapping_add(8 * at))).collect();
            walk.take(&words, &mut pieces)?;
        }
        walk.end()
    });
    assert!(pieces.iter().all(|piece| piece.bytes.0 > 0 && (to_host || piece.at.is_some())));
    let found: u64 = pieces.iter().map(|piece| piece.bytes.0).sum();
    match walked {
        Ok(()) => assert_eq!(found, length.0),
        Err(status) => {
            assert!(found < length.0);
            let known = [
                Status::SGL_TYPE_INVALID,
                Status::SGL_SEGMENT_INVALID,
                Status::SGL_COUNT_INVALID,
                Status::SGL_LENGTH_INVALID,
            ];
            assert!(known.contains(&status), "{status:?}");
        }
    }
}
