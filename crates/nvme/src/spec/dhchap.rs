//! DH-HMAC-CHAP: the messages by which a host and a controller prove to each other that they know a secret (Base §8.13.5).
//!
//! Of each message the fixed part is a structure here; values of variable length follow it.

use super::layout::layout;

/// SECP of the security commands that carry these messages (Base §6.1, §6.2).
pub const PROTOCOL: u8 = 0xe9;
/// SPSP of them.
pub const PROTOCOL_SPECIFIC: u16 = 0x0101;

/// AUTH_TYPE of messages that all protocols share.
pub const COMMON: u8 = 0;
/// AUTH_TYPE of this protocol's own.
pub const DHCHAP: u8 = 1;

/// AUTH_ID of each message.
pub mod message {
    /// From the host: what it can do.
    pub const NEGOTIATE: u8 = 0x00;
    /// From the controller.
    pub const CHALLENGE: u8 = 0x01;
    /// From the host.
    pub const REPLY: u8 = 0x02;
    /// From the controller: the host is who it says.
    pub const SUCCESS1: u8 = 0x03;
    /// From the host: so is the controller.
    pub const SUCCESS2: u8 = 0x04;
    /// From the host: the controller is not.
    pub const FAILURE2: u8 = 0xf0;
    /// From the controller.
    pub const FAILURE1: u8 = 0xf1;
}

/// Reason code of a failure: the one there is.
pub const FAILED: u8 = 1;

/// Explanations of a failure.
pub mod explanation {
    /// The response is wrong.
    pub const AUTHENTICATION: u8 = 0x01;
    /// No protocol that both know.
    pub const PROTOCOL: u8 = 0x02;
    /// What is said of a secure channel does not fit (secure channel concatenation mismatch).
    pub const CHANNEL: u8 = 0x03;
    /// No hash that both know.
    pub const HASH: u8 = 0x04;
    /// No group that both know.
    pub const GROUP: u8 = 0x05;
    /// A message that does not follow.
    pub const PAYLOAD: u8 = 0x06;
    /// A message that is not what it should be.
    pub const MESSAGE: u8 = 0x07;
}

/// Most identifiers of a list of [`Offer`]; that of groups begins behind as many places for hashes.
pub const LIST_MAX: usize = 30;

layout! {
    /// AUTH_Negotiate; [`Offer`]s follow, as many as it says.
    Negotiate[8] {
        /// [`COMMON`].
        kind, set_kind: u8 = 0;
        /// [`message::NEGOTIATE`].
        id, set_id: u8 = 1;
        /// Number of the transaction; all its messages carry it.
        transaction, set_transaction: u16 = 4;
        /// Whether a secure channel is to follow (SC_C).
        secure_channel, set_secure_channel: u8 = 6;
        /// How many offers follow.
        offers, set_offers: u8 = 7;
    }
}

layout! {
    /// A protocol that the host can use.
    Offer[64] {
        /// 1 is DH-HMAC-CHAP.
        protocol, set_protocol: u8 = 0;
        /// Hashes in the list.
        hash_count, set_hash_count: u8 = 2;
        /// Groups in the list.
        group_count, set_group_count: u8 = 3;
        /// Hashes, the host's favourite first.
        hashes, set_hashes: [u8; LIST_MAX] = 4;
        /// Diffie-Hellman groups, the host's favourite first.
        groups, set_groups: [u8; LIST_MAX] = 34;
    }
}

layout! {
    /// DH-HMAC-CHAP_Challenge; the challenge follows, then the controller's Diffie-Hellman value.
    Challenge[16] {
        /// [`DHCHAP`].
        kind, set_kind: u8 = 0;
        /// [`message::CHALLENGE`].
        id, set_id: u8 = 1;
        /// See [`Negotiate`].
        transaction, set_transaction: u16 = 4;
        /// Bytes of the challenge: those of the hash.
        length, set_length: u8 = 6;
        /// The hash that was chosen.
        hash, set_hash: u8 = 8;
        /// The group that was chosen.
        group, set_group: u8 = 9;
        /// Bytes of the Diffie-Hellman value.
        value_bytes, set_value_bytes: u16 = 10;
        /// Sequence number.
        sequence, set_sequence: u32 = 12;
    }
}

layout! {
    /// DH-HMAC-CHAP_Reply; the response follows, then as many bytes of the host's own challenge, then its Diffie-Hellman value.
    Reply[16] {
        /// [`DHCHAP`].
        kind, set_kind: u8 = 0;
        /// [`message::REPLY`].
        id, set_id: u8 = 1;
        /// See [`Negotiate`].
        transaction, set_transaction: u16 = 4;
        /// Bytes of the response.
        length, set_length: u8 = 6;
        /// Whether the host challenges the controller too (CVALID).
        challenges, set_challenges: u8 = 8;
        /// Bytes of the Diffie-Hellman value.
        value_bytes, set_value_bytes: u16 = 10;
        /// Sequence number of the host's challenge.
        sequence, set_sequence: u32 = 12;
    }
}

layout! {
    /// DH-HMAC-CHAP_Success1; the controller's response follows if the host challenged it.
    Success1[16] {
        /// [`DHCHAP`].
        kind, set_kind: u8 = 0;
        /// [`message::SUCCESS1`].
        id, set_id: u8 = 1;
        /// See [`Negotiate`].
        transaction, set_transaction: u16 = 4;
        /// Bytes of the response.
        length, set_length: u8 = 6;
        /// Whether there is a response (RVALID).
        responds, set_responds: u8 = 8;
    }
}

layout! {
    /// DH-HMAC-CHAP_Success2, and both failures, which have a reason too.
    Outcome[16] {
        /// Of success [`DHCHAP`], of a failure [`COMMON`].
        kind, set_kind: u8 = 0;
        /// Which of them.
        id, set_id: u8 = 1;
        /// See [`Negotiate`].
        transaction, set_transaction: u16 = 4;
        /// Of a failure: [`FAILED`].
        reason, set_reason: u8 = 6;
        /// Of a failure: one of [`explanation`].
        explanation, set_explanation: u8 = 7;
    }
}
