//! NVMe over Fabrics: its commands, what Connect carries, and the discovery log (Base §6 and §5.16.1.23).

use super::Status;
use super::Submission;
use super::layout::layout;

/// The opcode of every fabrics command; the byte where others have their namespace says which (Base §6).
pub const OPCODE: u8 = 0x7f;

/// The name of every discovery subsystem (Base §4.5).
pub const DISCOVERY_SUBSYSTEM: &str = "nqn.2014-08.org.nvmexpress.discovery";

/// TRTYPE of a transport: TCP (Base §5.16.1.23).
pub const TCP: u8 = 3;

/// The controller a host asks for when any will do (Base §6.3, CNTLID of the data).
pub const ANY_CONTROLLER: u16 = 0xffff;

/// Bytes of a qualified name with its end (Base §4.5).
pub const NAME_BYTES: usize = 256;

/// Base §6.3 and §6.4, command specific 80h: a Connect or a Disconnect of a format that is not known, now and ever.
pub const INCOMPATIBLE_FORMAT: Status = Status(0x4180);
/// Base §6.3, command specific 81h: no controller or queue is free; the host may come again.
pub const CONTROLLER_BUSY: Status = Status(0x181);
/// Base §6.3, command specific 82h; the result names the field, see [`invalid_parameter`].
pub const INVALID_PARAMETERS: Status = Status(0x4182);
/// Base §6.3, command specific 84h: this host may not use the subsystem.
pub const INVALID_HOST: Status = Status(0x4184);

/// Base §6.4, command specific 85h: a queue of this kind is not ended by a Disconnect.
pub const INVALID_QUEUE_TYPE: Status = Status(0x4185);

/// Base §6.3, command specific 91h: the host has not proved yet who it is.
pub const AUTHENTICATION_REQUIRED: Status = Status(0x4191);

/// In the result of a Connect: the queue is of use once the host has proved who it is (AUTHREQ.ATR).
pub const AUTHENTICATE_FIRST: u64 = 1 << 17;

/// The result of a Connect that failed with [`INVALID_PARAMETERS`]: the first byte in error, of the command or of its
/// data.
pub const fn invalid_parameter(byte: u16, in_data: bool) -> u64 {
    byte as u64 | (in_data as u64) << 16
}

/// A fabrics command that this controller answers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FabricsCommand {
    /// Base §6.6.
    PropertySet(Property, u64),
    /// Base §6.3.
    Connect(Connect),
    /// Base §6.5.
    PropertyGet(Property),
    /// Base §6.4, of this format of the command, which is 0.
    Disconnect(u16),
    /// Base §6.2: a message from the host.
    AuthenticationSend(Authentication),
    /// Base §6.1: a message to the host.
    AuthenticationReceive(Authentication),
}

/// A security command's message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Authentication {
    /// The protocol (SECP).
    pub protocol: u8,
    /// What is specific to it (SPSP).
    pub specific: u16,
    /// Bytes sent, or room for what is received.
    pub bytes: u32,
}

/// Which property, and how much of it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Property {
    /// Where it lies.
    pub offset: u32,
    /// 4 or 8.
    pub bytes: u32,
}

/// What a Connect command itself says.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Connect {
    /// Format of the record; 0 is the only one.
    pub format: u16,
    /// The queue to be.
    pub queue: u16,
    /// Its entries, from zero.
    pub last_entry: u16,
    /// Whether the host asks that completions carry no submission queue head.
    pub without_flow_control: bool,
    /// How long the host may be silent, in milliseconds; 0 is for ever.
    pub keep_alive_ms: u32,
}

const CONNECT: u32 = 0x01;
const PROPERTY_SET: u32 = 0x00;
const PROPERTY_GET: u32 = 0x04;
const AUTHENTICATION_SEND: u32 = 0x05;
const AUTHENTICATION_RECEIVE: u32 = 0x06;
const DISCONNECT: u32 = 0x08;
const EIGHT_BYTES: u32 = 1;
const NO_FLOW_CONTROL: u32 = 1 << 18;

impl FabricsCommand {
    /// What an entry with [`OPCODE`] asks for.
    ///
    /// # Errors
    /// [`Status::INVALID_FIELD`] for what is reserved, a type too (Base, figure 94).
    pub const fn of(submission: &Submission) -> Result<FabricsCommand, Status> {
        match submission.dword(1) & 0xff {
            CONNECT => Ok(FabricsCommand::Connect(Connect {
                format: submission.dword(10) as u16,
                queue: (submission.dword(10) >> 16) as u16,
                last_entry: submission.dword(11) as u16,
                without_flow_control: submission.dword(11) & NO_FLOW_CONTROL != 0,
                keep_alive_ms: submission.dword(12),
            })),
            DISCONNECT => Ok(FabricsCommand::Disconnect(submission.dword(10) as u16)),
            kind @ (PROPERTY_GET | PROPERTY_SET) => {
                let bytes = match submission.dword(10) & 7 {
                    0 => 4,
                    EIGHT_BYTES => 8,
                    _ => return Err(Status::INVALID_FIELD),
                };
                let property = Property { offset: submission.dword(11), bytes };
                Ok(match kind {
                    PROPERTY_GET => FabricsCommand::PropertyGet(property),
                    _ => FabricsCommand::PropertySet(property, submission.0[6]),
                })
            }
            kind @ (AUTHENTICATION_SEND | AUTHENTICATION_RECEIVE) => {
                let [_, low, high, protocol] = submission.dword(10).to_le_bytes();
                let specific = u16::from_le_bytes([low, high]);
                let message = Authentication { protocol, specific, bytes: submission.dword(11) };
                Ok(match kind {
                    AUTHENTICATION_SEND => FabricsCommand::AuthenticationSend(message),
                    _ => FabricsCommand::AuthenticationReceive(message),
                })
            }
            _ => Err(Status::INVALID_FIELD),
        }
    }
}

/// Whether an entry is a Connect.
pub const fn is_connect(submission: &Submission) -> bool {
    submission.opcode() == OPCODE && submission.dword(1) & 0xff == CONNECT
}

/// What a host sends.
impl Submission {
    /// Connect (Base §6.3); its data is a [`ConnectRecord`].
    pub fn connect(connect: Connect) -> Self {
        let attributes = if connect.without_flow_control { NO_FLOW_CONTROL } else { 0 };
        Submission::new(OPCODE, CONNECT)
            .with_dword(10, u32::from(connect.format) | u32::from(connect.queue) << 16)
            .with_dword(11, u32::from(connect.last_entry) | attributes)
            .with_dword(12, connect.keep_alive_ms)
    }

    /// Property Get (Base §6.5); the value is the completion's result.
    pub fn property_get(property: Property) -> Self {
        let width = if property.bytes == 8 { EIGHT_BYTES } else { 0 };
        Submission::new(OPCODE, PROPERTY_GET).with_dword(10, width).with_dword(11, property.offset)
    }

    /// Property Set (Base §6.6).
    pub fn property_set(property: Property, value: u64) -> Self {
        let width = if property.bytes == 8 { EIGHT_BYTES } else { 0 };
        let mut submission = Submission::new(OPCODE, PROPERTY_SET).with_dword(10, width);
        submission = submission.with_dword(11, property.offset);
        submission.0[6] = value;
        submission
    }

    /// Authentication Send (Base §6.2); its data is the message.
    pub fn authentication_send(message: Authentication) -> Self {
        Submission::authentication(AUTHENTICATION_SEND, message)
    }

    /// Authentication Receive (Base §6.1).
    pub fn authentication_receive(message: Authentication) -> Self {
        Submission::authentication(AUTHENTICATION_RECEIVE, message)
    }

    fn authentication(kind: u32, Authentication { protocol, specific, bytes }: Authentication) -> Self {
        let selected = u32::from(protocol) << 24 | u32::from(specific) << 8;
        Submission::new(OPCODE, kind).with_dword(10, selected).with_dword(11, bytes)
    }
}

layout! {
    /// The data of a Connect (Base §6.3).
    ConnectRecord[1024] {
        /// Identifier of the host.
        host_id, set_host_id: [u8; 16] = 0;
        /// The controller asked for.
        controller, set_controller: u16 = 16;
        /// Name of the subsystem, ended by a zero.
        subsystem, set_subsystem: [u8; NAME_BYTES] = 256;
        /// Name of the host, ended by a zero.
        host, set_host: [u8; NAME_BYTES] = 512;
    }
}

layout! {
    /// How a discovery log begins (Base §5.16.1.23).
    DiscoveryHeader[1024] {
        /// Changes whenever the log does.
        generation, set_generation: u64 = 0;
        /// Entries that follow.
        entries, set_entries: u64 = 8;
        /// Format of the log; 0 is the only one.
        format, set_format: u16 = 16;
    }
}

layout! {
    /// A way to a subsystem (Base §5.16.1.23).
    DiscoveryEntry[1024] {
        /// 3 is TCP (TRTYPE).
        transport, set_transport: u8 = 0;
        /// 1 is IPv4, 2 is IPv6 (ADRFAM).
        family, set_family: u8 = 1;
        /// 2 is storage, 3 the discovery subsystem that answers (SUBTYPE).
        subtype, set_subtype: u8 = 2;
        /// Bits 1:0: 1 asks for a secure channel; bit 2: completions need not carry the queue's head (TREQ).
        requirements, set_requirements: u8 = 3;
        /// The port within the subsystem.
        port, set_port: u16 = 4;
        /// The controller to connect to; [`ANY_CONTROLLER`] is one made for the host.
        controller, set_controller: u16 = 6;
        /// Most entries of the admin queue.
        admin_entries, set_admin_entries: u16 = 8;
        /// Bit 1: a host may stay connected to the discovery controller (EFLAGS).
        flags, set_flags: u16 = 12;
        /// The TCP port, ASCII padded with spaces (TRSVCID).
        service, set_service: [u8; 32] = 32;
        /// Name of the subsystem, ended by a zero.
        subsystem, set_subsystem: [u8; NAME_BYTES] = 256;
        /// The address, ASCII padded with spaces (TRADDR).
        address, set_address: [u8; NAME_BYTES] = 512;
        /// The secure channel over TCP: 0 is none, 2 is TLS 1.3 (SECTYPE of TSAS).
        security, set_security: u8 = 768;
    }
}

/// Most bytes of a qualified name (Base §4.5).
const NAME_LENGTH_MAX: usize = 223;

/// A name out of a field of [`NAME_BYTES`]; `None` where it has no end, is too long or is not UTF-8.
pub fn name(field: &[u8; NAME_BYTES]) -> Option<&str> {
    let end = field.iter().position(|byte| *byte == 0).filter(|end| *end <= NAME_LENGTH_MAX)?;
    std::str::from_utf8(&field[..end]).ok()
}

/// Whether a name is one that hosts and subsystems have (Base §4.5): `nqn.`, a year and a month, and who is called so.
pub fn is_qualified(name: &str) -> bool {
    let Some([date @ .., b'.']) = name.strip_prefix("nqn.").and_then(|rest| rest.as_bytes().first_chunk::<8>()) else {
        return false;
    };
    let is_date = (0..).zip(date).all(|(at, byte)| if at == 4 { *byte == b'-' } else { byte.is_ascii_digit() });
    is_date && ("nqn.yyyy-mm.".len() + 1..=NAME_LENGTH_MAX).contains(&name.len())
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The bytes of a Connect for queue 3 with 128 entries and 5 s of keep alive, by hand from Base figure 379.
    #[test]
    fn the_layout_is_the_specification_s() {
        let connect =
            Connect { format: 0, queue: 3, last_entry: 127, without_flow_control: true, keep_alive_ms: 5_000 };
        let submission = Submission::connect(connect);
        let bytes = submission.0.iter().flat_map(|word| word.to_le_bytes()).collect::<Vec<_>>();
        assert_eq!((bytes[0], bytes[4]), (0x7f, 1));
        assert_eq!(bytes[40..52], [0, 0, 3, 0, 127, 0, 4, 0, 0x88, 0x13, 0, 0]);
        assert_eq!(FabricsCommand::of(&submission), Ok(FabricsCommand::Connect(connect)));
        let property = Property { offset: 0x14, bytes: 4 };
        let set = Submission::property_set(property, 0x46_0001);
        assert_eq!(FabricsCommand::of(&set), Ok(FabricsCommand::PropertySet(property, 0x46_0001)));
        let property = Property { offset: 0, bytes: 8 };
        assert_eq!(FabricsCommand::of(&Submission::property_get(property)), Ok(FabricsCommand::PropertyGet(property)));
    }

    /// Names that hosts say, and what is none.
    #[test]
    fn a_qualified_name_has_a_date_and_an_owner() {
        let long = format!("nqn.2014-08.org.nvmexpress:{}", "n".repeat(196));
        let of_hosts = [
            "nqn.2014-08.org.nvmexpress:uuid:7a6b2c1e-0000-4000-8000-000000000001",
            "nqn.2014-08.org.nvmexpress:NVMf:uuid:7a6b2c1e-0000-4000-8000-000000000001",
            "nqn.2016-06.io.spdk:host1",
            "nqn.2014-08.com.vmware:nvme:esx-1",
            DISCOVERY_SUBSYSTEM,
            &long,
        ];
        for host in of_hosts {
            assert!(is_qualified(host), "{host}");
        }
        let longer = format!("{long}n");
        let wrong =
            ["", "foo", "nqn.", "nqn.x:host", "nqn.2014-08.", "nqn.2014.08.org:a", "nqn.201a-08.org:a", &longer];
        for host in wrong {
            assert!(!is_qualified(host), "{host}");
        }
    }

    #[test]
    fn what_is_reserved_is_refused() {
        let get = Submission::property_get(Property { offset: 0, bytes: 4 });
        assert_eq!(FabricsCommand::of(&get.with_dword(10, 2)), Err(Status::INVALID_FIELD));
        assert_eq!(FabricsCommand::of(&get.with_dword(1, 2)), Err(Status::INVALID_FIELD));
        assert_eq!((name(&[b'a'; 256]), name(&[0; 256])), (None, Some("")));
        let long = |bytes| std::array::from_fn(|at| if at < bytes { b'a' } else { 0 });
        assert_eq!((name(&long(223)).map(str::len), name(&long(224))), (Some(223), None));
    }
}
