//! The hashes of DH-HMAC-CHAP, and the keyed ones made of them (Base figure 451).

use hmac::{Hmac, KeyInit, Mac};
use sha2::{Digest, Sha256, Sha384, Sha512};

/// A hash that both ends know.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Hash {
    Sha256,
    Sha384,
    Sha512,
}

/// All of them, the one that is chosen first in front.
pub(crate) const HASHES: [Hash; 3] = [Hash::Sha512, Hash::Sha384, Hash::Sha256];

impl Hash {
    /// By its identifier.
    pub(crate) fn of(id: u8) -> Option<Hash> {
        HASHES.into_iter().find(|hash| hash.id() == id)
    }

    pub(crate) fn id(self) -> u8 {
        match self {
            Hash::Sha256 => 1,
            Hash::Sha384 => 2,
            Hash::Sha512 => 3,
        }
    }

    /// Bytes of its value.
    pub(crate) fn bytes(self) -> usize {
        match self {
            Hash::Sha256 => 32,
            Hash::Sha384 => 48,
            Hash::Sha512 => 64,
        }
    }

    /// The hash of a text.
    pub(crate) fn digest(self, text: &[u8]) -> Vec<u8> {
        match self {
            Hash::Sha256 => Sha256::digest(text).to_vec(),
            Hash::Sha384 => Sha384::digest(text).to_vec(),
            Hash::Sha512 => Sha512::digest(text).to_vec(),
        }
    }

    /// The keyed hash of parts, one after another.
    pub(crate) fn keyed(self, key: &[u8], parts: &[&[u8]]) -> Vec<u8> {
        fn sum<M: Mac + KeyInit>(key: &[u8], parts: &[&[u8]]) -> Vec<u8> {
            let mut mac = <M as KeyInit>::new_from_slice(key).expect("a key of any length will do");
            parts.iter().for_each(|part| mac.update(part));
            mac.finalize().into_bytes().to_vec()
        }
        match self {
            Hash::Sha256 => sum::<Hmac<Sha256>>(key, parts),
            Hash::Sha384 => sum::<Hmac<Sha384>>(key, parts),
            Hash::Sha512 => sum::<Hmac<Sha512>>(key, parts),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// RFC 4231, test case 2.
    #[test]
    fn the_keyed_hashes_are_those_of_the_rfc() {
        let begin = |hash: Hash| hash.keyed(b"Jefe", &[b"what do ya want ", b"for nothing?"])[..4].to_vec();
        assert_eq!(begin(Hash::Sha256), [0x5b, 0xdc, 0xc1, 0x46]);
        assert_eq!(begin(Hash::Sha384), [0xaf, 0x45, 0xd2, 0xe3]);
        assert_eq!(begin(Hash::Sha512), [0x16, 0x4b, 0x7a, 0x7b]);
        for hash in HASHES {
            assert_eq!((Hash::of(hash.id()), hash.digest(b"").len()), (Some(hash), hash.bytes()));
        }
        assert_eq!(Hash::of(4), None);
    }
}
