//! Connect: what makes a connection the queue of a controller (Base §6.3), and what discovery tells (§5.16.1.23).

use crate::crowd::Origin;
use crate::orphan::Host;
use crate::port::Port;
use crate::subsystem::{ConnectionId, Granted, Live, NewController, Subsystem};
use crate::tls::Parties;
use nvme::Role;
use nvme::spec::Status;
use nvme::spec::fabrics::{
    self, ANY_CONTROLLER, CONTROLLER_BUSY, Connect, ConnectRecord, DISCOVERY_SUBSYSTEM, DiscoveryEntry,
    INCOMPATIBLE_FORMAT, INVALID_HOST, INVALID_PARAMETERS, NAME_BYTES, invalid_parameter, is_qualified, name,
};
use std::net::SocketAddr;
use std::sync::Arc;
use units::Time;

/// Most entries of an admin queue.
pub(crate) const ADMIN_ENTRIES_MAX: u16 = 128;

/// A Connect that was refused: status and result.
pub(crate) type Refusal = (Status, u64);

/// Where a connection comes from, and what its host is told of the address.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Arrival<'a> {
    pub(crate) connection: ConnectionId,
    pub(crate) origin: Origin,
    /// The address to advertise: the one the host dialled.
    pub(crate) dialled: SocketAddr,
    /// Who the connection is for, where it is secured.
    pub(crate) parties: Option<&'a Parties>,
    /// I/O queues that a host was told of if it asked before this Connect.
    pub(crate) queues_left: u16,
    /// Whether there is a queue pair for it.
    pub(crate) has_pair: bool,
    pub(crate) now: Time,
}

/// What a connection has become.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Joined {
    pub(crate) host: Arc<Host>,
    pub(crate) controller: u16,
    pub(crate) queue: u16,
    pub(crate) entries: u16,
}

// Places of fields, in the command and in its data.
const QUEUE_AT: u16 = 42;
const ENTRIES_AT: u16 = 44;
const CONTROLLER_AT: u16 = 16;
const SUBSYSTEM_AT: u16 = 256;
const HOST_AT: u16 = 512;
const HOST_ID_AT: u16 = 0;

const fn of_command(at: u16) -> Refusal {
    (INVALID_PARAMETERS, invalid_parameter(at, false))
}

const fn of_data(at: u16) -> Refusal {
    (INVALID_PARAMETERS, invalid_parameter(at, true))
}

/// Answers a Connect.
pub(crate) fn join(
    subsystem: &mut Subsystem,
    port: &Port,
    arrival: Arrival<'_>,
    connect: Connect,
    record: &ConnectRecord,
) -> Result<Joined, Refusal> {
    if connect.format != 0 {
        return Err((INCOMPATIBLE_FORMAT, 0));
    }
    let names = (record.subsystem(), record.host());
    let asked = name(&names.0).ok_or(of_data(SUBSYSTEM_AT))?;
    // A host without a name is let in where any is: the initiator of SPDK's `spdk_nvme_perf` says none unless told to.
    let host = name(&names.1).filter(|host| host.is_empty() || is_qualified(host)).ok_or(of_data(HOST_AT))?;
    let host = Arc::new(Host { name: host.into(), id: record.host_id() });
    let entries_max = if connect.queue == 0 { ADMIN_ENTRIES_MAX } else { port.shape().depth };
    if connect.last_entry == 0 || connect.last_entry >= entries_max {
        return Err(of_command(ENTRIES_AT));
    }
    let entries = connect.last_entry + 1;
    let is_discovery = asked == DISCOVERY_SUBSYSTEM;
    if !is_discovery && asked != subsystem.settings.controller.subsystem {
        return Err(of_data(SUBSYSTEM_AT));
    }
    if !is_discovery && !subsystem.allows(&host.name) {
        return Err((INVALID_HOST, 0));
    }
    if arrival.parties.is_some_and(|parties| parties.host != host.name || parties.subsystem != asked) {
        return Err((INVALID_HOST, 0));
    }
    if connect.queue != 0 && is_discovery {
        return Err(of_command(QUEUE_AT));
    }
    if connect.queue != 0 {
        let (controller, host) = join_queue(subsystem, arrival, connect, record, &host)?;
        return Ok(Joined { host, controller, queue: connect.queue, entries });
    }
    if record.controller() != ANY_CONTROLLER {
        return Err(of_data(CONTROLLER_AT));
    }
    let discovery = is_discovery.then(|| ways(subsystem, &arrival, &host.name));
    let new = NewController {
        host: host.clone(),
        keep_alive_ms: connect.keep_alive_ms,
        admin: arrival.connection,
        origin: arrival.origin,
        discovery,
    };
    let controller = subsystem.create(new, arrival.now).ok_or((CONTROLLER_BUSY, 0))?;
    Ok(Joined { host, controller, queue: 0, entries })
}

/// Whether a Connect is answered later: a queue does not begin before what its host asked for through others that are gone
/// is over.
pub(crate) fn must_wait(subsystem: &Subsystem, connect: Connect, record: &ConnectRecord) -> bool {
    let names = record.host();
    let live = subsystem.controllers.get(&record.controller()).filter(|_| connect.queue != 0);
    live.is_some_and(|live| {
        name(&names).is_some_and(|name| name == live.host.name) && subsystem.is_haunted_by(&live.host)
    })
}

fn join_queue(
    subsystem: &mut Subsystem,
    arrival: Arrival<'_>,
    connect: Connect,
    record: &ConnectRecord,
    host: &Host,
) -> Result<(u16, Arc<Host>), Refusal> {
    let id = record.controller();
    let live = subsystem.controllers.get(&id).ok_or(of_data(CONTROLLER_AT))?;
    if live.host.name != host.name {
        return Err(of_data(HOST_AT));
    }
    // A host that does not say its identifier again is the one of the admin queue (Base 2.1, figure 546).
    if live.host.id != host.id && host.id != [0; 16] {
        return Err(of_data(HOST_ID_AT));
    }
    let host = live.host.clone();
    if subsystem.secrets(&live.controller, &host).is_some() {
        grant(live, connect.queue, &arrival)?;
        subsystem.controllers.get_mut(&id).expect("it was found").unproved.insert(arrival.connection);
    } else {
        add_queue(subsystem, id, connect.queue, &arrival)?;
    }
    Ok((id, host))
}

/// A connection is an I/O queue of a controller from now on.
///
/// # Errors
/// What stands in the way.
pub(crate) fn add_queue(subsystem: &mut Subsystem, id: u16, queue: u16, arrival: &Arrival<'_>) -> Result<(), Refusal> {
    let live = subsystem.controllers.get_mut(&id).ok_or(of_data(CONTROLLER_AT))?;
    let granted = grant(live, queue, arrival)?;
    if matches!(live.granted, Granted::Nothing | Granted::Told(_)) {
        live.granted = Granted::Taken(granted);
        live.controller.offer_queues(granted);
    }
    live.unproved.remove(&arrival.connection);
    live.queues.insert(queue, arrival.connection);
    live.heard(arrival.now);
    Ok(())
}

/// How many I/O queues a controller may have, where it may have this one now.
fn grant(live: &Live, queue: u16, arrival: &Arrival<'_>) -> Result<u16, Refusal> {
    // A discovery controller has no I/O queues (Base §3.1.2.3), and what is asked of one is asked for by its name.
    if !matches!(live.controller.settings().role, Role::Storage) {
        return Err(of_command(QUEUE_AT));
    }
    // There is none before the controller is enabled (Base §6.3), and as with queues in memory while CC names entries of another size than
    // there is (Base §3.1.3.5).
    if !live.controller.is_ready() || !live.controller.has_entry_sizes() {
        return Err(of_command(QUEUE_AT));
    }
    // A host need not set Number of Queues: it may have what it would be told if it asked.
    let granted = match live.granted {
        Granted::Set(granted) | Granted::Taken(granted) | Granted::Told(granted) => granted,
        Granted::Nothing => arrival.queues_left,
    };
    if queue > granted {
        return Err(of_command(QUEUE_AT));
    }
    if live.queues.contains_key(&queue) {
        return Err((Status::COMMAND_SEQUENCE_ERROR, 0));
    }
    if arrival.has_pair { Ok(granted) } else { Err((CONTROLLER_BUSY, 0)) }
}

/// SUBTYPE of an entry.
const STORAGE: u8 = 2;
const THIS_DISCOVERY: u8 = 3;
/// TREQ: completions without the queue's head can be asked for.
const FLOW_CONTROL_OPTIONAL: u8 = 1 << 2;
/// TREQ: a secure channel is required.
const CHANNEL_REQUIRED: u8 = 1;
/// EFLAGS: a host may keep its connection to discovery, by a keep alive timeout of its own (EPCSD).
const DISCOVERY_LASTS: u16 = 1 << 1;
/// SECTYPE: TLS 1.3.
const TLS13: u8 = 2;

/// The ways that a host is told of: to discovery itself, and to the subsystem if it may use it.
fn ways(subsystem: &Subsystem, arrival: &Arrival<'_>, host: &str) -> Vec<DiscoveryEntry> {
    // A listener for both families calls an IPv4 address one of IPv6.
    let (address, port) = (arrival.dialled.ip().to_canonical(), arrival.dialled.port());
    // All connections of a port are secured, or none.
    let (channel, kind) = if arrival.parties.is_some() { (CHANNEL_REQUIRED, TLS13) } else { (0, 0) };
    let entry = |subtype, subsystem: &str| {
        let mut entry = DiscoveryEntry::default();
        entry
            .set_transport(fabrics::TCP)
            .set_family(if address.is_ipv4() { 1 } else { 2 })
            .set_subtype(subtype)
            .set_requirements(FLOW_CONTROL_OPTIONAL | channel)
            .set_security(kind)
            .set_port(1)
            .set_controller(ANY_CONTROLLER)
            .set_admin_entries(ADMIN_ENTRIES_MAX)
            .set_flags(if subtype == THIS_DISCOVERY { DISCOVERY_LASTS } else { 0 })
            .set_service(padded(&port.to_string(), b' '))
            .set_subsystem(padded::<NAME_BYTES>(subsystem, 0))
            .set_address(padded::<NAME_BYTES>(&address.to_string(), b' '));
        entry
    };
    let mut ways = vec![entry(THIS_DISCOVERY, fabrics::DISCOVERY_SUBSYSTEM)];
    if subsystem.allows(host) {
        ways.push(entry(STORAGE, &subsystem.settings.controller.subsystem));
    }
    ways
}

fn padded<const N: usize>(text: &str, pad: u8) -> [u8; N] {
    let mut bytes = [pad; N];
    let length = text.len().min(N);
    bytes[..length].copy_from_slice(&text.as_bytes()[..length]);
    bytes
}
