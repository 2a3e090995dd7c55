//! Units against units written by hand from the specification, and against bytes that mean nothing.

use super::*;
use nvme::spec::Status;
use proptest::prelude::*;
use units::QueueId;

fn agreed() -> impl Strategy<Value = Agreed> {
    (any::<bool>(), any::<bool>(), 1usize..=32).prop_map(|(header_digest, data_digest, dwords)| Agreed {
        header_digest,
        data_digest,
        data_alignment: dwords * 4,
    })
}

/// The first unit of bytes that have come all at once.
fn read(bytes: &[u8], agreed: Option<Agreed>) -> Result<Option<(Unit, usize)>, Violation> {
    Reader::default().read(bytes, agreed)
}

/// A command or data of a host, with digests as agreed and data `gap` bytes behind the header.
fn host_unit(kind: u8, header: &[u8], data: &[u8], gap: usize, agreed: Agreed) -> Vec<u8> {
    let digest = if agreed.header_digest { 4 } else { 0 };
    let begin = 8 + header.len() + digest + gap;
    let trailer = if agreed.data_digest && !data.is_empty() { 4 } else { 0 };
    let whole = if data.is_empty() { begin - gap } else { begin + data.len() + trailer };
    let flags = u8::from(agreed.header_digest) | u8::from(trailer > 0) << 1 | flag::LAST;
    let place = if data.is_empty() { 0 } else { begin as u8 };
    let mut unit = vec![kind, flags, 8 + header.len() as u8, place];
    unit.extend_from_slice(&(whole as u32).to_le_bytes());
    unit.extend_from_slice(header);
    if agreed.header_digest {
        unit.extend_from_slice(&crc32c::crc32c(&unit).to_le_bytes());
    }
    if !data.is_empty() {
        unit.resize(begin, 0);
        unit.extend_from_slice(data);
    }
    if trailer > 0 {
        unit.extend_from_slice(&crc32c::crc32c(data).to_le_bytes());
    }
    unit
}

/// CRC-32C of 32 zero bytes, from RFC 3720 B.4: the digests are the polynomial that hosts use.
#[test]
fn digests_are_crc_32c() {
    assert_eq!(crc32c::crc32c(&[0; 32]), 0x8a91_36aa);
    assert_eq!(crc32c::crc32c(&[0xff; 32]), 0x62a8_ab43);
}

#[test]
fn responses_and_requests_lie_as_the_specification_says() {
    let mut bytes = Vec::new();
    let mut encoder = Encoder { to: &mut bytes, agreed: Agreed::default() };
    encoder.ready(0x0102, 0x0304, 0x20_0000..0x21_0000);
    encoder.response(Completion::new(5, 6, QueueId(7), 8, false, Status::SUCCESS));
    encoder.data(9, 4, true, |to| to.extend_from_slice(&[1, 2, 3, 4]));
    let ready = [9, 0, 24, 0, 24, 0, 0, 0, 2, 1, 4, 3, 0, 0, 32, 0, 0, 0, 1, 0, 0, 0, 0, 0];
    let response = [5, 0, 24, 0, 24, 0, 0, 0, 5, 0, 0, 0, 0, 0, 0, 0, 6, 0, 7, 0, 8, 0, 0, 0];
    let data = [7, 12, 24, 24, 28, 0, 0, 0, 9, 0, 0, 0, 0, 0, 0, 0, 4, 0, 0, 0, 0, 0, 0, 0, 1, 2, 3, 4];
    assert_eq!(bytes, [&ready[..], &response[..], &data[..]].concat());
}

const DIGESTS: Agreed = Agreed { header_digest: true, data_digest: true, data_alignment: 4 };

/// H2CData of so many bytes.
fn data_unit(data: &[u8]) -> Vec<u8> {
    let mut header = vec![0; 16];
    header[8..12].copy_from_slice(&(data.len() as u32).to_le_bytes());
    host_unit(kind::HOST_DATA, &header, data, 0, DIGESTS)
}

/// A length that is damaged is not waited for: the header and its digest are enough to know.
#[test]
fn a_header_is_compared_as_soon_as_its_digest_is_there() {
    let command = host_unit(kind::COMMAND, &[0; 64], &[7; 512], 0, DIGESTS);
    for (unit, header) in [(command, 72), (data_unit(&[7; 512]), 24)] {
        assert_eq!(read(&unit[..header + 4], Some(DIGESTS)), Ok(None), "its data are yet to come");
        for at in 1..header {
            for bit in 0..8 {
                let mut damaged = unit[..header + 4].to_vec();
                damaged[at] ^= 1 << bit;
                assert_eq!(read(&damaged[..header + 3], Some(DIGESTS)), Ok(None));
                let came = u32::from_le_bytes(unit[header..header + 4].try_into().expect("four"));
                assert_eq!(read(&damaged, Some(DIGESTS)), Err(Violation::header_digest(came)), "byte {at}, bit {bit}");
            }
        }
    }
    // A kind that there is not, of a length that there is.
    let mut unknown = data_unit(&[7; 4]);
    unknown[0] ^= 1;
    assert_eq!(read(&unknown, Some(DIGESTS)).map_err(|violation| violation.status), Err(3));
    let digest = crc32c::crc32c(&unknown[..24]).to_le_bytes();
    unknown[24..28].copy_from_slice(&digest);
    assert_eq!(read(&unknown, Some(DIGESTS)), Err(Violation::field(0)), "it was sent so");
    // Fields that are wrong in a header as it was sent.
    let mut wrong = data_unit(&[7; 4]);
    wrong[2] = 28;
    let digest = crc32c::crc32c(&wrong[..24]).to_le_bytes();
    wrong[24..28].copy_from_slice(&digest);
    assert_eq!(read(&wrong, Some(DIGESTS)), Err(Violation::field(2)));
}

/// Data come in many pieces: their header is not compared with each.
#[test]
fn a_header_is_compared_once() {
    let (mut reader, mut unit) = (Reader::default(), [data_unit(&[7; 512]), data_unit(&[8; 512])].concat());
    let one = unit.len() / 2;
    assert_eq!(reader.read(&unit[..100], Some(DIGESTS)), Ok(None));
    unit[24] ^= 1;
    assert_eq!(reader.read(&unit[..500], Some(DIGESTS)), Ok(None));
    let whole = reader.read(&unit, Some(DIGESTS)).expect("it is valid").expect("it is whole");
    assert!(matches!(whole, (Unit::Data { damaged: false, .. }, length) if length == one));
    unit[one + 24] ^= 1;
    assert!(reader.read(&unit[one..], Some(DIGESTS)).is_err(), "and that of each unit");
}

/// Data of a host, and what comes behind a unit, do not lie in a capture of what ended its connection.
#[test]
fn a_termination_repeats_the_header_of_the_unit_in_error_and_no_more() {
    let plain = Agreed::default();
    let with = |kind, header, rest| unit_of_kind(kind, header, 400, rest);
    let cases = [
        (host_unit(kind::COMMAND, &[0; 64], &[7; 512], 0, plain), 72),
        (host_unit(kind::COMMAND, &[0; 64], &[7; 512], 0, plain)[..30].to_vec(), 30),
        (host_unit(kind::HOST_DATA, &[0; 16], &[7; 512], 0, plain), 24),
        (with(kind::INITIALIZE_REQUEST, 128, 300), 128),
        (with(kind::COMMAND, 255, 300), 72),
        (with(0x55, 16, 300), 16),
        (with(0x55, 255, 300), 128),
        (with(0x55, 0, 300), 8),
    ];
    for (came, repeats) in cases {
        let mut bytes = Vec::new();
        Encoder { to: &mut bytes, agreed: DIGESTS }.terminate(Violation::header_digest(0x0102_0304), &came);
        assert_eq!(bytes[..14], [3, 0, 24, 0, 24 + repeats as u8, 0, 0, 0, 3, 0, 4, 3, 2, 1]);
        assert_eq!(bytes[24..], came[..repeats]);
    }
}

/// What is wrong with how a host ends the connection is not answered: both ends would go on so.
#[test]
fn a_host_s_termination_ends_the_connection_whatever_it_says() {
    for agreed in [None, Some(DIGESTS)] {
        let sound = unit_of_kind(kind::HOST_TERMINATES, 24, 152, 144);
        assert_eq!(read(&sound[..151], agreed), Ok(None));
        assert_eq!(read(&sound, agreed), Ok(Some((Unit::Terminated, 152))));
        for (header, whole) in [(24, 153), (24, 23), (24, 0), (24, u32::MAX), (28, 28)] {
            let common = unit_of_kind(kind::HOST_TERMINATES, header, whole, 0);
            assert_eq!(read(&common, agreed), Ok(Some((Unit::Terminated, 8))), "{header} {whole}");
        }
    }
}

/// A unit whose header says this much, and so many bytes behind what is common to all.
fn unit_of_kind(kind: u8, header: u8, whole: u32, rest: usize) -> Vec<u8> {
    [&[kind, 0, header, 0][..], &whole.to_le_bytes(), &vec![7; rest]].concat()
}

proptest! {
    #[test]
    fn what_a_host_sends_is_read_whole_and_not_before(
        agreed in agreed(), words: [u64; 8], data in prop::collection::vec(any::<u8>(), 0..600), gap in 0usize..8,
        cut in 0.0f64..1.0,
    ) {
        let header: Vec<u8> = words.iter().flat_map(|word| word.to_le_bytes()).collect();
        let unit = host_unit(kind::COMMAND, &header, &data, gap * 4, agreed);
        let part = &unit[..(unit.len() as f64 * cut) as usize];
        prop_assert_eq!(read(part, Some(agreed)), Ok(None));
        let (read, length) = read(&unit, Some(agreed)).expect("it is valid").expect("it is whole");
        prop_assert_eq!(length, unit.len());
        match read {
            Unit::Command { submission, data: range, damaged } => {
                prop_assert!(submission == Submission(words) && !damaged);
                prop_assert_eq!(&unit[range], &data[..]);
            }
            other => prop_assert!(false, "{:?}", other),
        }
    }

    #[test]
    fn a_flipped_bit_is_noticed_by_the_digest_over_it(
        data in prop::collection::vec(any::<u8>(), 4..300), at in 1usize..400, bit in 0u8..8,
    ) {
        let mut unit = data_unit(&data);
        let at = at.min(unit.len() - 1);
        unit[at] ^= 1 << bit;
        match read(&unit, Some(DIGESTS)) {
            Err(violation) => prop_assert!(at < 28 && violation.status == 3, "{:?} for byte {}", violation, at),
            Ok(Some((Unit::Data { damaged, .. }, _))) => prop_assert!(at >= 28 && damaged),
            other => prop_assert!(false, "{:?}", other),
        }
    }

    #[test]
    fn bytes_that_mean_nothing_are_refused_or_waited_for(
        mut bytes in prop::collection::vec(any::<u8>(), 0..300), agreed in prop::option::of(agreed()),
        kind in prop::sample::select(vec![0u8, 2, 4, 6, 9]), header in prop::sample::select(vec![24u8, 72, 128]),
        whole in 0u32..400,
    ) {
        if bytes.len() >= 8 {
            (bytes[0], bytes[2]) = (kind, header);
            bytes[4..8].copy_from_slice(&whole.to_le_bytes());
        }
        if let Ok(Some((unit, length))) = read(&bytes, agreed) {
            prop_assert!(length <= bytes.len());
            if let Unit::Command { data, .. } | Unit::Data { data, .. } = unit {
                prop_assert!(data.end <= length);
            }
        }
    }
}
