//! The loop in turns that a test gives it.

use super::*;
use crate::allowance::ACCEPTED_MAX;
use crate::crowd::Origin;
use crate::orphan::{Host, LeftBehind, Orphan};
use crate::proof::tests::{greeting, greeting_of, negotiation};
use crate::rehearsal::hosts::{KNOWN, hearing, keys, reply, saying};
use crate::rehearsal::tests::settings;
use crate::rehearsal::{Plain, SHAPE, open_to_all};
use nvme::spec::dhchap::message;
use nvme::spec::fabrics::DISCOVERY_SUBSYSTEM;
use rustix::process::{Resource, getrlimit};

/// A loop that listens, before a drive that never answers.
fn attended() -> Loop {
    let address = "127.0.0.1:0".parse().expect("an address");
    let server = Server::listen(address, None, SHAPE.pairs).expect("a free port");
    Loop::new(server, open_to_all(settings()), Arc::new(Plain::new()), SHAPE).expect("nothing to set up")
}

/// Lets so many seconds be over since it began.
fn pass(attended: &mut Loop, seconds: u64) {
    let past = Duration::from_secs(seconds);
    attended.began = Instant::now().checked_sub(past).expect("the system counts from long before");
}

#[test]
fn a_drive_that_does_not_answer_is_given_up_after_ten_minutes_and_not_before() {
    let mut attended = attended();
    attended.server.ties.stop.stop();
    for seconds in [0, 1, 30, 595] {
        pass(&mut attended, seconds);
        assert!(matches!(attended.turn(Duration::ZERO), Ok(Progress::Idle)), "after {seconds} s");
    }
    pass(&mut attended, 601);
    assert!(matches!(attended.turn(Duration::ZERO), Err(ServeError::Stuck)));
}

#[test]
fn a_drive_ends_while_its_time_has_room() {
    let mut attended = attended();
    pass(&mut attended, 160 * 86_400 - 60);
    attended.turn(Duration::ZERO).expect("the system lets it poll");
    assert!(!attended.server.ties.stop.is_asked());
    pass(&mut attended, 160 * 86_400);
    attended.turn(Duration::ZERO).expect("the system lets it poll");
    attended.turn(Duration::ZERO).expect("the system lets it poll");
    assert!(attended.ending.is_some() && attended.ended.outlived);
}

/// Where the other end is gone without a word, no packet comes that a server could wait for: the system has to ask.
#[test]
fn hosts_that_vanish_are_found_out_by_the_system() {
    let mut attended = attended();
    let _host = std::net::TcpStream::connect(attended.server.address()).expect("it listens");
    while attended.connections.is_empty() {
        attended.turn(Duration::from_millis(10)).expect("the system lets it poll");
    }
    let Some(Connection { stream: Stream::Plain(socket), .. }) = &attended.connections[0] else {
        panic!("a connection without TLS")
    };
    assert_eq!(sockopt::socket_keepalive(socket), Ok(true));
    let (idle, every) = (sockopt::tcp_keepidle(socket).unwrap(), sockopt::tcp_keepintvl(socket).unwrap());
    assert_eq!(idle + every * sockopt::tcp_keepcnt(socket).unwrap(), Duration::from_secs(120));
    assert_eq!(sockopt::tcp_user_timeout(socket), Ok(120_000));
}

/// A message in the largest group holds up the next for a tenth of a second.
#[test]
fn hosts_that_prove_who_they_are_take_turns() {
    let mut attended = attended();
    attended.subsystem.settings.keys = Some(keys());
    let greeting = greeting(&attended.subsystem.settings.controller.subsystem);
    let address = attended.server.address();
    let connect = |conversations: usize| {
        let mut stream = std::net::TcpStream::connect(address).expect("it listens");
        stream.write_all(&[&greeting[..], &negotiation(5).repeat(conversations)].concat()).expect("it fits");
        stream
    };
    let _hosts = [3, 3, 1].map(connect);
    // Another has had its turn just after they have all come.
    assert!(attended.subsystem.proofs.admits(2, Span::from_millis(20), Time::ZERO + Span::from_secs(5)));
    let waits = |attended: &Loop| {
        attended.connections.iter().flatten().filter(|connection| !connection.session.postponed.is_empty()).count()
    };
    while waits(&attended) < 3 {
        attended.turn(Duration::from_millis(1)).expect("the system lets it poll");
    }
    let next = [6_000, 7_000, 8_000].map(|millis| {
        turn_at(&mut attended, millis);
        attended.subsystem.proofs.first()
    });
    assert_eq!(next, [1, 2, 3], "each was worked on once");
}

/// More than there are places for come and say nothing: whoever has begun to prove itself goes on as if they were not there.
#[test]
fn a_crowd_of_connections_leaves_alone_who_proves_itself() {
    let mut attended = attended();
    attended.subsystem.settings.keys = Some(keys());
    let greeting = greeting(&attended.subsystem.settings.controller.subsystem);
    let mut host = std::net::TcpStream::connect(attended.server.address()).expect("it listens");
    host.write_all(&[&greeting[..], &negotiation(0)].concat()).expect("it fits");
    let has_begun = |connection: &Connection| connection.session.has_begun();
    while !attended.connections.iter().flatten().any(has_begun) {
        attended.turn(Duration::from_millis(1)).expect("the system lets it poll");
    }
    let begun = attended.connections.iter().flatten().find(|it| has_begun(it)).expect("it was seen");
    assert_eq!(begun.session.origin, Origin::of("127.0.0.1".parse().expect("an address")));
    let most = connections_max(SHAPE.pairs - 1);
    let mut crowd = Vec::new();
    while attended.ended.connections < 2 * most as u64 {
        crowd.push(std::net::TcpStream::connect(attended.server.address()).expect("it listens"));
        attended.turn(Duration::from_millis(1)).expect("the system lets it poll");
    }
    assert_eq!(attended.connections.iter().flatten().count(), most);
    host.write_all(&hearing()).expect("it is connected");
    let mut answers = [0; 4096];
    host.set_nonblocking(true).expect("a socket");
    let mut heard = 0;
    while heard <= 128 + 2 * 24 {
        attended.turn(Duration::from_millis(1)).expect("the system lets it poll");
        match host.read(&mut answers) {
            Ok(bytes) => heard += if bytes > 0 { bytes } else { panic!("it is let go") },
            Err(error) => assert_eq!(error.kind(), io::ErrorKind::WouldBlock),
        }
    }
}

/// Turns until so many connections are there; `false` where a thousand are not enough.
fn comes_to(attended: &mut Loop, connections: usize) -> bool {
    (0..1_000).any(|_| {
        attended.turn(Duration::from_millis(1)).expect("the system lets it poll");
        attended.connections.iter().flatten().count() == connections
    })
}

/// The end of what it sends is told of once, with its last bytes: here with half a unit, and with commands and half a unit.
#[test]
fn a_host_that_is_gone_in_the_midst_of_a_unit_is_gone_at_once() {
    let mut attended = attended();
    let greeting = greeting(&attended.subsystem.settings.controller.subsystem);
    for last in [&greeting[..5], &greeting[..greeting.len() - 7], &[&greeting[..], &[4, 0, 72]].concat()] {
        let mut host = std::net::TcpStream::connect(attended.server.address()).expect("it listens");
        assert!(comes_to(&mut attended, 1));
        // What the poll tells of a new connection is behind it.
        (0..10).for_each(|_| drop(attended.turn(Duration::ZERO)));
        host.write_all(last).expect("it fits");
        host.shutdown(std::net::Shutdown::Write).expect("it is connected");
        assert!(comes_to(&mut attended, 0), "{} bytes", last.len());
    }
}

/// A flush covers what is over before it begins, so none begins while writes of connections that are gone are under way.
#[test]
fn the_end_asks_for_durability_when_nothing_is_under_way() {
    let mut attended = attended();
    let pair = attended.port.take_pair().expect("one is free");
    attended.subsystem.adopt(Orphan::new(pair, Arc::new(Host::default()), vec![LeftBehind::write(0)]));
    attended.server.ties.stop.stop();
    let mut outstanding = || {
        attended.turn(Duration::ZERO).expect("it is patient");
        let outstanding = attended.subsystem.served.outstanding;
        attended.subsystem.orphans.clear();
        outstanding
    };
    assert_eq!([outstanding(), outstanding()], [0, 1]);
}

/// A host may have another identifier with each of its processes; one without a name has nothing else.
#[test]
fn a_host_waits_for_what_it_left_behind_under_another_identifier() {
    let host = |name: &str, id| Host { name: name.into(), id: [id; 16] };
    for (left, comes, waits) in [
        (host("a", 1), host("a", 1), true),
        (host("a", 1), host("a", 2), true),
        (host("a", 1), host("b", 1), false),
        (host("", 1), host("", 1), true),
        (host("", 1), host("", 2), false),
    ] {
        let mut attended = attended();
        let pair = attended.port.take_pair().expect("one is free");
        attended.subsystem.adopt(Orphan::new(pair, Arc::new(left), vec![LeftBehind::write(0)]));
        assert_eq!(attended.subsystem.is_haunted_by(&comes), waits, "{comes:?}");
    }
}

/// It may take minutes until all is durable: a host that cannot be served meanwhile can try elsewhere.
#[test]
fn who_comes_while_the_drive_ends_is_refused_at_once() {
    let mut attended = attended();
    attended.server.ties.stop.stop();
    attended.turn(Duration::ZERO).expect("it is patient");
    let refused = std::net::TcpStream::connect(attended.server.address()).expect_err("nobody listens any more");
    assert_eq!(refused.kind(), io::ErrorKind::ConnectionRefused);
}

/// However many queues hosts are granted: they can be connected, and others still come in.
#[test]
fn there_is_a_place_for_every_queue_and_for_newcomers() {
    for queues in [1, 16, 519, u16::MAX - 1] {
        assert!(connections_max(queues) > usize::from(queues) + 2 * CONTROLLERS_MAX, "{queues}");
    }
    assert!(ask_for_files(1).is_ok());
    let refused = ask_for_files(u16::MAX - 1);
    let most = getrlimit(Resource::Nofile).maximum;
    assert_eq!(refused.is_err(), most.is_some_and(|most| most < 65_534), "{refused:?}");
}

/// A turn so many milliseconds after it began, which is not waited in.
fn turn_at(attended: &mut Loop, millis: u64) {
    let past = Duration::from_millis(millis);
    attended.began = Instant::now().checked_sub(past).expect("the system counts from long before");
    attended.turn(Duration::ZERO).expect("the system lets it poll");
}

/// Bytes that have come for a host.
fn heard(host: &mut std::net::TcpStream) -> usize {
    let mut answers = [0; 4096];
    host.set_nonblocking(true).expect("a socket");
    match host.read(&mut answers) {
        Ok(bytes) => bytes,
        Err(error) if error.kind() == io::ErrorKind::WouldBlock => 0,
        Err(error) => panic!("{error}"),
    }
}

/// Hosts are busy until long from now, and outsiders have had so much of the thread that their next slice is 4 s from the beginning.
fn keep_busy(attended: &mut Loop) {
    let at = |millis| Time::ZERO + Span::from_millis(millis);
    let mut slice = attended.allowance.begin(at(3_000));
    slice.pass(at(3_100), Span::ZERO);
    attended.allowance.note_busy(at(100_000));
    attended.allowance.end(&slice);
    assert_eq!(attended.allowance.due(), at(4_000), "a tenth of the time is theirs");
}

/// Who has proved nothing, who only discovers and who comes wait while hosts are served; then each has its turn, a few at a time.
#[test]
fn strangers_have_little_of_the_thread_while_hosts_want_it() {
    let mut attended = attended();
    let connect = |attended: &Loop, subsystem: &str| {
        let mut stream = std::net::TcpStream::connect(attended.server.address()).expect("it listens");
        stream.write_all(&greeting(subsystem)).expect("it fits");
        stream
    };
    let mut host = connect(&attended, &attended.subsystem.settings.controller.subsystem);
    let mut discoverer = connect(&attended, DISCOVERY_SUBSYSTEM);
    let mut answers = [0; 2];
    while answers != [128 + 24; 2] {
        attended.turn(Duration::from_millis(1)).expect("the system lets it poll");
        answers[0] += heard(&mut host);
        answers[1] += heard(&mut discoverer);
    }
    keep_busy(&mut attended);
    let mut crowd: Vec<_> = (0..20).map(|_| connect(&attended, DISCOVERY_SUBSYSTEM)).collect();
    discoverer.write_all(&hearing()).expect("it is connected");
    for millis in [3_500, 3_600, 3_900] {
        host.write_all(&hearing()).expect("it is connected");
        turn_at(&mut attended, millis);
        assert_eq!(heard(&mut host), 24, "after {millis} ms");
    }
    assert_eq!((attended.ended.connections, heard(&mut discoverer)), (2, 0), "who comes is not let in yet");
    let mut turns = 0;
    let mut answers = [0; 21];
    while answers != std::array::from_fn(|at| if at == 20 { 24 } else { 128 + 24 }) {
        let before = attended.ended.connections;
        turn_at(&mut attended, 4_100 + 100 * turns);
        assert!(attended.ended.connections - before <= ACCEPTED_MAX as u64);
        for (answer, stranger) in answers.iter_mut().zip(crowd.iter_mut().chain([&mut discoverer])) {
            *answer += heard(stranger);
        }
        turns += 1;
        assert!(turns < 90, "each has its turn: {answers:?}");
    }
}

/// Units that have been read and not worked on are no less work than those that wait in the socket.
#[test]
fn what_a_stranger_has_left_over_waits_too() {
    let mut attended = attended();
    let mut discoverer = std::net::TcpStream::connect(attended.server.address()).expect("it listens");
    exchange(&mut attended, &mut discoverer, &greeting(DISCOVERY_SUBSYSTEM), 128 + 24);
    keep_busy(&mut attended);
    let visit = 24 * UNITS_A_VISIT as usize;
    discoverer.write_all(&hearing().repeat(2 * UNITS_A_VISIT as usize)).expect("it is connected");
    turn_at(&mut attended, 4_100);
    assert_eq!(heard(&mut discoverer), visit);
    let at = |millis| Time::ZERO + Span::from_millis(millis);
    let mut slice = attended.allowance.begin(at(4_200));
    slice.pass(at(5_200), Span::ZERO);
    attended.allowance.end(&slice);
    for millis in [5_000, 6_000, 14_000] {
        turn_at(&mut attended, millis);
        assert_eq!(heard(&mut discoverer), 0, "after {millis} ms");
    }
    turn_at(&mut attended, 15_000);
    assert_eq!(heard(&mut discoverer), visit);
}

/// More than are let in in one turn have come, and nobody comes after them: the others are let in all the same.
#[test]
fn who_waits_behind_many_is_let_in() {
    let mut attended = attended();
    let _crowd: Vec<_> =
        (0..60).map(|_| std::net::TcpStream::connect(attended.server.address()).expect("it listens")).collect();
    turn_at(&mut attended, 1_000);
    assert!((1..=ACCEPTED_MAX as u64).contains(&attended.ended.connections));
    assert!(attended.do_outsiders_wait(), "it looks again without being told");
    assert!(comes_to(&mut attended, 60));
}

/// A host sends this and hears so many bytes.
fn exchange(attended: &mut Loop, host: &mut std::net::TcpStream, bytes: &[u8], answer: usize) -> Vec<u8> {
    host.write_all(bytes).expect("it is connected");
    host.set_nonblocking(true).expect("a socket");
    let mut heard = Vec::new();
    while heard.len() < answer {
        attended.turn(Duration::from_millis(1)).expect("the system lets it poll");
        let mut room = [0; 4096];
        match host.read(&mut room) {
            Ok(0) => break,
            Ok(bytes) => heard.extend_from_slice(&room[..bytes]),
            Err(error) => assert_eq!(error.kind(), io::ErrorKind::WouldBlock),
        }
    }
    heard
}

/// What a host hears of who it is, after its last message.
fn hear(attended: &mut Loop, host: &mut std::net::TcpStream) -> Vec<u8> {
    let unit = exchange(attended, host, &hearing(), 24 + 2048 + 24);
    assert_eq!(unit.len(), 24 + 2048 + 24, "it is let go unheard");
    unit[24..24 + 2048].to_vec()
}

/// Long after it came, a host proves anew who it is and fails: it hears why, as one that has just come does.
#[test]
fn who_fails_to_prove_itself_anew_hears_so() {
    let mut attended = attended();
    attended.subsystem.settings.keys = Some(keys());
    let subsystem = attended.subsystem.settings.controller.subsystem.clone();
    let mut host = std::net::TcpStream::connect(attended.server.address()).expect("it listens");
    exchange(&mut attended, &mut host, &greeting(&subsystem), 128 + 24);
    let mut ids = Vec::new();
    for (seconds, spoils) in [(0, false), (20, true)] {
        pass(&mut attended, seconds);
        exchange(&mut attended, &mut host, &negotiation(0), 24);
        let challenge = hear(&mut attended, &mut host);
        let mut reply = reply(KNOWN, &attended.subsystem.settings, &challenge, false).expect("it knows");
        reply[20] ^= u8::from(spoils);
        exchange(&mut attended, &mut host, &saying(&reply), 24);
        if spoils {
            // Hosts that are silent and connections that are over are looked after meanwhile.
            (0..10).for_each(|_| drop(attended.turn(Duration::from_millis(1))));
        }
        ids.push(hear(&mut attended, &mut host)[1]);
    }
    assert_eq!(ids, [message::SUCCESS1, message::FAILURE1]);
}

/// A queue that waits until the drive is done with what its host left under way has done its part: it is answered however long that takes,
/// and has as long for what comes next as who comes. Who says nothing is let go meanwhile.
#[test]
fn a_connect_that_has_to_wait_is_answered() {
    let mut attended = attended();
    let subsystem = attended.subsystem.settings.controller.subsystem.clone();
    let address = attended.server.address();
    let [mut admin, mut queue, mut silent] =
        [(); 3].map(|()| std::net::TcpStream::connect(address).expect("it listens"));
    exchange(&mut attended, &mut admin, &greeting(&subsystem), 128 + 24);
    let (&id, live) = attended.subsystem.controllers.first_key_value().expect("it was created");
    let host = live.host.clone();
    let pair = attended.port.take_pair().expect("one is free");
    attended.subsystem.adopt(Orphan::new(pair, host, vec![LeftBehind::write(0)]));
    let connect = greeting_of(&subsystem, 1, id);
    exchange(&mut attended, &mut queue, &connect, 128);
    exchange(&mut attended, &mut silent, &connect[..128], 128);
    pass(&mut attended, 60);
    assert!(comes_to(&mut attended, 2), "who says nothing is let go");
    let look_after = |attended: &mut Loop| {
        (0..10).for_each(|_| drop(attended.turn(Duration::from_millis(1))));
        attended.connections.iter().flatten().count()
    };
    assert_eq!((look_after(&mut attended), heard(&mut queue)), (2, 0), "who waits is neither let go nor answered");
    attended.subsystem.orphans.clear();
    assert_eq!(exchange(&mut attended, &mut queue, &[], 24).len(), 24, "it is over");
    assert_eq!(look_after(&mut attended), 2, "it was refused, and may try again");
    pass(&mut attended, 71);
    assert!(comes_to(&mut attended, 1));
}
