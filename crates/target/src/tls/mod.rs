//! TLS 1.3 on the connections of NVMe/TCP: a host and the drive share a key, and whoever lacks it reads, writes and pretends nothing
//! (TCP Transport §3.6.1).
//!
//! ```text
//! host                                        target
//!  │ ClientHello: identities, "NVMe0R01 HOST SUBSYSTEM" ──▶ │  looks for one it knows
//!  │ ◀──────── ServerHello: that one, Finished ──────────── │  or the end of the connection (close_notify): the library tells no more
//!  │ Finished ────────────────────────────────────────────▶ │
//!  │ ICReq, Connect of HOST to SUBSYSTEM ──────────────────▶ │  other names are refused
//! ```
//!
//! # What it leaves out
//! - A secure channel that authentication sets up (SC_C of DH-HMAC-CHAP), and certificates: keys are configured.
//! - Keys are not changed while a connection lives; a host may ask for a new traffic key, which TLS does by itself.

mod key;
mod stream;

pub use key::{TlsKey, TlsKeyError};
pub(crate) use stream::Stream;

use crate::auth::{Hash, Keys};
use key::Offer;
use nvme::spec::fabrics::DISCOVERY_SUBSYSTEM;
use s2n_tls::config::Config;
use s2n_tls::connection::{Builder, Connection};
use s2n_tls::enums::{Mode, PskHmac};
use s2n_tls::error::Error;
use s2n_tls::psk::Psk;
use s2n_tls::security::DEFAULT_TLS13;
use std::sync::Arc;

/// Who a connection is for, by the key that its ends proved to have.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Parties {
    pub(crate) host: String,
    pub(crate) subsystem: String,
}

/// What every connection begins with: the keys of all hosts.
#[derive(Clone)]
pub(crate) struct Tls {
    config: Config,
    known: Arc<[(Parties, Offer)]>,
}

impl Tls {
    /// For the hosts that have a key, at a subsystem and at its discovery; nothing where none has.
    ///
    /// # Errors
    /// The library cannot set itself up.
    pub(crate) fn new(keys: &Keys, subsystem: &str) -> Result<Option<Tls>, Error> {
        let known: Vec<_> = keys
            .tls()
            .flat_map(|(host, key)| [subsystem, DISCOVERY_SUBSYSTEM].map(|subsystem| (host, key, subsystem)))
            .flat_map(|(host, key, subsystem)| {
                let parties = Parties { host: host.into(), subsystem: subsystem.into() };
                key.offers(host, subsystem).into_iter().map(move |offer| (parties.clone(), offer))
            })
            .collect();
        if known.is_empty() {
            return Ok(None);
        }
        let mut config = Config::builder();
        config.set_security_policy(&DEFAULT_TLS13)?;
        // Whoever lacks a key learns so at once: what is delayed elsewhere are ciphers of older versions.
        config.set_max_blinding_delay(0)?;
        Ok(Some(Tls { config: config.build()?, known: known.into() }))
    }

    /// Who a connection is for that has shaken hands.
    fn parties(&self, connection: &Connection) -> Option<Parties> {
        let mut identity = vec![0; connection.negotiated_psk_identity_length().ok()?];
        connection.negotiated_psk_identity(&mut identity).ok()?;
        let (parties, _) = self.known.iter().find(|(_, offer)| offer.identity.as_bytes() == identity)?;
        Some(parties.clone())
    }
}

impl Builder for Tls {
    type Output = Connection;

    fn build_connection(&self, mode: Mode) -> Result<Connection, Error> {
        let mut connection = self.config.build_connection(mode)?;
        for (_, offer) in &*self.known {
            connection.append_psk(&psk(offer)?)?;
        }
        Ok(connection)
    }
}

fn psk(offer: &Offer) -> Result<Psk, Error> {
    let mut psk = Psk::builder()?;
    psk.set_identity(offer.identity.as_bytes())?.set_secret(&offer.secret)?.set_hmac(match offer.suite {
        Hash::Sha384 => PskHmac::SHA384,
        _ => PskHmac::SHA256,
    })?;
    psk.build()
}
