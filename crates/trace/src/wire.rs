//! The wire format of protocol buffers, as far as writing needs it (<https://protobuf.dev/programming-guides/encoding>).

/// Appends a base-128 variable-length integer.
#[inline]
pub(crate) fn varint(out: &mut Vec<u8>, mut value: u64) {
    while value >= 0x80 {
        out.push(value as u8 | 0x80);
        value >>= 7;
    }
    out.push(value as u8);
}

/// Appends an integer field. Signed integers of the schema's `int64` travel as their two's complement.
#[inline]
pub(crate) fn number(out: &mut Vec<u8>, field: u32, value: u64) {
    varint(out, u64::from(field) << 3);
    varint(out, value);
}

/// Appends a field of the schema's `fixed64`.
#[inline]
pub(crate) fn fixed(out: &mut Vec<u8>, field: u32, value: u64) {
    varint(out, u64::from(field) << 3 | 1);
    out.extend_from_slice(&value.to_le_bytes());
}

/// Appends a length-delimited field: a string or a message.
#[inline]
pub(crate) fn bytes(out: &mut Vec<u8>, field: u32, content: &[u8]) {
    varint(out, u64::from(field) << 3 | 2);
    varint(out, content.len() as u64);
    out.extend_from_slice(content);
}

/// A message made of parts: for the rare ones, where a vector of its own costs nothing that counts.
pub(crate) fn message(build: impl FnOnce(&mut Vec<u8>)) -> Vec<u8> {
    let mut content = Vec::new();
    build(&mut content);
    content
}
