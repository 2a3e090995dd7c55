//! Front ends: NVMe/TCP connections and a virtual machine, before a drive that answers at once.

use crate::controller::settings;
use crate::reader::Reader;
use target::rehearsal::{Rehearsal, Step};

/// Two connections: each part of the input says to which its bytes go, and how many they are.
pub(crate) fn connections(bytes: &[u8]) {
    let mut input = Reader(bytes);
    let parts = std::iter::from_fn(|| {
        (!input.is_empty()).then(|| {
            let (connection, length) = (input.byte(), input.half());
            (usize::from(connection), input.bytes(length.into()))
        })
    });
    Rehearsal::new(settings()).converse(parts);
}

/// A machine: each part of the input is a step of its monitor or its guest.
pub(crate) fn machine(bytes: &[u8]) {
    let mut input = Reader(bytes);
    let steps = std::iter::from_fn(|| {
        (!input.is_empty()).then(|| match input.byte() % 7 {
            0 => Step::Register(input.half().into(), input.word()),
            1 => {
                let (command, length) = (input.half(), input.byte());
                Step::Message(command % 16, input.bytes((length & 0x7f).into()), length & 0x80 != 0)
            }
            2 => Step::Command(0, input.submission()),
            3 => Step::Command(1, input.submission()),
            4 => Step::Take(input.half(), input.byte().into()),
            5 => Step::Poke(input.half().into(), input.long()),
            _ => Step::Start,
        })
    });
    Rehearsal::new(settings()).run_machine(steps);
}
