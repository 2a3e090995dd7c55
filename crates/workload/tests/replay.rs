//! Every trace format on short samples written by hand: what is read, how formats are recognised, what options do, and
//! that bad input of any kind ends in an error that says where.

use proptest::prelude::*;
use std::io::{Cursor, Write};
use std::path::Path;
use units::Time;
use workload::replay::{
    Bounds, CountUnit, Devices, Event, FORMATS, Mode, Options, TimeUnit, Trace, TraceError, format_named,
};
use workload::{Io, IoKind, Source};

/// A request as samples expect it: kind, device, sector, sectors, nanoseconds after the first.
type Expected = (IoKind, u16, u64, u32, u64);

const R: IoKind = IoKind::Read;
const W: IoKind = IoKind::Write;
const D: IoKind = IoKind::Deallocate;
const F: IoKind = IoKind::Flush;

fn blktrace_record(big: bool, action: u32, sector: u64, bytes: u32, nanos: u64, payload: &[u8]) -> Vec<u8> {
    let mut record = Vec::new();
    let mut put = |bytes: &[u8]| {
        let ordered: Vec<u8> = if big { bytes.iter().rev().copied().collect() } else { bytes.to_vec() };
        record.extend(ordered);
    };
    put(&0x6561_7407u32.to_le_bytes());
    put(&1u32.to_le_bytes());
    put(&nanos.to_le_bytes());
    put(&sector.to_le_bytes());
    for word in [bytes, action, 77, (259 << 20) | 1, 0] {
        put(&word.to_le_bytes());
    }
    put(&0u16.to_le_bytes());
    put(&(payload.len() as u16).to_le_bytes());
    record.extend(payload);
    record
}

fn blktrace(big: bool) -> Vec<u8> {
    const READ: u32 = 1 << 16;
    const WRITE: u32 = 1 << 17;
    [
        blktrace_record(big, 1 | READ, 800, 4096, 5_000, b""),
        blktrace_record(big, 7 | READ, 800, 4096, 5_100, b"abc"),
        blktrace_record(big, 1 | WRITE | (1 << 18), 0, 0, 6_000, b""),
        blktrace_record(big, 1 | WRITE | (1 << 29), 64, 8192, 7_000, b"payload"),
        blktrace_record(big, 1 | (1 << 26), 0, 0, 7_500, b"note"),
    ]
    .concat()
}

fn vscsi(version: u16) -> Vec<u8> {
    let mut bytes = Vec::new();
    for (command, length, block, micros) in [(0x28u16, 4096u32, 63u64, 10u64), (0x12, 36, 0, 11), (0x8a, 513, 9, 12)] {
        let (command, tag) = (command.to_le_bytes(), (version << 8).to_le_bytes());
        let counts = [1u32.to_le_bytes(), length.to_le_bytes(), 1u32.to_le_bytes()].concat();
        match version {
            1 => bytes.extend([counts.as_slice(), &command, &tag].concat()),
            _ => bytes.extend([command.as_slice(), &tag, &counts].concat()),
        }
        // The first 16 bytes end here in both versions.
        bytes.extend(block.to_le_bytes());
        bytes.extend(micros.to_le_bytes());
        if version == 2 {
            bytes.extend(400u64.to_le_bytes());
        }
    }
    bytes
}

/// A format, a file of it, and what is to be read from it.
type Sample = (&'static str, Vec<u8>, Vec<Expected>);

fn text(text: &str) -> Vec<u8> {
    text.as_bytes().to_vec()
}

fn samples() -> Vec<Sample> {
    [samples_of_systems(), samples_of_simulators(), samples_of_clouds()].concat()
}

fn samples_of_systems() -> Vec<Sample> {
    vec![
        ("spc", text("10,7,3584,w,0.5\n2,8,100,R,0.500001,extra\n"), vec![(W, 1, 7, 7, 0), (R, 0, 8, 1, 1_000)]),
        (
            "msr",
            text("128166372003061629,hm,1,Read,4096,8192,100\n128166372003061619,hm,0,WRITE,1000,100,7\n"),
            vec![(W, 0, 1, 2, 0), (R, 1, 8, 16, 1_000)],
        ),
        (
            "fiu",
            text("1000 42 kworker/0:1 odd 64 8 W 6 0 d41d8cd9\n1500 0 swapper 8 8 R 6 0 0cc175b9\n"),
            vec![(W, 0, 64, 8, 0), (R, 0, 8, 8, 500)],
        ),
        (
            "blkparse",
            text(
                "259,2  0  1  0.000002000  40  Q  R 16 + 8 [fio]\n259,2  1  1  0.000001000  40  Q  FWFS 0 + 8 [fio]\n\
                 259,2  0  2  0.000002100  40  D  R 16 + 8 [fio]\n259,2  1  3  0.000003000  40  Q  DS 8 + 16 [fio]\n\
                 259,2  1  4  0.000004000  40  Q  R 36 (12 01) [smartd]\n259,2  1  5  0.000005000  40  Q  FF [jbd2]\n\
                 CPU0 (259,2):\n Reads Queued:  1\n",
            ),
            vec![(F, 0, 0, 0, 0), (W, 0, 0, 8, 0), (R, 0, 16, 8, 1_000), (D, 0, 8, 16, 2_000), (F, 0, 0, 0, 4_000)],
        ),
        ("blktrace", blktrace(false), vec![(R, 0, 800, 8, 0), (F, 0, 0, 0, 1_000), (D, 0, 64, 16, 2_000)]),
        ("blktrace", blktrace(true), vec![(R, 0, 800, 8, 0), (F, 0, 0, 0, 1_000), (D, 0, 64, 16, 2_000)]),
    ]
}

fn samples_of_simulators() -> Vec<Sample> {
    vec![
        ("mqsim", text("500 3 64 8 1\n900 1 72 16 0\n"), vec![(R, 1, 64, 8, 0), (W, 0, 72, 16, 400)]),
        ("ssdsim", text("500 0 64 8 1 3f4f\n900 0 72 16 0 c283\n"), vec![(R, 0, 64, 8, 0), (W, 0, 72, 16, 400)]),
        ("disksim", text("0.5\t0\t64\t8\t1\n0.5004 0 72 16 40\n"), vec![(R, 0, 64, 8, 0), (W, 0, 72, 16, 400)]),
        (
            "fio-iolog",
            text(
                "fio version 3 iolog\n0 /dev/b add\n1 /dev/b open\n5 /dev/b write 4096 8192\n6 /dev/a read 0 512\n\
                 7 /dev/b datasync\n8 /dev/b trim 0 4096\n9 /dev/b close\n",
            ),
            vec![(W, 1, 8, 16, 0), (R, 0, 0, 1, 1_000), (F, 1, 0, 0, 2_000), (D, 1, 0, 8, 3_000)],
        ),
        (
            "fio-iolog",
            text("fio version 2 iolog\nf add\nf open\nf read 0 4096\nf wait 200\nf write 4096 4096\nf close\n"),
            vec![(R, 0, 0, 8, 0), (W, 0, 8, 8, 200_000)],
        ),
        ("vscsi", vscsi(1), vec![(R, 0, 63, 8, 0), (W, 0, 9, 2, 2_000)]),
        ("vscsi", vscsi(2), vec![(R, 0, 63, 8, 0), (W, 0, 9, 2, 2_000)]),
    ]
}

fn samples_of_clouds() -> Vec<Sample> {
    vec![
        (
            "alibaba",
            text("419,W,8192,4096,1577808000000046\n7,R,0,512,1577808000000047\n"),
            vec![(W, 1, 16, 8, 0), (R, 0, 0, 1, 1_000)],
        ),
        (
            "tencent",
            text("1538323200,64,8,1,1283\n1538323201,72,8,0,1283\n"),
            vec![(W, 0, 64, 8, 0), (R, 0, 72, 8, 1_000_000_000)],
        ),
        (
            "systor",
            text(
                "Timestamp,Response,IOType,LUN,Offset,Size\n1455592835.000001,0.001,R,2,512,1024\n\
                 1455592835.000003,,W,0,0,512\n",
            ),
            vec![(R, 1, 1, 2, 0), (W, 0, 0, 1, 2_000)],
        ),
        ("arc", text("230027 8 0 0\n1842745 64 0 1\n"), vec![(R, 0, 230_027, 8, 0), (R, 0, 1_842_745, 64, 0)]),
    ]
}

fn read(bytes: &[u8], options: &Options) -> Result<Trace, TraceError> {
    Trace::read(Path::new("sample"), Cursor::new(bytes.to_vec()), options)
}

fn replayed(trace: &Trace, mode: Mode) -> Vec<Io> {
    let mut source = trace.source(mode).unwrap();
    std::iter::from_fn(|| source.next_io()).collect()
}

fn as_expected(io: &Io) -> Expected {
    (io.kind, io.device, io.lba.0, io.sectors, io.at.unwrap_or(Time::ZERO).nanos())
}

#[test]
fn every_format_is_recognised_and_read() {
    for (format, bytes, expected) in samples() {
        let trace = read(&bytes, &Options::default()).unwrap();
        assert_eq!(trace.summary().format, format);
        let mode = if trace.summary().timed { Mode::Timed { speed: 1.0 } } else { Mode::Closed };
        assert_eq!(replayed(&trace, mode).iter().map(as_expected).collect::<Vec<_>>(), expected, "{format}");
        assert!(replayed(&trace, Mode::Closed).iter().all(|io| io.at.is_none()));
    }
    let sampled = |name| samples().iter().any(|sample| sample.0 == name);
    assert!(FORMATS.iter().all(|format| sampled(format.name())), "every format has a sample");
}

#[test]
fn compressed_traces_read_as_plain_ones_and_say_when_they_are_cut() {
    let plain = "0,7,3584,w,0.5\n1,8,512,R,0.6\n".repeat(5_000);
    let mut gzip = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
    gzip.write_all(plain.as_bytes()).unwrap();
    let mut xz = liblzma::write::XzEncoder::new(Vec::new(), 1);
    xz.write_all(plain.as_bytes()).unwrap();
    let zstd = zstd::encode_all(plain.as_bytes(), 1).unwrap();
    for (name, packed) in [("zstd", zstd), ("gzip", gzip.finish().unwrap()), ("xz", xz.finish().unwrap())] {
        assert_eq!(read(&packed, &Options::default()).unwrap().summary().records, 10_000);
        for keep in [7, packed.len() / 2, packed.len() - 1] {
            let error = read(&packed[..keep], &Options::default()).unwrap_err();
            assert!(matches!(error, TraceError::Read { .. }), "{keep} of {}: {error}", packed.len());
            let said = error.to_string();
            assert!(
                said.contains(&format!("its {name} stream cannot be unpacked on (damaged or cut short?)")),
                "{said}"
            );
            let from_the_beginning = said.starts_with("sample: byte 0:");
            assert!(!said.contains("line 1:") && (keep < packed.len() - 1 || !from_the_beginning), "{keep}: {said}");
        }
    }
    let mut short = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
    short.write_all(b"0,7,3584,w,0.5\n").unwrap();
    let short = short.finish().unwrap();
    let said = read(&short[..short.len() - 1], &Options::default()).unwrap_err().to_string();
    assert!(said.starts_with("sample: byte 15: its gzip stream"), "{said}");
}

/// As tapes and images of media leave them, which are written in whole blocks.
#[test]
fn zeros_after_the_last_member_of_a_gzip_file_are_its_end() {
    let member = |text: &str| {
        let mut gzip = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
        gzip.write_all(text.as_bytes()).unwrap();
        gzip.finish().unwrap()
    };
    let (one, two) = (member("0,7,3584,w,0.5\n"), member("1,8,512,R,0.6\n"));
    let records = |parts: &[&[u8]]| read(&parts.concat(), &Options::default()).map(|trace| trace.summary().records);
    for zeros in [0, 1, 512, 200_000] {
        assert_eq!(records(&[&one, &two, &vec![0; zeros]]).unwrap(), 2, "{zeros}");
    }
    for wrong in [&[&one[..], &[0; 512], &two][..], &[&one, &two, &[0, 1]], &[&one, &two, b"no member"]] {
        let said = records(wrong).unwrap_err().to_string();
        assert!(said.contains("its gzip stream cannot be unpacked on"), "{said}");
    }
}

#[test]
fn a_name_says_what_a_trace_is_that_fits_nothing() {
    let refusal =
        |name: &str| Trace::read(Path::new(name), Cursor::new(b"0,7\n".to_vec()), &Options::default()).unwrap_err();
    for name in ["one.spc", "one.spc.gz", "two.SPC"] {
        assert_eq!(refusal(name).to_string(), format!("{name}: line 1 (spc): Size is \"\"; expected one more field"));
    }
    for name in ["one", "spc", "one.spc2"] {
        assert!(matches!(refusal(name), TraceError::Unrecognised { .. }), "{name}");
    }
}

#[test]
fn a_byte_order_mark_before_a_text_is_no_part_of_it() {
    let marked = [b"\xef\xbb\xbf".as_slice(), b"0,7,3584,w,0.5\n1,8,512,R,0.6\n"].concat();
    for stored in [zstd::encode_all(marked.as_slice(), 1).unwrap(), marked] {
        let trace = read(&stored, &Options::default()).unwrap();
        assert_eq!((trace.summary().format, trace.summary().records), ("spc", 2));
    }
}

#[test]
fn what_holds_a_trace_in_a_way_that_is_not_read_is_named() {
    let mut tar = b"homes.spc".to_vec();
    tar.resize(257, 0);
    tar.extend(b"ustar\x0000");
    tar.resize(1024, b'0');
    let packed_tar = zstd::encode_all(tar.as_slice(), 1).unwrap();
    let twice = zstd::encode_all(packed_tar.as_slice(), 1).unwrap();
    let wide = "\u{feff}0,7,3584,w,0.5\n".encode_utf16();
    let [little, big] = [u16::to_le_bytes, u16::to_be_bytes].map(|two| wide.clone().flat_map(two).collect::<Vec<_>>());
    for (bytes, name) in [
        (b"PK\x03\x04\x14\0".as_slice(), "a zip archive"),
        (b"BZh91AY&SY\n0,7,3584,w,0.5\n", "compressed with bzip2"),
        (&tar, "a tar archive"),
        (&packed_tar, "a tar archive"),
        (&twice, "compressed twice"),
        (&little, "text in UTF-16"),
        (&big, "text in UTF-16"),
    ] {
        let error = read(bytes, &Options { lenient: true, ..Options::default() }).unwrap_err();
        let expected =
            format!("sample: it is {name}; expected the trace itself, plain or compressed with zstd, gzip or xz");
        assert_eq!(error.to_string(), expected);
    }
}

#[test]
fn the_family_of_five_columns_is_told_apart_by_hints() {
    let format = |name: &str, text: &str| {
        let trace = Trace::read(Path::new(name), Cursor::new(text.to_string()), &Options::default()).unwrap();
        assert!(trace.summary().assumed.contains("same shape"), "{}", trace.summary().assumed);
        trace.summary().format
    };
    assert_eq!(format("some.trace", "1 0 8 8 1\n"), "mqsim");
    assert_eq!(format("some.SSDsim.ascii", "1 0 8 8 1\n"), "ssdsim");
    assert_eq!(format("some.disksim.trace", "1 0 8 8 1\n"), "disksim");
    assert_eq!(format("some.trace", "1.5 0 8 8 1\n"), "disksim");
    assert_eq!(format("some.trace", "1 0 8 8 1 ab12\n"), "ssdsim");
}

#[test]
fn options_set_units_events_and_devices() {
    let timed = |text: &str, options: &Options| -> Vec<Expected> {
        replayed(&read(text.as_bytes(), options).unwrap(), Mode::Timed { speed: 1.0 }).iter().map(as_expected).collect()
    };
    let columns = "0 5 8 2 1\n3 4 0 1 0\n";
    let micros = Options { unit: Some(TimeUnit::Microseconds), ..Options::default() };
    assert_eq!(timed(columns, &micros)[1], (W, 0, 0, 1, 3_000));
    let pages = Options { count_unit: Some(CountUnit::Pages), ..Options::default() };
    assert_eq!(timed(columns, &pages)[0], (R, 1, 8, 16, 0));
    let fold = Options { devices: Devices::Fold, ..Options::default() };
    assert_eq!(timed(columns, &fold), [(R, 0, 2_048 + 8, 2, 0), (W, 0, 0, 1, 3)]);
    let only = Options { devices: Devices::Only(1), ..Options::default() };
    assert_eq!(timed(columns, &only), [(R, 0, 8, 2, 0)]);
    let issued = Options { event: Some(Event::Issued), ..Options::default() };
    let blkparse = samples().into_iter().find(|sample| sample.0 == "blkparse").unwrap().1;
    assert_eq!(replayed(&read(&blkparse, &issued).unwrap(), Mode::Closed).len(), 1);
    let trace = read(columns.as_bytes(), &micros).unwrap();
    assert_eq!(replayed(&trace, Mode::Timed { speed: 2.0 })[1].at, Some(Time::from_picos(1_500_000)));
    assert!(trace.source(Mode::Timed { speed: 0.0 }).is_err());
    let untimed = read(b"0 8 0 0\n", &Options::default()).unwrap();
    assert_eq!(untimed.source(Mode::Timed { speed: 1.0 }).unwrap_err().field, "mode");
    for (text, options, field) in [
        (columns, Options { devices: Devices::Only(2), ..Options::default() }, "devices"),
        ("0,0,512,r,1\n", micros, "unit"),
        ("0,0,512,r,1\n", pages, "count-unit"),
        (columns, issued, "event"),
    ] {
        let TraceError::Option { option, .. } = read(text.as_bytes(), &options).unwrap_err() else { panic!("{field}") };
        assert_eq!(option.field, field);
    }
}

#[test]
fn devices_stand_in_the_order_of_their_numbers_then_of_their_names() {
    let line = |device: &str| format!("{device} 0 1 0.000001 40 Q R 16 + 8 [fio]\n");
    let text: String = ["8,16", "8,2", "65,0", "8,1"].map(line).concat();
    let names = |text: &str, devices| {
        read(text.as_bytes(), &Options { devices, ..Options::default() }).unwrap().summary().devices.clone()
    };
    assert_eq!(names(&text, Devices::Separate), ["8,1", "8,2", "8,16", "65,0"]);
    assert_eq!(names(&text, Devices::Only(2)), ["8,16"]);
    let files = "fio version 2 iolog\n/b add\n/10 add\n9 add\n10 add\n/b read 0 512\n/10 read 0 512\n10 read 0 512\n9 read 0 512\n";
    assert_eq!(names(files, Devices::Separate), ["9", "10", "/10", "/b"]);
}

/// A lenient reader takes the end that is missing for one record that cannot be used.
#[test]
fn a_file_that_ends_within_a_record_says_how_long_that_is() {
    // What stands before the last record, whole, and the bytes that are left of it.
    for (format, file, last, left, expected) in [
        ("vscsi", vscsi(1), 32, 31, 32),
        ("vscsi", vscsi(1), 32, 5, 32),
        ("vscsi", vscsi(2), 40, 39, 40),
        ("vscsi", vscsi(2), 40, 15, 40),
        ("blktrace", blktrace(true), 52, 51, 52),
        ("blktrace", blktrace(false), 52, 20, 48),
    ] {
        let options = Options { format: format_named(format), ..Options::default() };
        let (begins, number) = (file.len() - last, if format == "vscsi" { 3 } else { 5 });
        let cut = &file[..begins + left];
        let said = format!("record {number} at byte {begins}");
        let ends = format!("the file ends after {left} of {expected} bytes");
        let error = read(cut, &options).unwrap_err();
        assert!(matches!(error, TraceError::Truncated { .. }), "{error}");
        assert!(error.to_string().ends_with(&format!("{said} ({format}): {ends}")), "{error}");
        let whole = read(&file[..begins], &options).unwrap();
        let trace = read(cut, &Options { lenient: true, ..options }).unwrap();
        assert_eq!(replayed(&trace, Mode::Closed), replayed(&whole, Mode::Closed));
        let summary = trace.summary();
        assert_eq!((summary.skipped, &summary.messages[..]), (1, &[format!("{said}: {ends}")][..]));
    }
}

#[test]
fn devices_that_exceed_any_address_space_do_not_fold() {
    let text = "0 0 36028797018963952 8 1\n0 1 36028797018963952 8 1\n";
    let error = read(text.as_bytes(), &Options { devices: Devices::Fold, ..Options::default() }).unwrap_err();
    assert!(matches!(error, TraceError::Option { .. }), "{error}");
    assert!(error.to_string().contains("line 2: device 1 is addressed up to sector 36028797018963960"), "{error}");
    assert_eq!(read(text.as_bytes(), &Options::default()).unwrap().summary().devices, ["0", "1"]);
}

#[test]
fn a_summary_tells_a_newcomer_what_was_read() {
    let trace = read(b"0 5 8 2 1\n3000 4 0 8 0\n", &Options::default()).unwrap();
    assert_eq!(
        trace.summary().to_string(),
        "2 requests to 2 devices (mqsim)\n50.0 % reads; mean read 1 KiB, mean write 4 KiB\n\
         100.0 % do not continue the request before; 50.0 % off 4 KiB boundaries\n\
         touches 8.2 kB in pages of 4 KiB, up to 5.1 kB; spans 3 us\n\
         assumed: read as mqsim: time in ns, size in sectors; mqsim, ssdsim and disksim have the same shape"
    );
}

#[test]
fn mean_sizes_are_of_the_bytes_that_the_file_records() {
    let text = b"0,8,100,R,0.1\n0,16,700,R,0.2\n1,8,512,W,0.3\n1,24,1,W,0.4\n";
    let means = |options: &Options, capacity| {
        let trace = read(text, options).unwrap().within(&[capacity, capacity], true).unwrap();
        let found = &trace.summary().statistics;
        (found.read_bytes_mean(), found.write_bytes_mean(), found.bytes_mean())
    };
    let all = (400.0, 256.5, 328.25);
    assert_eq!(means(&Options::default(), 100), all);
    assert_eq!(means(&Options::default(), 10), all, "wherever they go");
    assert_eq!(means(&Options { devices: Devices::Fold, ..Options::default() }, 4_096), all);
    assert_eq!(means(&Options { devices: Devices::Only(1), ..Options::default() }, 100), (0.0, 256.5, 256.5));
    let sizes = |file: &[u8]| read(file, &Options::default()).unwrap().summary().statistics.bytes_mean();
    assert_eq!((sizes(&vscsi(1)), sizes(&blktrace(false))), ((4096.0 + 513.0) / 2.0, 4096.0));
}

#[test]
fn the_end_of_the_drive_is_refused_or_wrapped() {
    let text = "0 0 8 8 1\n1 0 1000 8 0\n2 0 100 8 1\n";
    let bounded = |bounds| read(text.as_bytes(), &Options { bounds, ..Options::default() });
    assert_eq!(bounded(Bounds::Refuse(1_008)).unwrap().summary().records, 3);
    let error = bounded(Bounds::Refuse(1_007)).unwrap_err();
    assert!(error.to_string().contains("line 2: device 0 is addressed up to sector 1008"), "{error}");
    let wrapped = bounded(Bounds::Wrap(104)).unwrap();
    assert_eq!(wrapped.summary().wrapped, 2);
    let starts: Vec<u64> = replayed(&wrapped, Mode::Closed).iter().map(|io| io.lba.0).collect();
    assert_eq!(starts, [8, 64, 96], "1,000 modulo 104 is 64; 100 would straddle the end");
    let error = bounded(Bounds::Wrap(4)).unwrap_err().to_string();
    assert_eq!(
        error,
        "sample: line 1: a request to device 0 has 8 sectors; expected at most 4, which its namespace has"
    );
    assert!(matches!(bounded(Bounds::Wrap(0)), Err(TraceError::TooLong { .. })));
}

#[test]
fn each_device_is_held_to_its_own_namespace() {
    let text = "0 0 8 8 1\n1 1 1000 8 0\n2 0 100 8 1\n";
    let trace = read(text.as_bytes(), &Options::default()).unwrap();
    assert_eq!(trace.within(&[108, 1_008], false).unwrap().summary().wrapped, 0);
    // Device 1 reaches farther and has room.
    let error = trace.within(&[107, 2_000], false).unwrap_err().to_string();
    assert!(error.contains("line 3: device 0 is addressed up to sector 108; expected at most 107"), "{error}");
    let long = read(b"0 0 8 8 1\n1 1 1000 8 0\n2 1 100 64 1\n", &Options::default()).unwrap();
    let error = long.within(&[104, 60], true).unwrap_err().to_string();
    assert!(error.contains("line 3: a request to device 1 has 64 sectors; expected at most 60"), "{error}");
    let wrapped = trace.within(&[104, 600], true).unwrap();
    let starts: Vec<u64> = replayed(&wrapped, Mode::Closed).iter().map(|io| io.lba.0).collect();
    assert_eq!((starts, wrapped.summary().wrapped), (vec![8, 400, 96], 2), "each modulo the size of its own");
    assert_eq!(wrapped.summary().statistics.end.0, 408, "what is said of the trace is of where it goes");
    let folded = read(text.as_bytes(), &Options { devices: Devices::Fold, ..Options::default() }).unwrap();
    let error = folded.within(&[2_048], false).unwrap_err().to_string();
    assert!(error.contains("line 2: device 1 is addressed up to sector 3056"), "{error}");
}

#[test]
fn requests_behind_later_ones_are_put_in_order_and_counted() {
    let summary = |text: &str| read(text.as_bytes(), &Options::default()).unwrap().summary().clone();
    let mixed = summary("5 0 8 8 1\n9 0 16 8 1\n6 0 24 8 1\n6 0 32 8 1\n9 0 40 8 1\n");
    assert_eq!(mixed.reordered, 2);
    assert!(mixed.to_string().contains("\n2 behind later ones in the file, put in the order of time"), "{mixed}");
    assert_eq!(summary("5 0 8 8 1\n5 0 16 8 1\n6 0 24 8 1\n").reordered, 0);
}

#[test]
fn a_line_without_end_counts_as_one() {
    let text = format!("0,7,512,w,0.5\n{}\n0,x,512,w,0.6\n", "9".repeat(200_000));
    let lenient = Options { format: format_named("spc"), lenient: true, ..Options::default() };
    let trace = read(text.as_bytes(), &lenient).unwrap();
    let places: Vec<&str> = trace.summary().messages.iter().map(|message| &message[..6]).collect();
    assert_eq!((trace.summary().skipped, places), (2, vec!["line 2", "line 3"]));
}

#[test]
fn bad_lines_are_named_or_counted() {
    let text = "0,7,512,w,0.5\n0,x,512,w,0.6\n\n0,7,0,w,0.7\n3,7,99999999999999,r,0.8\n0,7,512,r,0.9\n0,7,512,r\n";
    let strict = Options { format: format_named("spc"), ..Options::default() };
    let error = read(text.as_bytes(), &strict).unwrap_err();
    assert_eq!(error.to_string(), "sample: line 2 (spc): LBA is \"x\"; expected a whole number from 0 to 2^64 - 1");
    let trace = read(text.as_bytes(), &Options { lenient: true, ..strict }).unwrap();
    let summary = trace.summary();
    assert_eq!((summary.records, summary.skipped, summary.messages.len()), (2, 4, 4));
    assert_eq!(summary.devices, ["0"], "a device of skipped lines only is none");
    assert!(summary.messages[1].starts_with("line 4: Size is"), "{:?}", summary.messages);
    let none = read(b"a\nb\n", &Options { lenient: true, ..strict }).unwrap_err();
    assert!(matches!(none, TraceError::NoRequests { skipped: 2, event: None, .. }), "{none}");
}

/// Traces are recorded with the one event or the other; nothing said which one was looked for.
#[test]
fn a_trace_without_the_event_that_counts_is_told_which_that_is() {
    let line = "8,0 3 1 0.000000000 697 D W 223490 + 8 [kworker]\n".as_bytes();
    let strict = Options { format: format_named("blkparse"), ..Options::default() };
    let error = read(line, &strict).unwrap_err();
    assert!(matches!(error, TraceError::NoRequests { event: Some(Event::Queued), .. }), "{error}");
    let said = "no request to replay, for which a Q event is taken; 0 lines or records were skipped";
    assert!(error.to_string().ends_with(said), "{error}");
    assert_eq!(read(line, &Options { event: Some(Event::Issued), ..strict }).unwrap().summary().records, 1);
}

/// As pzstd writes it: before each frame one that holds no text, but the length of the next.
#[test]
fn a_zstd_file_may_begin_with_a_frame_without_text() {
    let mut packed = b"\x50\x2a\x4d\x18\x04\0\0\0\x2a\0\0\0".to_vec();
    packed.extend(zstd::encode_all(&b"0,7,3584,w,0.5\n0,8,512,r,0.6\n"[..], 1).unwrap());
    let trace = read(&packed.repeat(2), &Options::default()).unwrap();
    assert_eq!((trace.summary().format, trace.summary().records), ("spc", 4));
}

/// Whoever refuses a field, its parser or what all formats have in common.
#[test]
fn messages_name_fields_as_their_format_does() {
    let cases = [
        ("spc", "0,7,x,w,0.5\n", "Size is \"x\""),
        ("spc", "0,7,0,w,0.5\n", "Size is \"0\""),
        ("spc", "0,7,2200000000000,w,0.5\n", "Size is \"2200000000000\"; expected fewer than 2^41 bytes"),
        ("spc", "0,36028797018963968,512,w,0.5\n", "LBA is \"36028797018963968\""),
        ("msr", "128166372003061629,hm,1,Read,4096,0,100\n", "Size is \"0\""),
        ("alibaba", "419,W,8192,0,1577808000000046\n", "length is \"0\""),
        ("mqsim", "500 3 64 0 1\n", "size is \"0\""),
        ("arc", "23 0 0 0\n", "blocks is \"0\""),
        ("fiu", "89967394 4892 syslogd 904265560 8 W 6 0\n", "md5 is \"\"; expected nine fields"),
        ("fiu", "89967394 8 W 6 0 ab\n", "major is"),
        ("arc", "36028797018963967 8 0 0\n", "start is \"36028797018963967\""),
    ];
    for (format, text, expected) in cases {
        let options = Options { format: format_named(format), ..Options::default() };
        let error = read(text.as_bytes(), &options).unwrap_err().to_string();
        assert!(error.contains(expected), "{format}: {error} without {expected}");
    }
}

#[test]
fn files_that_are_no_traces_are_refused() {
    let error = |bytes: &[u8]| read(bytes, &Options::default()).unwrap_err();
    assert!(matches!(error(b""), TraceError::Empty { .. }));
    assert!(matches!(error(&zstd::encode_all(&b""[..], 1).unwrap()), TraceError::Empty { .. }));
    assert!(matches!(error(b"hello\nworld\n"), TraceError::Unrecognised { .. }));
    assert!(matches!(error(&vec![0xa5; 200_000]), TraceError::Unrecognised { .. }));
    assert!(matches!(error(b"\n\n \n"), TraceError::Unrecognised { .. }));
    let named = Options { format: format_named("fiu"), ..Options::default() };
    assert!(matches!(read(&vec![0xa5; 200_000], &named).unwrap_err(), TraceError::Bad { .. }));
    let missing = Trace::open(Path::new("no/such/file"), &Options::default()).unwrap_err();
    assert!(matches!(missing, TraceError::Open { .. }) && missing.to_string().contains("no/such/file"));
    for sample in [vscsi(1), vscsi(2), blktrace(true)] {
        let cut = error(&sample[..sample.len() - 1]);
        assert!(matches!(cut, TraceError::Truncated { .. }), "{cut}");
    }
}

fn every_option() -> Vec<Options> {
    let mut all = Vec::new();
    for (lenient, devices, bounds) in [
        (false, Devices::Separate, Bounds::Open),
        (true, Devices::Fold, Bounds::Wrap(1_000)),
        (true, Devices::Only(0), Bounds::Refuse(1 << 40)),
    ] {
        // Most formats refuse a unit of sizes; then the reader has no promise to keep.
        for count_unit in [None, Some(CountUnit::Pages)] {
            all.push(Options { lenient, devices, bounds, count_unit, ..Options::default() });
        }
    }
    all
}

/// Reads with every format by name and by recognition; a trace that is accepted keeps its promises.
fn survives(bytes: &[u8]) {
    for options in every_option() {
        for format in FORMATS.iter().copied().map(Some).chain([None]) {
            let Ok(trace) = read(bytes, &Options { format, ..options }) else { continue };
            let statistics = &trace.summary().statistics;
            assert_eq!(statistics.ios(), trace.summary().records);
            for io in replayed(&trace, Mode::Closed) {
                assert!(io.sectors > 0 || io.kind == F);
                assert!(usize::from(io.device) < trace.summary().devices.len());
                if let Bounds::Wrap(capacity) = options.bounds {
                    assert!(io.end().0 <= capacity);
                }
            }
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn no_bytes_break_a_parser(bytes in proptest::collection::vec(any::<u8>(), 0..300)) {
        survives(&bytes);
    }

    #[test]
    fn no_text_breaks_a_parser(text in "([0-9]{1,20}[ ,.]|[rRwWQDF+]|Read,|fio version 3 iolog\n|\n){0,60}") {
        survives(text.as_bytes());
    }

    #[test]
    fn no_flipped_bytes_break_a_parser(
        sample in 0usize..17, flips in proptest::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 1..6),
    ) {
        let mut bytes = samples()[sample].1.clone();
        for (at, value) in flips {
            let at = at.index(bytes.len());
            bytes[at] = value;
        }
        survives(&bytes);
        let mut packed = zstd::encode_all(bytes.as_slice(), 1).unwrap();
        let middle = packed.len() / 2;
        packed[middle] ^= 0x10;
        survives(&packed);
    }
}
