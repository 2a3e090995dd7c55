//! What protection information is made of, and what each check catches.

use super::*;
use crate::spec::DataPointer;

fn format(protection: Protection) -> Format {
    Format { block_bytes: 512, metadata: true, protection }
}

fn guarded(opcode: Opcode, protection: Protection, prinfo: u32, [reference, tags]: [u32; 2]) -> Guarded {
    let entry = Submission::over_blocks(opcode, 1, 5, 2).with_pointer(DataPointer::default());
    let entry = entry.with_dword(12, entry.dword(12) | prinfo).with_dword(14, reference).with_dword(15, tags);
    Guarded::of(&entry, format(protection)).expect("what it says fits its type")
}

fn data() -> Vec<u8> {
    (0..1024u32).map(|at| (at * 7 + at / 256) as u8).collect()
}

/// The check value that catalogues of CRCs give for CRC-16/T10-DIF.
#[test]
fn the_guard_is_that_of_t10() {
    assert_eq!(guard(b"123456789"), 0xd0db);
    assert_eq!(guard(&[0; 512]), 0);
}

#[test]
fn what_is_made_is_what_every_check_passes() {
    for protection in [Protection::Type1, Protection::Type2, Protection::Type3] {
        let makes = guarded(Opcode::Write, protection, ACTION, [5, 0xffff_abcd]);
        assert_eq!((makes.metadata_bytes(), makes.data_bytes()), (0, 1024));
        let tags = makes.accept(&data(), &[]).expect("what is made needs no check");
        let reference = if protection == Protection::Type3 { 0 } else { CHECK_REFERENCE };
        let reads = guarded(Opcode::Read, protection, CHECK_GUARD | CHECK_APPLICATION | reference, [5, 0xffff_abcd]);
        let metadata = reads.release(&data(), &tags).expect("all of it fits");
        assert_eq!(metadata.len(), 16);
        let second = Information::of(metadata[8..].try_into().unwrap());
        let expected = if protection == Protection::Type3 { 5 } else { 6 };
        assert_eq!((second.guard, second.application, second.reference), (guard(&data()[512..]), 0xabcd, expected));
        assert_eq!(reads.accept(&data(), &metadata), Ok(tags.clone()), "it goes in as it came out");
        assert_eq!(guarded(Opcode::Read, protection, ACTION, [5, 0]).release(&data(), &tags), Ok(vec![]), "stripped");
    }
}

#[test]
fn each_field_is_checked_where_it_is_asked_for() {
    let tags = guarded(Opcode::Write, Protection::Type1, ACTION, [5, 0xffff_0102]).accept(&data(), &[]).unwrap();
    let release = |prinfo, application, data: &[u8], tags: &[u64]| {
        let wrong = guarded(Opcode::Read, Protection::Type1, prinfo, [5, application]).release(data, tags).err();
        wrong.map(|wrong| (wrong.status, wrong.block))
    };
    let mut wrong = data();
    wrong[700] ^= 1;
    assert_eq!(release(CHECK_GUARD, 0, &wrong, &tags), Some((Status::GUARD_CHECK_FAILED, 6)));
    assert_eq!(release(CHECK_REFERENCE, 0, &wrong, &tags), None, "only what is asked for");
    let failed = Some((Status::APPLICATION_TAG_CHECK_FAILED, 5));
    assert_eq!(release(CHECK_APPLICATION, 0xffff_0103, &data(), &tags), failed);
    assert_eq!(release(CHECK_APPLICATION, 0xff00_0103, &data(), &tags), None, "the mask leaves the low half out");
    let moved = [tags[1], tags[0]];
    assert_eq!(release(CHECK_REFERENCE, 0, &data(), &moved), Some((Status::REFERENCE_TAG_CHECK_FAILED, 5)));
    assert_eq!(release(CHECK_GUARD | CHECK_REFERENCE, 0, &data(), &[0, 0]), None, "nobody has written it");
}

#[test]
fn a_reference_tag_that_cannot_be_checked_is_refused() {
    let entry = Submission::over_blocks(Opcode::Read, 1, 5, 2);
    let entry = entry.with_dword(12, entry.dword(12) | CHECK_REFERENCE);
    let of = |reference, protection| Guarded::of(&entry.with_dword(14, reference), format(protection)).err();
    assert_eq!(of(6, Protection::Type1), Some(Status::INVALID_PROTECTION_INFORMATION));
    assert_eq!(of(5, Protection::Type1), None);
    assert_eq!(of(6, Protection::Type2), None);
    assert_eq!(of(5, Protection::Type3), Some(Status::INVALID_PROTECTION_INFORMATION));
    assert_eq!(of(6, Protection::None), None, "there is nothing to check");
}

/// NVM §3.2.5 and §5.2.2.1.
#[test]
fn a_verify_makes_nothing_and_what_is_made_is_not_checked() {
    let of = |opcode, protection, prinfo| {
        let entry = Submission::over_blocks(opcode, 1, 5, 2);
        Guarded::of(&entry.with_dword(12, entry.dword(12) | prinfo).with_dword(14, 5), format(protection)).err()
    };
    for protection in [Protection::Type1, Protection::Type2, Protection::Type3] {
        assert_eq!(of(Opcode::Verify, protection, ACTION), Some(Status::INVALID_FIELD), "{protection:?}");
        for opcode in [Opcode::Write, Opcode::WriteZeroes] {
            assert_eq!(of(opcode, protection, ACTION | CHECKS), None, "{protection:?}");
        }
    }
    assert_eq!(of(Opcode::Verify, Protection::None, ACTION), None, "of no protection it says nothing");
    let strips = of(Opcode::Read, Protection::Type3, ACTION | CHECK_REFERENCE);
    assert_eq!(strips, Some(Status::INVALID_PROTECTION_INFORMATION), "before it is taken off it is checked");
}

#[test]
fn plain_metadata_come_back_as_they_are_and_a_large_block_has_one_tag() {
    let plain = guarded(Opcode::Write, Protection::None, 0, [0, 0]);
    let tags = plain.accept(&data(), &[7; 16]).unwrap();
    assert_eq!(plain.release(&data(), &tags), Ok(vec![7; 16]));
    assert_eq!(plain.release(&data(), &[0, 0]), Ok(vec![0; 16]));
    let large = Format { block_bytes: 4096, metadata: true, protection: Protection::Type1 };
    let entry = Submission::over_blocks(Opcode::Write, 1, 9, 2);
    let entry = entry.with_dword(12, entry.dword(12) | ACTION).with_dword(14, 9);
    let tags = Guarded::of(&entry, large).unwrap().accept(&[3; 8192], &[]).unwrap();
    assert_eq!(tags.len(), 16);
    assert!(tags.iter().enumerate().all(|(at, tag)| (*tag != 0) == (at % 8 == 0)));
}

#[test]
fn extended_blocks_come_apart_and_together() {
    let (blocks, metadata) = (data(), [1u8; 16]);
    let extended = join(&blocks, &metadata, 512);
    assert_eq!(extended.len(), 1040);
    assert_eq!(split(&extended, 512), (blocks, metadata.to_vec()));
}
