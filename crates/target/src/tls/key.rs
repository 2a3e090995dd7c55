//! The pre-shared keys of hosts for TLS, in the form in which tools write them, `NVMeTLSkey-1:HASH:BASE64:`, and what TLS is given of
//! them: an identity and a secret for each subsystem (TCP Transport §3.6.1).

use crate::auth::{Hash, checked, written};
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use std::fmt;
use thiserror::Error;

/// Most bytes of a label's context.
const CONTEXT_MAX: usize = 255;

/// What a key's text can be besides one.
#[derive(Clone, Copy, Debug, Error, PartialEq, Eq)]
pub enum TlsKeyError {
    /// Another form.
    #[error("expected NVMeTLSkey-1:00:, 01: or 02:, then base64, then a colon (`nvme gen-tls-key` writes one)")]
    Form,
    /// Too short or too long, by itself or for its hash.
    #[error("it has {0} bytes; expected 32 with hash 00 or 01, or 48 with hash 00 or 02, and 4 of CRC-32")]
    Length(usize),
    /// A slip of the pen.
    #[error("its CRC-32 does not fit: it was not copied whole")]
    Checksum,
}

/// A key that a host and its owner configured (the configured PSK).
#[derive(Clone, PartialEq, Eq)]
pub struct TlsKey {
    key: Vec<u8>,
    /// Whether the host's name goes into it.
    is_bound: bool,
    /// The hash of the cipher suite that it is for, and by which all is made of it.
    suite: Hash,
    /// Whether its host derives as libnvme did before 1.16.
    is_older: bool,
}

impl fmt::Debug for TlsKey {
    /// Without the key.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("TlsKey").field("bytes", &self.key.len()).finish_non_exhaustive()
    }
}

/// What TLS is given for one host, one subsystem, and one form of the identity.
#[derive(Clone, PartialEq, Eq)]
pub(crate) struct Offer {
    pub(crate) identity: String,
    pub(crate) secret: Vec<u8>,
    pub(crate) suite: Hash,
}

impl TlsKey {
    /// Reads a key's text.
    ///
    /// # Errors
    /// What is wrong with it.
    pub fn parse(text: &str) -> Result<TlsKey, TlsKeyError> {
        let (hash, bytes) = written(text, "NVMeTLSkey-1").ok_or(TlsKeyError::Form)?;
        let suite = match (hash, bytes.len()) {
            ("00" | "01", 36) => Hash::Sha256,
            ("00" | "02", 52) => Hash::Sha384,
            ("00" | "01" | "02", bytes) => return Err(TlsKeyError::Length(bytes)),
            _ => return Err(TlsKeyError::Form),
        };
        Ok(TlsKey { key: checked(bytes).ok_or(TlsKeyError::Checksum)?, is_bound: hash != "00", suite, is_older: false })
    }

    /// The key of a host with libnvme before 1.16, which left the lengths out of labels, and turned that of the result round: all that
    /// is derived of a key is another then.
    #[must_use]
    pub fn of_older_libnvme(self) -> TlsKey {
        TlsKey { is_older: true, ..self }
    }

    /// How a host of this name presents itself at a subsystem: the identity that newer hosts use, and the secret under it.
    pub fn presented(&self, host: &str, subsystem: &str) -> (String, Vec<u8>) {
        let newest = self.offers(host, subsystem).pop().expect("the newer form has a place for every name");
        (newest.identity, newest.secret)
    }

    /// What a host of this name is known by at a subsystem, in both forms of the identity that hosts use. The first form has no place
    /// for the longest names.
    pub(crate) fn offers(&self, host: &str, subsystem: &str) -> Vec<Offer> {
        let suite = self.suite;
        let expand = if self.is_older { expand_older } else { expand };
        let retained = match self.is_bound {
            true => expand(suite, &extract(suite, &self.key), "HostNQN", host.as_bytes()),
            false => self.key.clone(),
        };
        let secret = |context: &str| expand(suite, &extract(suite, &retained), "nvme-tls-psk", context.as_bytes());
        let names = format!("R{:02} {host} {subsystem}", suite.id());
        let digest = suite.keyed(&retained, &[host.as_bytes(), b" ", subsystem.as_bytes(), b" NVMe-over-Fabrics"]);
        let digest = STANDARD.encode(digest);
        let old = format!("NVMe0{names}");
        let new = Offer {
            secret: secret(&format!("{:02} {digest}", suite.id())),
            identity: format!("NVMe1{names} {digest}"),
            suite,
        };
        let old = (old.len() <= CONTEXT_MAX).then(|| Offer { secret: secret(&old), identity: old, suite });
        old.into_iter().chain([new]).collect()
    }
}

/// HKDF-Extract without salt (RFC 5869).
fn extract(hash: Hash, key: &[u8]) -> Vec<u8> {
    hash.keyed(&vec![0; hash.bytes()], &[key])
}

/// HKDF-Expand-Label to as many bytes as the hash has (RFC 8446 §7.1): one block of HKDF-Expand.
fn expand(hash: Hash, key: &[u8], label: &str, context: &[u8]) -> Vec<u8> {
    let label = format!("tls13 {label}");
    let length = (hash.bytes() as u16).to_be_bytes();
    let [label_bytes, context_bytes] = [label.len() as u8, context.len() as u8];
    hash.keyed(key, &[&length, &[label_bytes], label.as_bytes(), &[context_bytes], context, &[1]])
}

/// The same as libnvme did it before 1.16.
fn expand_older(hash: Hash, key: &[u8], label: &str, context: &[u8]) -> Vec<u8> {
    let length = (hash.bytes() as u16).to_le_bytes();
    hash.keyed(key, &[&length, b"tls13 ", label.as_bytes(), context, &[1]])
}

#[cfg(test)]
mod tests {
    use super::*;

    const KEY: &str = "NVMeTLSkey-1:01:VRLbtnN9AQb2WXW3c9+wEf/DRLz0QuLdbYvEhwtdWwNf9LrZ:";
    const LONG: &str = "NVMeTLSkey-1:02:VRLbtnN9AQb2WXW3c9+wEf/DRLz0QuLdbYvEhwtdWwP/w0S89ELi3W2LxIcLXVsDn8kXZQ==:";

    /// Keys and identities by which libnvme tests itself.
    #[test]
    fn identities_are_those_of_libnvme() {
        let key = |text: &str| TlsKey::parse(text).unwrap();
        let of = |key: TlsKey| {
            let offers = key.offers("nqn.psk-test-host", "nqn.psk-test-subsys");
            offers.into_iter().map(|offer| offer.identity).collect::<Vec<_>>()
        };
        assert_eq!(
            of(key(KEY)),
            [
                "NVMe0R01 nqn.psk-test-host nqn.psk-test-subsys",
                "NVMe1R01 nqn.psk-test-host nqn.psk-test-subsys iSbjiStwJ/1TrTvDlt2fjFmzvsytOJelidNnA+X5lEU=",
            ]
        );
        assert_eq!(
            of(key(LONG))[1],
            "NVMe1R02 nqn.psk-test-host nqn.psk-test-subsys \
             QhW2+Rp6RzHlNtCslyRxMnwJ11tKKhz8JCAQpQ+XUD8f9td1VeH5h53yz2wKJG1a"
        );
        let older = of(key(KEY).of_older_libnvme());
        assert!(older[1].ends_with(" 66GuqV08TsAGII39teWUfwQwizjv06Jy8jOcX3NAAzM="), "{}", older[1]);
    }

    /// RFC 8448 §3: the early secret expanded with "derived" and the hash of nothing.
    #[test]
    fn labels_are_expanded_as_in_tls() {
        let early = extract(Hash::Sha256, &[0; 32]);
        let derived = expand(Hash::Sha256, &early, "derived", &Hash::Sha256.digest(b""));
        assert_eq!((&early[..4], &derived[..4]), (&[0x33, 0xad, 0x0a, 0x1c][..], &[0x6f, 0x26, 0x15, 0xa1][..]));
    }

    #[test]
    fn slips_in_keys_are_found() {
        assert!(TlsKey::parse(&KEY.replace(":01:", ":00:")).is_ok());
        assert_eq!(TlsKey::parse(&KEY.replace("VRLb", "VRLc")), Err(TlsKeyError::Checksum));
        assert_eq!(TlsKey::parse(&KEY.replace(":01:", ":02:")), Err(TlsKeyError::Length(36)));
        for broken in ["", "NVMeTLSkey-1:01:", "NVMeTLSkey-2:01:AAAA:", "DHHC-1:00:AAAA:", &KEY.replace(":01:", ":03:")]
        {
            assert_eq!(TlsKey::parse(broken), Err(TlsKeyError::Form), "{broken}");
        }
        assert!(!format!("{:?}", TlsKey::parse(KEY).unwrap()).contains("VRLb"));
    }

    #[test]
    fn names_of_any_length_have_an_identity() {
        let long = "n".repeat(223);
        let offers = TlsKey::parse(KEY).unwrap().offers(&long, &long);
        assert_eq!((offers.len(), &offers[0].identity[..8]), (1, "NVMe1R01"));
    }
}
