//! The secrets of hosts, in the form in which tools write them: `DHHC-1:HASH:BASE64:` (Base §8.13.5.8).

use super::hash::Hash;
use crate::tls::TlsKey;
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use std::collections::BTreeMap;
use std::fmt;
use thiserror::Error;

/// What a secret's text can be besides one.
#[derive(Clone, Copy, Debug, Error, PartialEq, Eq)]
pub enum SecretError {
    /// Another form.
    #[error("expected DHHC-1:00: to DHHC-1:03:, then base64, then a colon (`nvme gen-dhchap-key` writes one)")]
    Form,
    /// Too short or too long.
    #[error("it has {0} bytes; expected 32, 48 or 64 and 4 of CRC-32")]
    Length(usize),
    /// A slip of the pen.
    #[error("its CRC-32 does not fit: it was not copied whole")]
    Checksum,
}

/// A secret that a host, or the subsystem towards it, proves to know.
#[derive(Clone, PartialEq, Eq)]
pub struct Secret {
    key: Vec<u8>,
    /// The hash that the key goes through with its owner's name, if through one.
    hash: Option<Hash>,
}

impl fmt::Debug for Secret {
    /// Without the key.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Secret").field("bytes", &self.key.len()).finish_non_exhaustive()
    }
}

impl Secret {
    /// Reads a secret's text.
    ///
    /// # Errors
    /// What is wrong with it.
    pub fn parse(text: &str) -> Result<Secret, SecretError> {
        let (hash, bytes) = written(text, "DHHC-1").ok_or(SecretError::Form)?;
        let hash = match hash {
            "00" => None,
            "01" | "02" | "03" => Hash::of(hash.as_bytes()[1] - b'0'),
            _ => return Err(SecretError::Form),
        };
        if ![36, 52, 68].contains(&bytes.len()) {
            return Err(SecretError::Length(bytes.len()));
        }
        Ok(Secret { key: checked(bytes).ok_or(SecretError::Checksum)?, hash })
    }

    /// The key as its owner, of this name, uses it (Base §8.13.5.7).
    pub(crate) fn of(&self, owner: &str) -> Vec<u8> {
        match self.hash {
            Some(hash) => hash.keyed(&self.key, &[owner.as_bytes(), b"NVMe-over-Fabrics"]),
            None => self.key.clone(),
        }
    }
}

/// The name of a hash, and a key with its checksum, out of the text `KIND:HASH:BASE64:`.
pub(crate) fn written<'a>(text: &'a str, kind: &str) -> Option<(&'a str, Vec<u8>)> {
    let mut parts = text.trim().strip_prefix(kind)?.strip_prefix(':')?.split(':');
    let (hash, Some(body), Some(""), None) = (parts.next()?, parts.next(), parts.next(), parts.next()) else {
        return None;
    };
    Some((hash, STANDARD.decode(body).ok()?))
}

/// A key without its checksum, where that fits.
pub(crate) fn checked(mut bytes: Vec<u8>) -> Option<Vec<u8>> {
    let checksum = bytes.split_off(bytes.len().checked_sub(4)?);
    (crc32fast::hash(&bytes).to_le_bytes()[..] == checksum).then_some(bytes)
}

/// What a host and the subsystem prove to know.
#[derive(Clone, Debug)]
pub struct Pair {
    /// The host.
    pub host: Secret,
    /// The subsystem, if the host asks.
    pub controller: Option<Secret>,
}

/// What is known of a host.
#[derive(Clone, Debug, Default)]
pub struct KnownHost {
    /// What has to be proved on every queue.
    pub secrets: Option<Pair>,
    /// The key of its connections.
    pub tls: Option<TlsKey>,
}

/// The secrets and keys of all hosts that may connect.
#[derive(Clone, Debug, Default)]
pub struct Keys {
    hosts: BTreeMap<String, KnownHost>,
}

impl Keys {
    /// Lets the host of this name in, if it proves to be it.
    pub fn admit(&mut self, name: String, host: KnownHost) {
        self.hosts.insert(name, host);
    }

    /// Whether a host of this name is known.
    pub(crate) fn knows(&self, name: &str) -> bool {
        self.hosts.contains_key(name)
    }

    /// What a host has to prove on every queue, if it has to.
    pub(crate) fn secrets(&self, name: &str) -> Option<&Pair> {
        self.hosts.get(name)?.secrets.as_ref()
    }

    /// The hosts that have a key for TLS.
    pub(crate) fn tls(&self) -> impl Iterator<Item = (&str, &TlsKey)> {
        self.hosts.iter().filter_map(|(name, host)| Some((name.as_str(), host.tls.as_ref()?)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn text(hash: &str, key: &[u8]) -> String {
        let mut bytes = key.to_vec();
        bytes.extend(crc32fast::hash(key).to_le_bytes());
        format!("DHHC-1:{hash}:{}:", STANDARD.encode(bytes))
    }

    /// The first is the example of the nvme-cli manual.
    #[test]
    fn secrets_are_read_and_slips_are_found() {
        let known = "DHHC-1:00:ia6zGodOr4SEG0Zzaw398rpY0wqipUWj4jWjUh4HWUz6aQ2n:";
        assert!(Secret::parse(known).is_ok());
        let [short, long] = [Secret::parse(&text("01", &[3; 32])), Secret::parse(&text("03", &[3; 64]))];
        assert_eq!((short.unwrap().of("a").len(), long.unwrap().of("a").len()), (32, 64));
        assert_eq!(Secret::parse(&known.replace("ia6z", "ia6y")), Err(SecretError::Checksum));
        assert_eq!(Secret::parse(&text("00", &[3; 31])), Err(SecretError::Length(35)));
        for broken in ["", "DHHC-1:00:", "DHHC-1:04:AAAA:", "DHHC-1:00:***:", "DHHC-2:00:AAAA:", "DHHC-1:00:AAAA:x"] {
            assert_eq!(Secret::parse(broken), Err(SecretError::Form), "{broken}");
        }
        assert!(!format!("{:?}", Secret::parse(known).unwrap()).contains("ia6z"));
    }
}
